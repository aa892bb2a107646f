"""The arguments of a call as JSON, in the older tool's words. See docs/api-check.md for each kind."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, Callable

import torch

from ait_llm.api_check.measuring import Entry, Measuring
from ait_llm.dump.torch_dump.store import NotStorable, plain

MAX_DEPTH = 64
"""Of lists in lists: nobody's arguments are nested like this, but some lists contain themselves."""
MAX_ITEMS = 4096
"""Of all lists of one call."""

_SCALARS = (bool, int, float, str)
_TORCH_WORDS = (torch.dtype, torch.memory_format, torch.layout)


class Describer:
    """Of the arguments of one call, or of its gradients."""

    def __init__(self, measuring: Measuring | None, store: Callable[[torch.Tensor, int], str] | None = None) -> None:
        self._measuring = measuring  # None where extremes are of no use
        self._store = store  # where tensors themselves are kept: says where one is to be found
        self._number = 0  # of a value, as it stands in the names of files
        self._items = 0

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any], is_indexing: bool = False) -> Entry:
        described = [self.value(value) for value in args[:1]]
        described += [self.value(value, lists_matter=is_indexing) for value in args[1:]]
        return {"args": described, "kwargs": {name: self._keyword(name, value) for name, value in kwargs.items()}}

    def value(self, value: Any, depth: int = 0, lists_matter: bool = False) -> Any:
        """In an index a list is something else than a tuple; elsewhere nobody can tell."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)):
            self._items += len(value)
            if depth == MAX_DEPTH or self._items > MAX_ITEMS:
                return _unsupported(value, "is too long or too deep")
            inner = [self.value(each, depth + 1, lists_matter) for each in value]
            return {"type": "list", "value": inner} if lists_matter and isinstance(value, list) else inner
        if isinstance(value, Mapping):
            self._items += len(value)
            if depth == MAX_DEPTH or self._items > MAX_ITEMS:
                return _unsupported(value, "is too long or too deep")
            return {str(name): self._keyword(str(name), each, depth + 1) for name, each in value.items()}
        return self._leaf(value)

    def _keyword(self, name: str, value: Any, depth: int = 0) -> Any:
        if name == "device" and isinstance(value, (str, int)) and not isinstance(value, bool):
            return {"type": "torch.device", "value": str(value)}
        return self.value(value, depth)

    def _leaf(self, value: Any) -> Entry:
        if isinstance(value, torch.device):
            return {"type": "torch.device", "value": str(value)}
        if isinstance(value, _TORCH_WORDS):
            return {"type": f"torch.{type(value).__name__}", "value": str(value)}
        self._number += 1
        if value is None:
            return {"type": "NoneType", "value": None}
        if isinstance(value, slice):
            ends = [value.start, value.stop, value.step]
            if all(each is None or isinstance(each, int) for each in ends):
                return {"type": "slice", "value": ends}
            return _unsupported(value, "has ends that are not integers")
        if value is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        if isinstance(value, _SCALARS):
            kind = type(value)
            named = kind.__name__ if kind in _SCALARS else f"{kind.__module__}.{kind.__qualname__}"
            base = next(each for each in _SCALARS if isinstance(value, each))
            return {"type": named, "value": value if kind in _SCALARS else base(value)}
        return _number(value) or _unsupported(value, "is not a value that can be written down")

    def _tensor(self, tensor: torch.Tensor) -> Entry:
        number, self._number = self._number, self._number + 1
        entry: Entry = {"type": "torch.Tensor"}
        try:
            dense, _ = plain(tensor)
            if self._store is not None:
                entry.update(datapath=self._store(dense, number), requires_grad=tensor.requires_grad)
                return entry if dense.is_contiguous() else {**entry, "stride": list(dense.stride())}
        except NotStorable as error:
            dense, entry["unsupported"] = None, str(error)
        entry.update(dtype=str(tensor.dtype), shape=list(tensor.shape), Max=None, Min=None)
        if dense is not None:
            if not dense.is_contiguous():
                entry["stride"] = list(dense.stride())
            if self._measuring is not None:
                self._measuring.measure(entry, dense)
        entry["requires_grad"] = tensor.requires_grad
        return entry


def _number(value: Any) -> Entry | None:
    """Of other libraries, NumPy's for one, and complex ones."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if isinstance(value, numbers.Integral):
        return {"type": kind, "value": int(value)}
    if isinstance(value, numbers.Real):
        return {"type": kind, "value": float(value)}
    if isinstance(value, numbers.Complex):
        return {"type": kind, "value": [complex(value).real, complex(value).imag]}
    if type(value).__name__ == "bool_":
        return {"type": kind, "value": bool(value)}
    return None


def _unsupported(value: Any, why: str) -> Entry:
    kind = type(value)
    return {"type": f"{kind.__module__}.{kind.__qualname__}", "value": None, "unsupported": why}
