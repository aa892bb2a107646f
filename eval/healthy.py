"""Pairs of runs that differ and are both right. Each function records one pair and returns the two folders, and a third
where the tool is to be told what is usual."""

from __future__ import annotations

import dataclasses
import pathlib
import random
from typing import Callable

import torch
from engine_runs import draw_engine_model
from faults import coarser
from models import Shape, Words, clone, draw_shape, draw_words, make_model
from runs import record_torch

ALL = ("llama", "qwen2", "gpt2", "mixtral", "gemma", "phi3")
LARGE = {"hidden": 256, "heads": 8, "key_heads": 8}


@dataclasses.dataclass
class Pair:
    golden: pathlib.Path
    mine: pathlib.Path
    description: str
    noise: pathlib.Path | None = None


def _words(rng: random.Random, batch: int | None = None, steps: int | None = None, padded: bool = False) -> Words:
    length = rng.randint(6, 14) if rng.random() < 0.85 else rng.randint(32, 64)
    lengths = [length] * (batch or rng.choice((1, 1, 2)))
    if padded:
        lengths = [length] + [rng.randint(3, length) for _ in lengths[1:]]
    return draw_words(rng, lengths, rng.choice((0, 1, 2)) if steps is None else steps)


def _two(
    folder: pathlib.Path, shape: Shape, words: Words, golden: torch.nn.Module, mine: torch.nn.Module, text: str
) -> Pair:
    return Pair(
        record_torch(golden, folder / "golden", words), record_torch(mine, folder / "mine", words), f"{shape}, {text}"
    )


def _types(golden_type: str, my_type: str, families: tuple[str, ...] = ALL, **fixed: object) -> Callable:
    def make(rng: random.Random, folder: pathlib.Path) -> Pair:
        shape = draw_shape(rng, families, **fixed)
        model = make_model(shape)
        text = f"{golden_type} against {my_type}"
        return _two(folder, shape, _words(rng), clone(model, golden_type), clone(model, my_type), text)

    return make


def _deep(rng: random.Random, folder: pathlib.Path) -> Pair:
    golden_type, my_type = rng.choice((("fp32", "bf16"), ("fp32", "fp16"), ("fp16", "bf16")))
    return _types(golden_type, my_type, ("llama", "qwen2", "gpt2", "mixtral"), layers=40)(rng, folder)


def _extreme(rng: random.Random, folder: pathlib.Path) -> Pair:
    """Norms and channels as extreme as trained models have them."""
    fixed = dict(norm_spread=1.2, norm_centre=rng.choice((0.02, 1.0, 15.0)), outliers=4, outlier_size=100.0)
    golden_type, my_type = rng.choice((("fp32", "bf16"), ("fp16", "bf16"), ("fp32", "fp16")))
    return _types(golden_type, my_type, **fixed)(rng, folder)


def _attention(rng: random.Random, folder: pathlib.Path) -> Pair:
    shape = draw_shape(rng, ALL)
    model = make_model(shape)
    golden_type, my_type = rng.choice((("fp32", "fp32"), ("fp32", "bf16"), ("bf16", "bf16"), ("fp16", "fp16")))
    padded = rng.random() < 0.7
    words = _words(rng, batch=rng.choice((2, 3, 4)) if padded else 1, padded=padded)
    text = f"eager {golden_type} against sdpa {my_type}" + (", padded" if padded else "")
    return _two(folder, shape, words, clone(model, golden_type), clone(model, my_type, "sdpa"), text)


def _batch(rng: random.Random, folder: pathlib.Path) -> Pair:
    """One sequence alone against the same among eight, padded on the left."""
    shape = draw_shape(rng, ("llama", "qwen2", "gpt2"))
    model = make_model(shape)
    dtype = rng.choice(("fp32", "bf16", "fp16"))
    steps = rng.choice((0, 1))
    many = _words(rng, batch=8, steps=steps, padded=True)
    row = rng.randrange(8)
    kept = many.mask[row].bool()
    alone = Words(many.prompt[row : row + 1, kept], many.mask[row : row + 1, kept], many.following[row : row + 1])
    golden = record_torch(clone(model, dtype), folder / "golden", alone)
    mine = record_torch(clone(model, dtype), folder / "mine", many)
    return Pair(golden, mine, f"{shape}, {dtype}, sequence {row} of 8")


