"""The embedded acceleration library on models of transformers: its recordings, and where an operation is in them."""

from __future__ import annotations

import dataclasses
import pathlib
import random
import re

import ait_llm
import torch
from models import Shape, Words, clone, draw_shape, draw_words, make_model
from runs import record_engine

FAMILIES = ("llama", "qwen2", "mistral")
LAYERS = (2, 2, 3, 4, 8, 12)


@dataclasses.dataclass
class EngineModel:
    """A model as both sides have it, and words that torch goes on with by itself: the engine chooses its own."""

    shape: Shape
    torch: torch.nn.Module
    folder: pathlib.Path
    words: Words
    chosen: dict[pathlib.Path, torch.Tensor] = dataclasses.field(default_factory=dict)  # words, of each recording

    def record(self, folder: pathlib.Path, dtype: str, *arguments: str, padded: bool = False) -> pathlib.Path:
        dump, chosen = record_engine(self.folder, folder, self.words, dtype, *arguments, padded=padded)
        self.chosen[dump] = torch.tensor(chosen)
        return dump

    def is_fed_the_same(self, dump: pathlib.Path, token: int) -> bool:
        """Up to that round it has chosen the words that torch has."""
        return torch.equal(self.chosen[dump][:, :token], self.words.following[:, :token])

    def copy(self, dtype: str) -> torch.nn.Module:
        return clone(self.torch, dtype)


@torch.no_grad()
def _greedy(model: torch.nn.Module, words: Words, steps: int) -> Words:
    out = model.generate(
        words.prompt, attention_mask=words.mask, max_new_tokens=steps + 1, do_sample=False, eos_token_id=None
    )
    return dataclasses.replace(words, following=out[:, words.prompt.shape[1] :][:, :steps])


def draw_engine_model(
    rng: random.Random,
    folder: pathlib.Path,
    steps: int,
    lengths: list[int] | None = None,
    rounded: bool = False,
    **fixed: object,
) -> EngineModel:
    """`rounded`: the weights of its layers are what int8 with a scale for each row can hold."""
    fixed = {"layers": rng.choice(LAYERS), **fixed}
    shape = draw_shape(rng, FAMILIES, **fixed)
    if shape.key_heads == 1:
        shape = dataclasses.replace(shape, key_heads=2)
    model = make_model(shape)
    if rounded:
        _round_to_int8(model)
    model.save_pretrained(folder / "model")
    lengths = lengths or [rng.randint(5, 12)] * rng.choice((1, 1, 2))
    words = _greedy(model, draw_words(rng, lengths, 0), steps)
    return EngineModel(shape, model, folder / "model", words)


@torch.no_grad()
def _round_to_int8(model: torch.nn.Module) -> None:
    for layer in model.model.layers:
        for module in layer.modules():
            if isinstance(module, torch.nn.Linear):
                scale = module.weight.abs().amax(1, keepdim=True) / 127
                module.weight.copy_((module.weight / scale).round() * scale)


def _number(name: str) -> int:
    return int(name.split("_", 1)[0])


def _operations(folder: pathlib.Path):
    """All below a folder of a recording that are not kernels, in the order of execution."""
    for child in sorted(
        (each for each in folder.iterdir() if re.match(r"\d+_", each.name)), key=lambda x: _number(x.name)
    ):
        if not child.name.endswith("Kernel"):
            yield child
            yield from _operations(child)


def find_operation(dump: pathlib.Path, token: int, layer: int, kind: str, index: int) -> pathlib.Path:
    """The folder of the `index`-th operation of a type in a layer; of the first rank."""
    process = min((dump / "tensors").iterdir(), key=lambda each: _number(each.name))
    folder = process / str(max(0, token - 1))
    layer_name = "Decoder_layer" if token else "Prefill_layer"
    layers = sorted(
        (each for each in folder.iterdir() if each.name.endswith(layer_name)), key=lambda x: _number(x.name)
    )
    found = [each for each in _operations(layers[layer]) if each.name.split("_", 1)[1] == kind + "Operation"]
    return found[index]


def operation_name(folder: pathlib.Path) -> str:
    """As reports have it: the path below the round."""
    parts = folder.parts
    return "/".join(parts[parts.index("tensors") + 3 :])


def read_output(folder: pathlib.Path, index: int = 0) -> torch.Tensor:
    return ait_llm.load(str(folder / "after" / f"outtensor{index}.bin")).torch().double()
