"""The tensors inside the arguments and results of a call, each with the name of its file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ait_llm._file_names import part_of_name

MAX_DEPTH = 16
"""Of lists in lists: nobody's results are nested like this, but some objects contain themselves."""

# Values that are no data of the model, or too small to matter.
PLAIN = (type(None), bool, int, float, complex, str, bytes, type, slice, torch.dtype, torch.device, torch.layout)

Leaf = tuple[str, Any]


def file_name(text: str) -> str:
    """`text` in the name of a module's folder or of a tensor; "#" counts calls there."""
    return part_of_name(text, "#")


def of_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Leaf]:
    """`input_0`, `input_1_0` for what is nested, `input_{name}` for keyword arguments."""
    yield from _unique(_pieces((args, kwargs), "input"))


def of_output(output: Any) -> Iterator[Leaf]:
    """`output` for a single tensor, else `output_0`, `output_{key}`."""
    yield from _unique(walk(output, "output", 0))


def _pieces(both: tuple[tuple[Any, ...], dict[str, Any]], stem: str) -> Iterator[Leaf]:
    args, kwargs = both
    for index, value in enumerate(args):
        yield from walk(value, f"{stem}_{index}", 1)
    for name, value in kwargs.items():
        yield from walk(value, f"{stem}_{file_name(name)}", 1)


def walk(value: Any, stem: str, depth: int) -> Iterator[Leaf]:
    """Pairs of a stem and a tensor, or an object that is not looked into."""
    if isinstance(value, torch.Tensor):
        yield stem, value
    elif isinstance(value, PLAIN) or callable(value):
        return
    elif depth == MAX_DEPTH:
        yield stem, value
    elif isinstance(value, (tuple, list)):
        for index, each in enumerate(value):
            yield from walk(each, f"{stem}_{index}", depth + 1)
    elif isinstance(value, Mapping):  # transformers' ModelOutput, too
        for key, each in value.items():
            yield from walk(each, f"{stem}_{file_name(str(key))}", depth + 1)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from walk(getattr(value, field.name, None), f"{stem}_{file_name(field.name)}", depth + 1)
    else:
        yield stem, value


def _unique(found: Iterator[Leaf]) -> Iterator[Leaf]:
    """A key "0_1" and a nested list may want the same name."""
    used: dict[str, int] = {}
    for stem, value in found:
        again = used.get(stem, 0)
        used[stem] = again + 1
        yield (f"{stem}#{again}" if again else stem), value