def _with_noise(rng: random.Random, folder: pathlib.Path) -> Pair:
    """The third run measures noise, and the threshold is lower."""
    shape = draw_shape(rng, ALL)
    model = make_model(shape)
    golden_type, my_type = rng.choice((("fp32", "bf16"), ("fp32", "fp16"), ("fp16", "bf16"), ("fp32", "fp32")))
    words = _words(rng)
    text = f"{golden_type} against sdpa {my_type}, "
    pair = _two(folder, shape, words, clone(model, golden_type), clone(model, my_type, "sdpa"), text)
    how = rng.choice(("repeated", "perturbed", "in my precision"))
    options = {"perturb": coarser(golden_type, my_type)} if how == "perturbed" else {}
    third = clone(model, my_type if how == "in my precision" else golden_type)
    pair.noise = record_torch(third, folder / "noise", words, **options)
    pair.description += f"with golden {how}"
    return pair


def _threads(rng: random.Random, folder: pathlib.Path) -> Pair:
    shape = draw_shape(rng, ("llama", "gpt2"), layers=rng.choice((2, 4, 8)), **LARGE)
    model = make_model(shape)
    dtype = rng.choice(("fp32", "fp32", "bf16"))
    words = _words(rng, batch=4)
    golden = record_torch(clone(model, dtype), folder / "golden", words)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        mine = record_torch(clone(model, dtype), folder / "mine", words)
    finally:
        torch.set_num_threads(before)
    return Pair(golden, mine, f"{shape}, {dtype}, 1 thread against 2")


def _recomputed(rng: random.Random, folder: pathlib.Path) -> Pair:
    """A cache of keys and values against computing all words anew for each."""
    shape = draw_shape(rng, ("llama", "qwen2", "gpt2"))
    model = make_model(shape)
    golden_type, my_type = rng.choice((("fp32", "fp32"), ("fp32", "bf16"), ("bf16", "bf16")))
    words = _words(rng, steps=2)
    golden = record_torch(clone(model, golden_type), folder / "golden", words, cached=False)
    mine = record_torch(clone(model, my_type), folder / "mine", words)
    return Pair(golden, mine, f"{shape}, {golden_type} without a cache against {my_type}")


def _near_ties(rng: random.Random, folder: pathlib.Path) -> Pair:
    """Experts between which rounding decides."""
    shape = draw_shape(rng, ("mixtral",))
    model = make_model(shape)
    with torch.no_grad():
        for layer in model.model.layers:
            weight = layer.mlp.gate.weight
            weight[1] = weight[0] + 0.003 * weight[1]
    golden_type, my_type = rng.choice((("fp32", "bf16"), ("fp32", "fp16"), ("fp16", "bf16")))
    text = f"{golden_type} against {my_type}, experts 0 and 1 nearly tied"
    return _two(folder, shape, _words(rng), clone(model, golden_type), clone(model, my_type), text)


def _compiled(backend: str) -> Callable:
    """Layers, or parts of them, that torch.compile has compiled: they are recorded from outside."""

    def make(rng: random.Random, folder: pathlib.Path) -> Pair:
        layers = rng.choice((2, 3)) if backend == "inductor" else rng.choice((2, 4, 12))
        shape = draw_shape(rng, ("llama", "qwen2", "gpt2"), layers=layers)
        model = make_model(shape)
        golden_type, my_type = rng.choice((("fp32", "fp32"), ("fp32", "bf16"), ("bf16", "bf16")))
        mine = clone(model, my_type, "sdpa" if rng.random() < 0.5 else None)
        torch._dynamo.reset()
        whole = rng.random() < 0.5
        for layer in mine.get_submodule(shape.names.layers):
            if whole:
                layer.mlp = torch.compile(layer.mlp, backend=backend)
            else:
                for norm in shape.names.norms:
                    setattr(layer, norm, torch.compile(getattr(layer, norm), backend=backend))
        words = _words(rng, steps=0)
        text = f"eager {golden_type} against {backend} {my_type}, {'mlps' if whole else 'norms'} compiled"
        return _two(folder, shape, words, clone(model, golden_type), mine, text)

    return make


