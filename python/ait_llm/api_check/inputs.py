"""Arguments of a recorded call, made again: drawn within the recorded extremes, or read from real data."""

from __future__ import annotations

import math
import os
from typing import Any, Callable

import torch

import ait_llm
from ait_llm import _native
from ait_llm._errors import AitError
from ait_llm.api_check.apis import Api
from ait_llm.api_check.files import REAL_DATA
from ait_llm.dump.torch_dump.store import dtype_names

MAX_DIMENSIONS = 64
MAX_DEPTH = 64
_MAX_MOVED = 3  # forward_real_data/rank0/name
COPIES = 6
"""Of each input: as drawn, on the device, in the benchmark's precision (which is twice as wide), and gradients."""

DTYPES: dict[str, torch.dtype] = {str(value): value for value in vars(torch).values() if isinstance(value, torch.dtype)}
_WORDS: dict[str, dict[str, Any]] = {
    "torch.dtype": DTYPES,
    "torch.memory_format": {
        str(value): value for value in vars(torch).values() if isinstance(value, torch.memory_format)
    },
    "torch.layout": {str(value): value for value in vars(torch).values() if isinstance(value, torch.layout)},
}
_TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter")


class Skip(Exception):
    """Says in one sentence why a call cannot be run again."""


class Slot:
    """Where a tensor goes: each run gets a copy of its own."""

    __slots__ = ("requires_grad", "tensor")

    def __init__(self, tensor: torch.Tensor, requires_grad: bool) -> None:
        self.tensor = tensor
        self.requires_grad = requires_grad and (tensor.is_floating_point() or tensor.is_complex())


class DeviceSlot:
    """Where a device goes: each run has its own."""


