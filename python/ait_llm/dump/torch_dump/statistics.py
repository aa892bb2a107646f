"""Extremes, mean and norm of a tensor, by ait's own code on the CPU and by torch's operations on a device."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump.store import operand

MAX_PENDING = 4096
"""Of tensors whose statistics are still on a device."""

MAX_WIDENED = 1 << 25
"""Elements that are made float64 at once: 256 MiB."""

# Of a row of a table: the table's number and its own.
Place = tuple[int, int]
# Maximum, minimum, mean, norm.
Values = tuple[float, float, float, float]
# Maximum, minimum, sum, norm, still on their device.
Reduced = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def measure(tensor: torch.Tensor) -> Values | None:
    """Of a plain tensor on the CPU."""
    if tensor.numel() == 0:
        return None
    found = _native.statistics(operand(tensor), 1)
    return found.maximum, found.minimum, found.mean, found.l2_norm


class OnDevice:
    """Statistics of tensors where they are: to move a tensor off its device takes longer than to look at it there.

    Sums are in float64, as on the CPU; their order is the device's. Results are fetched together, so that nobody waits
    for the device in between.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[Place, int, Reduced]] = []

    @staticmethod
    def takes(tensor: torch.Tensor) -> bool:
        """Other devices have no float64, or pretend to."""
        return tensor.device.type == "cuda"

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def full(self) -> bool:
        return len(self._pending) >= MAX_PENDING

    def add(self, place: Place, tensor: torch.Tensor) -> None:
        if tensor.numel() == 0:
            return
        with torch.no_grad():
            if tensor.is_complex():
                tensor = torch.view_as_real(tensor)
            self._pending.append((place, tensor.numel(), _reduce(tensor)))

    def fetch(self) -> Iterator[tuple[Place, Values]]:
        """The numbers of every row so far."""
        pending, self._pending = self._pending, []
        by_kind: dict[tuple[torch.device, torch.dtype], list[tuple[Place, int, Reduced]]] = {}
        for entry in pending:
            high = entry[2][0]
            by_kind.setdefault((high.device, high.dtype), []).append(entry)
        for entries in by_kind.values():
            # One copy of all the numbers of a kind, not one for each.
            columns = [torch.stack(column).tolist() for column in zip(*(reduced for _, _, reduced in entries))]
            for (place, elements, _), high, low, total, norm in zip(entries, *columns):
                yield place, (float(high), float(low), total / elements, norm)


_WEAK = (torch.float16, "cpu")


def _reduce(tensor: torch.Tensor) -> Reduced:
    """As few calls as possible: on small tensors each costs more than its work."""
    if tensor.numel() > MAX_WIDENED:
        highs, lows, totals, norms = zip(*(_reduce(part) for part in tensor.reshape(-1).split(MAX_WIDENED)))
        low, high = torch.stack(lows).amin(), torch.stack(highs).amax()
        return high, low, torch.stack(totals).sum(), torch.linalg.vector_norm(torch.stack(norms))
    # 8-bit floats can do next to nothing, and halves of older versions no more on the CPU.
    if tensor.is_floating_point() and (tensor.element_size() == 1 or (tensor.dtype, tensor.device.type) == _WEAK):
        tensor = tensor.to(torch.float32)
    elif not tensor.is_floating_point():
        tensor = tensor.to(torch.float64)
    low, high = torch.aminmax(tensor)
    # The norm is that of the finite elements, as on the CPU.
    finite = torch.nan_to_num(tensor, nan=0.0, posinf=0.0, neginf=0.0)
    return high, low, tensor.sum(dtype=torch.float64), torch.linalg.vector_norm(finite, dtype=torch.float64)
