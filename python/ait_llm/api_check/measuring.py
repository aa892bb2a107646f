"""Extremes of tensors, for the records of calls."""

from __future__ import annotations

from typing import Any

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump.store import operand

EXACT_IN_DOUBLE = 2**53
MAX_PENDING = 256
"""Of tensors whose extremes are still on a device."""

Entry = dict[str, Any]


class Measuring:
    """Fills in Max and Min: at once for tensors on the CPU, together and later for those on a device."""

    def __init__(self) -> None:
        self._pending: list[tuple[Entry, torch.Tensor, torch.Tensor]] = []

    @property
    def pending(self) -> int:
        return len(self._pending)

    def measure(self, entry: Entry, tensor: torch.Tensor) -> None:
        """`tensor` is plain (torch_dump/store.py)."""
        if tensor.numel() == 0:
            return
        with torch.no_grad():
            if tensor.is_complex():
                entry["complex"] = True
                tensor = tensor.abs()
            if tensor.is_floating_point() and tensor.element_size() == 1:  # 8-bit floats can do next to nothing
                tensor = tensor.to(torch.float32)
            if tensor.device.type == "cpu":
                _measure_here(entry, tensor)
            else:
                self._pending.append((entry, tensor, _reduced(tensor)))

    def settle(self) -> None:
        pending, self._pending = self._pending, []
        kinds: dict[tuple[torch.device, torch.dtype], list[tuple[Entry, torch.Tensor, torch.Tensor]]] = {}
        for each in pending:
            kinds.setdefault((each[2].device, each[2].dtype), []).append(each)
        for entries in kinds.values():
            # One copy off the device for all of a kind.
            for (entry, tensor, _), numbers in zip(entries, torch.stack([each[2] for each in entries]).tolist()):
                _fill(entry, tensor.dtype, numbers, tensor.numel())


def _reduced(tensor: torch.Tensor) -> torch.Tensor:
    """On its device: low and high, of floating-point types also those of the finite elements; of bool the True."""
    if tensor.dtype == torch.bool:
        return tensor.sum(dtype=torch.int64).reshape(1)
    if not tensor.is_floating_point():
        return torch.stack(torch.aminmax(tensor.to(torch.int64)))
    finite = tensor.isfinite()
    inf = float("inf")
    low = torch.where(finite, tensor, inf).amin() if tensor.is_cuda else tensor.masked_fill(~finite, inf).amin()
    high = torch.where(finite, tensor, -inf).amax() if tensor.is_cuda else tensor.masked_fill(~finite, -inf).amax()
    return torch.stack([*torch.aminmax(tensor), low, high]).to(torch.float64 if tensor.is_cuda else torch.float32)


def _fill(entry: Entry, dtype: torch.dtype, numbers: list[Any], elements: int) -> None:
    if dtype == torch.bool:
        _fill_bool(entry, numbers[0], elements)
        return
    entry["Min"], entry["Max"] = numbers[:2]
    if len(numbers) == 4 and not all(abs(each) < float("inf") for each in numbers[:2]):  # NaN is not below it, either
        _fill_finite(entry, numbers[2], numbers[3])


def _fill_bool(entry: Entry, true_count: int, elements: int) -> None:
    entry["Max"], entry["Min"] = int(true_count > 0), int(true_count == elements)
    if 0 < true_count < elements:
        entry["true_count"] = true_count


def _fill_finite(entry: Entry, low: float, high: float) -> None:
    if low <= high:  # else there is no finite element
        entry["Max_except_inf_nan"], entry["Min_except_inf_nan"] = high, low


def _measure_here(entry: Entry, tensor: torch.Tensor) -> None:
    if tensor.dtype == torch.bool:
        _fill_bool(entry, int(torch.count_nonzero(tensor)), tensor.numel())
        return
    found = _native.statistics(operand(tensor), 1)
    low, high = found.minimum, found.maximum
    if tensor.is_floating_point():
        entry["Max"], entry["Min"] = high, low
        if found.nan + found.positive_inf + found.negative_inf:
            finite = tensor[tensor.isfinite()]
            if finite.numel():
                seen = _native.statistics(operand(finite), 1)
                _fill_finite(entry, seen.minimum, seen.maximum)
    elif max(abs(low), abs(high)) < EXACT_IN_DOUBLE:
        entry["Max"], entry["Min"] = int(high), int(low)
    else:
        lowest, highest = torch.aminmax(tensor)
        entry["Max"], entry["Min"] = int(highest), int(lowest)