class Source:
    """Makes values of one call."""

    def __init__(self, key: str, seed: int, max_bytes: int, data_folders: list[str]) -> None:
        self._key = key
        self._seed = seed
        self._max_bytes = max_bytes
        self._data_folders = data_folders
        self._tensors = 0
        self._bytes = 0
        self.is_drawn = False  # not all of it is real data

    def arguments(self, api: Api, record: Any) -> tuple[list[Any], dict[str, Any]]:
        if not isinstance(record, dict) or not isinstance(record.get("args"), list):
            raise Skip("the record has no list of arguments")
        kwargs = record.get("kwargs", {})
        if not isinstance(kwargs, dict):
            raise Skip("the record's keyword arguments are not an object")
        described = _with_classes(record["args"]) if api.name in ("cross_entropy", "nll_loss") else record["args"]
        is_index = api.name in ("__getitem__", "__setitem__")
        args = [self.value(each, is_index=is_index and place > 0) for place, each in enumerate(described)]
        if api.name == "to" and len(args) > 1 and isinstance(args[1], (str, int)):  # x.to("npu:0"), x.to(0)
            args[1] = DeviceSlot()
        return args, {name: self._keyword(name, each) for name, each in kwargs.items()}

    def value(self, entry: Any, depth: int = 0, is_index: bool = False) -> Any:
        if depth > MAX_DEPTH:
            raise Skip("the arguments are nested too deeply")
        if isinstance(entry, list):
            inner = [self.value(each, depth + 1, is_index) for each in entry]
            return tuple(inner) if is_index else inner
        if not isinstance(entry, dict):
            raise Skip("an argument is described by neither an object nor a list")
        kind = entry.get("type")
        if not isinstance(kind, str):
            return {name: self._keyword(name, each, depth + 1) for name, each in entry.items()}
        if entry.get("unsupported"):
            raise Skip(f"an argument of type {_shortened(kind)} could not be recorded")
        if kind in _TENSORS:
            return self._slot(entry)
        if kind == "list":
            return list(self.value(entry.get("value"), depth + 1))
        return _plain_value(kind, entry.get("value"))

    def _keyword(self, name: str, entry: Any, depth: int = 0) -> Any:
        if isinstance(entry, dict) and entry.get("type") == "torch.device":
            return DeviceSlot()
        return self.value(entry, depth)

    # Tensors

    def _slot(self, entry: dict[str, Any]) -> Slot:
        number, self._tensors = self._tensors, self._tensors + 1
        tensor = self._loaded(entry) if "datapath" in entry else self._draw(entry, number)
        return Slot(tensor, entry.get("requires_grad") is True)

    def _account_for(self, elements: int, dtype: torch.dtype) -> None:
        self._bytes += elements * torch.empty((), dtype=dtype).element_size() * COPIES
        if self._bytes > self._max_bytes:
            raise Skip(
                f"its inputs need {self._bytes} bytes for all copies, more than the {self._max_bytes} of --max_memory"
            )

    def _loaded(self, entry: dict[str, Any]) -> torch.Tensor:
        tensor = self._load(entry["datapath"])
        if "stride" not in entry:
            return tensor
        shape, strides = list(tensor.shape), _sizes(entry["stride"])
        span = _span(shape, strides)
        self._account_for(span, tensor.dtype)
        storage = torch.empty(span, dtype=tensor.dtype)
        # What is repeated is written once.
        single = [1 if step == 0 else size for size, step in zip(shape, strides)]
        try:
            storage.as_strided(single, strides).copy_(tensor[tuple(slice(0, size) for size in single)])
        except RuntimeError:  # parts lie over each other in another way
            return tensor
        return storage.as_strided(shape, strides)

    def _load(self, path: Any) -> torch.Tensor:
        if not isinstance(path, str) or "\0" in path or not path.endswith((".pt", ".npy")):
            raise Skip("datapath must be the path of a .pt or .npy file")
        found = self._find(path)
        try:
            loaded = ait_llm.load(found)
        except AitError as error:
            raise Skip(f"real data: {error}") from None
        if not isinstance(loaded, ait_llm.Tensor):
            raise Skip(f"{found} holds several tensors; one was expected")
        self._account_for(math.prod(loaded.shape), DTYPES.get(f"torch.{loaded.dtype}", torch.float64))
        return loaded.torch(copy=True)

    def _find(self, path: str) -> str:
        """Inside one of the folders: a file that says where data lie may have been written by anybody."""
        parts = path.split("/")
        for folder in self._data_folders:
            root = os.path.realpath(folder)
            # The recording as a whole may have been moved.
            moved = (os.path.join(root, *parts[-depth:]) for depth in range(min(_MAX_MOVED, len(parts)), 0, -1))
            for candidate in (os.path.join(root, path), *moved):
                real = os.path.realpath(candidate)
                if os.path.commonpath([root, real]) == root and os.path.isfile(real):
                    return real
        if self._is_of_recording(path):
            return path
        raise Skip(
            f"{_shortened(path)} is not below the folder of the record; name the folder of the data by --data_path"
        )

    def _is_of_recording(self, path: str) -> bool:
        """Where a recording put the data of this call: the file of records alone may have been moved."""
        folder, name = os.path.split(path)
        place = os.path.basename(folder)
        if place.startswith("rank"):
            place = os.path.basename(os.path.dirname(folder))
        is_name = name.rsplit(".", 2)[0] == self._key and place in REAL_DATA.values()
        return is_name and os.path.isabs(path) and os.path.realpath(path) == path and os.path.isfile(path)

    def _draw(self, entry: dict[str, Any], number: int) -> torch.Tensor:
        dtype = DTYPES.get(entry.get("dtype", "")) if isinstance(entry.get("dtype"), str) else None
        if dtype is None or (dtype not in dtype_names and dtype != torch.bool):
            raise Skip(f"Dtype is not supported: {_shortened(str(entry.get('dtype')))}")
        shape = _sizes(entry.get("shape"))
        elements = math.prod(shape)
        strides = entry.get("stride")
        span = elements
        if strides is not None:
            strides = _sizes(strides)
            span = _span(shape, strides)
        self._account_for(max(span, elements), dtype)
        storage = torch.empty(span, dtype=dtype)
        if span:
            self.is_drawn = True
            self._fill(storage, entry, number)
        return storage.view(shape) if strides is None else storage.as_strided(shape, strides)

    def _fill(self, storage: torch.Tensor, entry: dict[str, Any], number: int) -> None:
        low, high = entry.get("Min"), entry.get("Max")
        if not all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (low, high)):
            raise Skip(f"Data info Min: {low} , Max: {high}, info type must be int or float.")
        assert isinstance(low, (int, float)) and isinstance(high, (int, float))
        if storage.dtype == torch.bool:
            self._fill_mask(storage, entry, number, low, high)
        elif storage.is_complex():
            side = float(high) / math.sqrt(2)
            self._fill_reals(torch.view_as_real(storage).view(-1), {}, number, -side, side)
        elif storage.is_floating_point():
            self._fill_reals(storage, entry, number, float(low), float(high))
        else:
            limits = torch.iinfo(storage.dtype)
            first, last = (int(min(max(each, limits.min), limits.max)) for each in (low, high))
            self._drawn(_native.draw_integers, storage, number, first, last)

    def _drawn(self, draw: Callable[..., bool], storage: torch.Tensor, number: int, low: Any, high: Any) -> None:
        if low > high:
            raise Skip(f"Min {low} is above Max {high}")
        name = dtype_names[storage.dtype]
        if not draw(storage.data_ptr(), name, storage.numel(), low, high, self._seed, self._key, number):
            raise Skip(f"Dtype is not supported: {storage.dtype}")

    def _fill_mask(self, storage: torch.Tensor, entry: dict[str, Any], number: int, low: float, high: float) -> None:
        elements = storage.numel()
        count = entry.get("true_count", elements // 2) if low < high else (elements if high > 0 else 0)
        if not isinstance(count, int) or not 0 <= count <= elements:
            raise Skip("true_count is not a number of elements")
        _native.draw_mask(storage.data_ptr(), elements, count, self._seed, self._key, number)

    def _fill_reals(self, storage: torch.Tensor, entry: dict[str, Any], number: int, low: float, high: float) -> None:
        limits = torch.finfo(storage.dtype)
        finite_low, finite_high = (
            float(entry.get(f"{name}_except_inf_nan", value)) for name, value in (("Min", low), ("Max", high))
        )
        if not math.isfinite(finite_low) or not math.isfinite(finite_high):
            finite_low, finite_high = (
                limits.max if each == math.inf else limits.min if each == -math.inf else each
                for each in (finite_low, finite_high)
            )
        if math.isnan(finite_low) or math.isnan(finite_high):
            storage.fill_(math.nan)
            return
        finite_low, finite_high = (min(max(each, limits.min), limits.max) for each in (finite_low, finite_high))
        # Scores get such values added to be left out: nothing in between means anything.
        is_mask = finite_low < limits.min / 2 or finite_high > limits.max / 2
        self._drawn(_native.draw_either if is_mask else _native.draw_reals, storage, number, finite_low, finite_high)
        if not math.isfinite(low):
            storage[0] = low
        if not math.isfinite(high):
            storage[-1] = high


def _plain_value(kind: str, value: Any) -> Any:
    if kind == "slice":
        if isinstance(value, list) and len(value) == 3 and all(each is None or type(each) is int for each in value):
            return slice(*value)
        raise Skip("a slice needs three integers or null")
    if kind == "ellipsis":
        return ...
    if kind == "torch.device":
        return DeviceSlot()
    if kind in _WORDS:
        if value == "None" or value is None:
            return None
        if not isinstance(value, str) or value not in _WORDS[kind]:
            raise Skip(f"{kind} {_shortened(str(value))} is not known to this torch")
        return _WORDS[kind][value]
    if kind == "complex" or (isinstance(value, list) and kind.startswith("numpy.complex")):
        if isinstance(value, list) and len(value) == 2 and all(isinstance(each, (int, float)) for each in value):
            return complex(*value)
        raise Skip("a complex number needs two numbers")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise Skip(f"an argument of type {_shortened(kind)} cannot be made again")


def _span(shape: list[int], strides: list[int]) -> int:
    """Elements from the first to the last."""
    if len(strides) != len(shape):
        raise Skip("shape and stride have different lengths")
    return 1 + sum((size - 1) * step for size, step in zip(shape, strides)) if math.prod(shape) else 0


def _sizes(value: Any) -> list[int]:
    if not isinstance(value, list) or len(value) > MAX_DIMENSIONS:
        raise Skip("shape and stride must be lists of sizes")
    if not all(type(each) is int and 0 <= each < 1 << 62 for each in value):
        raise Skip("shape and stride must be lists of sizes")
    return value


def _with_classes(described: list[Any]) -> list[Any]:
    """Numbers of classes: int64, and none below 0, where labels have -100 for what is to be ignored."""
    target = described[1] if len(described) > 1 else None
    if not isinstance(target, dict) or "int" not in str(target.get("dtype")):
        return described
    changed = {**target, "dtype": "torch.int64"}
    if isinstance(target.get("Min"), int) and target["Min"] < 0:
        changed["Min"] = 0
        changed["Max"] = max(0, target["Max"]) if isinstance(target.get("Max"), int) else target.get("Max")
    return [described[0], changed, *described[2:]]


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"