# The embedded acceleration library


def _engine_torch(rng: random.Random, folder: pathlib.Path) -> Pair:
    model = draw_engine_model(rng, folder, steps=rng.choice((0, 2)))
    golden_type, my_type = rng.choice((("fp32", "fp16"), ("fp32", "bf16"), ("fp32", "fp32"), ("fp16", "fp16")))
    golden = record_torch(model.copy(golden_type), folder / "golden", model.words)
    mine = model.record(folder / "mine", my_type)
    return Pair(golden, mine, f"{model.shape}, torch in {golden_type} against the engine in {my_type}")


def _engine_types(rng: random.Random, folder: pathlib.Path) -> Pair:
    model = draw_engine_model(rng, folder, steps=rng.choice((0, 2)), layers=rng.choice((2, 4, 12, 40)))
    golden_type, my_type = rng.choice((("fp32", "fp16"), ("fp32", "bf16"), ("fp16", "bf16")))
    golden = model.record(folder / "golden", golden_type)
    mine = model.record(folder / "mine", my_type)
    return Pair(golden, mine, f"{model.shape}, the engine in {golden_type} against {my_type}")


def _processes(rng: random.Random, folder: pathlib.Path) -> Pair:
    model = draw_engine_model(rng, folder, steps=rng.choice((0, 2)))
    dtype = rng.choice(("fp32", "fp16", "bf16"))
    if rng.random() < 0.3:
        golden = record_torch(model.copy("fp32"), folder / "golden", model.words)
    else:
        golden = model.record(folder / "golden", dtype)
    mine = model.record(folder / "mine", dtype, "--tp", "2")
    return Pair(golden, mine, f"{model.shape}, {dtype}, one process against two")


def _quantised(rng: random.Random, folder: pathlib.Path) -> Pair:
    """Weights are the same to the bit, so activations alone are quantised."""
    model = draw_engine_model(rng, folder, steps=rng.choice((0, 1)), rounded=True)
    golden_type = rng.choice(("fp32", "fp16"))
    if rng.random() < 0.5:
        golden = record_torch(model.copy(golden_type), folder / "golden", model.words)
    else:
        golden = model.record(folder / "golden", golden_type)
    mine = model.record(folder / "mine", "w8a8")
    return Pair(golden, mine, f"{model.shape}, {golden_type} against w8a8 of the same weights")


def _engine_padding(rng: random.Random, folder: pathlib.Path) -> Pair:
    model = draw_engine_model(rng, folder, steps=1, lengths=[rng.randint(3, 9) for _ in range(3)])
    dtype = rng.choice(("fp32", "fp16", "bf16"))
    golden = model.record(folder / "golden", dtype)
    mine = model.record(folder / "mine", dtype, padded=True)
    return Pair(golden, mine, f"{model.shape}, {dtype}, prompts one after another against padded")


AT_MOST = {"inductor": 2}  # cases of a kind in each half: it compiles for seconds

KINDS: dict[str, Callable[[random.Random, pathlib.Path], Pair]] = {
    "fp32-bf16": _types("fp32", "bf16"),
    "fp32-fp16": _types("fp32", "fp16"),
    "fp16-bf16": _types("fp16", "bf16"),
    "bf16-fp32": _types("bf16", "fp32"),
    "40-layers": _deep,
    "extreme-norms": _extreme,
    "eager-sdpa": _attention,
    "batch-1-8": _batch,
    "threads": _threads,
    "cache-recomputed": _recomputed,
    "near-ties": _near_ties,
    "with-noise-run": _with_noise,
    "compiled": _compiled("aot_eager"),
    "inductor": _compiled("inductor"),
    "engine-torch": _engine_torch,
    "engine-types": _engine_types,
    "one-two-processes": _processes,
    "w8a8": _quantised,
    "engine-padding": _engine_padding,
}
