"""The functions of the package: load, save, compare, compare_runs, open_rows, statistics."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union, overload

from ait_llm import _native
from ait_llm._errors import AitError
from ait_llm._tensor import Tensor, operand_of

if TYPE_CHECKING:
    import numpy
    import torch

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Comparable = Union[Path, Tensor, "numpy.ndarray", "torch.Tensor"]
TokenMap = Union[str, Mapping[Any, Any]]

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

    .bin (ATB), .npy, .npz, .pth and .pt (torch.save; loads with weights_only=True) and .safetensors. A dict
    needs one of the last three. The file appears under its name only when it is complete.
    """
    pairs = tensors.items() if isinstance(tensors, Mapping) else [("", tensors)]
    _native.save(os.fsencode(path), [(name, _resolve(tensor)) for name, tensor in pairs])


@overload
def compare(
    golden: Path,
    actual: Path | None = None,
    *,
    kl: bool = ...,
    rows: bool = ...,
    threads: int | None = ...,
    relative: str = ...,
    epsilon: float = ...,
    thresholds: Sequence[float] = ...,
    non_finite: str = ...,
    mask_absolute: bool = ...,
    mapping_file: Path | None = ...,
    token_map: TokenMap | None = ...,
    metric_compat: str | None = ...,
) -> Any: ...  # a Comparison or Rows: what lies at the paths decides
@overload
def compare(
    golden: Comparable,
    actual: Comparable,
    *,
    kl: bool = ...,
    rows: bool = ...,
    threads: int | None = ...,
    relative: str = ...,
    epsilon: float = ...,
    thresholds: Sequence[float] = ...,
    non_finite: str = ...,
    mask_absolute: bool = ...,
) -> _native.Comparison: ...
def compare(
    golden: Comparable,
    actual: Comparable | None = None,
    *,
    kl: bool = True,
    rows: bool = False,
    threads: int | None = None,
    relative: str = "masked",
    epsilon: float = MASK_EPSILON,
    thresholds: Sequence[float] = (),
    non_finite: str = "skip",
    mask_absolute: bool = False,
    mapping_file: Path | None = None,
    token_map: TokenMap | None = None,
    metric_compat: str | None = None,
) -> _native.Comparison | _native.Rows:
    """Measures `actual` against `golden`.

    Two tensors (arrays, torch tensors, paths of files that hold one tensor) give a Comparison. Two paths of what
    `ait llm compare` takes for a list (dumps, checkpoints, folders, a manual mapping) give Rows, as compare_runs
    does, with `rows` and the last three arguments; the other ones are for two tensors alone. Where it is known
    that there is a list, compare_runs says so to the reader and to type checkers.

    Two tensors are measured element by element in row-major order, in one pass. Both must have equally many
    elements; their shapes and types may differ. Positions where either side is NaN or infinite are counted and
    left out, or withhold every metric with non_finite="withhold".

    `relative` is the definition of the relative error: "masked" |m/g - 1| where |g| > epsilon and else 0,
    "plain" |m - g| / |g|, "damped" |m - g| / (|g| + epsilon). `passes` of the result counts, for each of up to
    four `thresholds`, the elements whose relative error is below it. `rows` adds the worst row of the last
    dimension and KL row by row. `threads` 0 means all cores; without it two tensors are measured by one thread,
    runs by all. The answer is the same for any number.
    """
    of_tensors = {
        "kl": (kl, True),
        "relative": (relative, "masked"),
        "epsilon": (epsilon, MASK_EPSILON),
        "thresholds": (list(thresholds), []),
        "non_finite": (non_finite, "skip"),
        "mask_absolute": (mask_absolute, False),
    }
    of_runs: dict[str, object] = {
        "mapping_file": mapping_file,
        "token_map": token_map,
        "metric_compat": metric_compat,
    }
    if _is_path(golden) and (actual is None or _is_path(actual)):
        found = _pair_runs(golden, actual, mapping_file, token_map, metric_compat, rows, threads)
        if found is not None:
            _refuse((name for name, (value, usual) in of_tensors.items() if value != usual), "two tensors", "runs")
            return found
    _refuse((name for name, value in of_runs.items() if value is not None), "runs", "two tensors")
    return _native.compare(
        _resolve(golden),
        _resolve(actual),
        kl,
        rows,
        1 if threads is None else threads,
        relative,
        epsilon,
        list(thresholds),
        non_finite,
        mask_absolute,
    )


def compare_runs(
    golden: Path,
    actual: Path | None = None,
    *,
    mapping_file: Path | None = None,
    token_map: TokenMap | None = None,
    metric_compat: str | None = None,
    rows: bool = False,
    threads: int | None = None,
) -> _native.Rows:
    """Pairs the tensors of two runs as `ait llm compare` does, and measures each pair when it is asked for.

        for row in compare_runs("torch_run", "my_run"):
            if row.cosine_similarity is not None and row.cosine_similarity < 0.999:
                print(row.subject, row.golden.paths, row.actual.paths)
                break

    The paths are two dumps, two checkpoints, two folders, or one folder with a manual mapping; `actual` then
    only says where my files have moved to, if they have. Pairing is done when the function returns; measuring
    runs ahead of each loop over the result by a few hundred rows and ends with the loop. A pair that cannot be
    measured is a row with its `reason`.

    `mapping_file` names types that correspond and `token_map` ({0: 1} or "0:1") which of my rounds belongs to
    which golden token, both for dumps. `metric_compat` "msit" or "ait" takes the old tools' definitions. `rows`
    adds the worst row of each tensor and KL row by row. `threads`: all cores without it.
    """
    found = _pair_runs(golden, actual, mapping_file, token_map, metric_compat, rows, threads)
    if found is None:
        raise AitError("two files of one tensor each are not runs; give them to compare()")
    return found


def open_rows(path: Path) -> _native.RowStore:
    """The rows of a report, from the file that `ait llm compare` leaves beside the csv: by number, or in order."""
    return _native.open_rows(os.fsencode(path))


def statistics(tensor: Comparable, *, threads: int = 1) -> _native.Statistics:
    """Minimum, maximum, mean, norms and the number of NaN and infinite elements of one tensor."""
    return _native.statistics(_resolve(tensor), threads)


def _pair_runs(
    golden: Any,
    actual: Any,
    mapping_file: Path | None,
    token_map: TokenMap | None,
    metric_compat: str | None,
    rows: bool,
    threads: int | None,
) -> _native.Rows | None:
    """None where the paths are two files of one tensor each."""
    if isinstance(token_map, Mapping):
        token_map = ",".join(f"{token}:{folder}" for token, folder in token_map.items())
    return _native.pair_runs(
        os.fsencode(golden),
        b"" if actual is None else os.fsencode(actual),
        b"" if mapping_file is None else os.fsencode(mapping_file),
        token_map or "",
        metric_compat,
        rows,
        threads or 0,
    )


def _refuse(given: Iterable[str], meant_for: str, met: str) -> None:
    names = ", ".join(given)
    if names:
        raise AitError(f"{names}: for {meant_for}, but these are {met}")


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


def _resolve(value: Any) -> _native.Operand:
    """A path's only tensor, or the tensor that was given."""
    if _is_path(value):
        return _native.load_one(os.fsencode(value), "", None, None)
    if isinstance(value, Mapping):
        raise AitError("a single tensor is expected, not a dict; pick one by its name")
    return operand_of(value)
