"""The functions of the package: load, save, compare, statistics."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from ait_llm import _native
from ait_llm._errors import AitError
from ait_llm._tensor import Tensor, operand_of

if TYPE_CHECKING:
    import numpy
    import torch

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Comparable = Union[Path, Tensor, "numpy.ndarray", "torch.Tensor"]

MASK_EPSILON = 2.0**-23
"""Golden values no larger than this count as zero in the masked relative error."""


def load(
    path: Path,
    name: str | None = None,
    dtype: str | None = None,
    shape: Sequence[int] | None = None,
) -> Tensor | dict[str, Tensor]:
    """Opens a tensor file of any format that ait knows; the content decides, not the extension.

    A file that holds one bare tensor (.npy, ATB .bin, torch.save of a tensor) gives a Tensor; a container
    (.npz, safetensors, torch.save of dicts and lists) gives a dict, nested names joined as "layers.0.weight".
    `name` picks one tensor of a container. With `dtype` the file is taken as raw bytes; `shape` then says how
    they are arranged, one dimension without it. Data is mapped, not read; deflated members are inflated.
    """
    encoded = os.fsencode(path)
    dims = None if shape is None else [int(dimension) for dimension in shape]
    if name is not None:
        return Tensor(_native.load_one(encoded, name, dtype, dims))
    tensors = _native.load_all(encoded, dtype, dims)
    if len(tensors) == 1 and tensors[0][0] == "":
        return Tensor(tensors[0][1])
    return {each: Tensor(operand) for each, operand in tensors}


def save(path: Path, tensors: Comparable | Mapping[str, Comparable]) -> None:
    """Writes one tensor, or a dict of them, in the format that the extension names.

    .bin (ATB), .npy, .pth and .pt (torch.save; loads with weights_only=True) and .safetensors. A dict needs
    one of the last two. The file appears under its name only when it is complete.
    """
    pairs = tensors.items() if isinstance(tensors, Mapping) else [("", tensors)]
    _native.save(os.fsencode(path), [(name, _resolve(tensor)) for name, tensor in pairs])


def compare(
    golden: Comparable,
    actual: Comparable,
    *,
    kl: bool = True,
    rows: bool = False,
    threads: int = 1,
    relative: str = "masked",
    epsilon: float = MASK_EPSILON,
    thresholds: Sequence[float] = (),
    non_finite: str = "skip",
    mask_absolute: bool = False,
) -> _native.Comparison:
    """Measures `actual` against `golden`, element by element in row-major order, in one pass.

    Both must have equally many elements; their shapes and types may differ. Positions where either side is NaN
    or infinite are counted and left out, or withhold every metric with non_finite="withhold".

    `relative` is the definition of the relative error: "masked" |m/g - 1| where |g| > epsilon and else 0,
    "plain" |m - g| / |g|, "damped" |m - g| / (|g| + epsilon). `passes` of the result counts, for each of up to
    four `thresholds`, the elements whose relative error is below it. `rows` adds the worst row of the last
    dimension and KL row by row. `threads` 0 means all cores; the answer is the same for any number.
    """
    return _native.compare(
        _resolve(golden),
        _resolve(actual),
        kl,
        rows,
        threads,
        relative,
        epsilon,
        list(thresholds),
        non_finite,
        mask_absolute,
    )


def statistics(tensor: Comparable, *, threads: int = 1) -> _native.Statistics:
    """Minimum, maximum, mean, norms and the number of NaN and infinite elements of one tensor."""
    return _native.statistics(_resolve(tensor), threads)


def _resolve(value: Any) -> _native.Operand:
    """A path's only tensor, or the tensor that was given."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return _native.load_one(os.fsencode(value), "", None, None)
    if isinstance(value, Mapping):
        raise AitError("a single tensor is expected, not a dict; pick one by its name")
    return operand_of(value)
