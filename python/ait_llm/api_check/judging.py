"""The outputs of two runs held against each other: which belong together, and what each pair is judged by."""

from __future__ import annotations

from typing import Any, Callable

import torch

from ait_llm import _native
from ait_llm.api_check.legs import Call
from ait_llm.dump.torch_dump.store import NotStorable, operand, plain

Output = _native.ApiOutput

_SCALARS = (bool, int, float, str)
# Functions that say where something is: of equal values any will do. With the place of their argument `dim`.
_PLACES = {"max": 1, "min": 1, "argmax": 1, "argmin": 1, "sort": 1, "argsort": 1, "topk": 2, "kthvalue": 2, "median": 1}


class Judge:
    """Of one direction of one call."""

    def __init__(self, call: Call, key: str, backward: bool, raw_bench: bool, moved: Callable[[], Any]) -> None:
        self._call = call
        self._prefix = f"{key}.{'backward' if backward else 'forward'}.output"
        self._backward = backward
        self._raw_bench = raw_bench
        self._moved = moved  # runs the benchmark on inputs that are a rounding off; asked at most once
        self._moved_leaves: list[Any] | None = None
        self._dropout = None if backward and not call.gradients else dropout_of(call)
        self.outputs: list[Output] = []

    def compare(self, bench: Any, device: Any) -> None:
        fault = _walk(bench, device, self._leaf)
        if fault is not None:
            self._add(_native.judge_mismatch(_type_text(bench), _type_text(device), fault))

    @property
    def passes(self) -> bool:
        return all(output.passes for output in self.outputs)

    @property
    def within(self) -> bool:
        return all(output.within for output in self.outputs)

    def _add(self, output: Output) -> None:
        output.name = f"{self._prefix}.{len(self.outputs)}"
        self.outputs.append(output)

    def _leaf(self, bench: Any, device: Any) -> None:
        if isinstance(bench, torch.Tensor) and isinstance(device, torch.Tensor):
            self._add(self._tensors(bench, device))
        elif bench is None and device is None:
            self._add(_native.judge_values("<class 'NoneType'>", True, "Output is None."))
        elif isinstance(device, (*_SCALARS, torch.dtype, torch.device)):
            same = bench == device or (bench != bench and device != device)
            self._add(_native.judge_values(str(type(device)), bool(same), "" if same else f"{device} and not {bench}"))
        else:
            words = f"Unexpected output type in compare_core: {type(device)}"
            self._add(_native.judge_mismatch(_type_text(bench), _type_text(device), words))

    def _tensors(self, bench: torch.Tensor, device: torch.Tensor) -> Output:
        if bench.shape != device.shape:
            words = f"The shape of bench{bench.shape} and npu{device.shape} not equal."
            return _native.judge_mismatch(str(bench.dtype), str(device.dtype), words)
        try:
            b, n = _native_of(bench), _native_of(device)
        except NotStorable as error:
            return _native.judge_mismatch(str(bench.dtype), str(device.dtype), str(error))
        if self._dropout is not None and not self.outputs and device.numel():
            p, scaled, groups = self._dropout
            source = self._call.gradients[0] if self._backward else self._call.slots[0]
            if source is not None and source.tensor.shape == device.shape:
                return _native.judge_dropout(p, scaled, groups, operand(source.tensor), b, n)
        function = self._call.api.name
        output = _native.judge_tensors(function, self._backward, b, n, self._raw_bench, None)
        if output.wants_moved:
            moved = self._moved_leaf(len(self.outputs), bench)
            if moved is not None:
                output = _native.judge_tensors(function, self._backward, b, n, self._raw_bench, _native_of(moved))
        if not output.within and not bench.is_floating_point() and self._is_tie(bench, device):
            output.within = True
            output.message = "the places differ, the values there are equal"
        return output

    def _moved_leaf(self, number: int, bench: torch.Tensor) -> torch.Tensor | None:
        if self._moved_leaves is None:
            self._moved_leaves = []
            try:
                moved = self._moved()
                _walk(moved, moved, lambda one, _: self._moved_leaves.append(one))  # type: ignore[union-attr]
            except Exception:  # then there is nothing that explains the difference
                self._moved_leaves = []
        if number >= len(self._moved_leaves):
            return None
        leaf = self._moved_leaves[number]
        return leaf if isinstance(leaf, torch.Tensor) and leaf.shape == bench.shape else None

    def _is_tie(self, bench: torch.Tensor, device: torch.Tensor) -> bool:
        place = _PLACES.get(self._call.api.name)
        if place is None or not self._call.slots:
            return False
        values = self._call.slots[0].tensor
        default = -1 if place == 2 or "sort" in self._call.api.name else None
        args = self._call.args
        dim = args[place] if len(args) > place else self._call.kwargs.get("dim", default)
        try:
            if dim is None:
                values, dim, bench, device = values.flatten(), 0, bench.reshape(-1), device.reshape(-1)
            elif bench.dim() < values.dim():
                bench, device = bench.unsqueeze(dim), device.unsqueeze(dim)
            return torch.equal(values.gather(dim, bench.long()), values.gather(dim, device.long()))
        except (RuntimeError, TypeError, IndexError):  # no places after all
            return False


def dropout_of(call: Call) -> tuple[float, bool, int] | None:
    """p, whether kept values are divided by 1 - p, and how many elements are dropped for themselves."""
    name = call.api.name
    if "dropout" not in name or not call.slots:
        return None
    p = _argument(call, 1, "p", 0.5)
    # dropout_ and its like have it without a default.
    training = _argument(call, 2, "train", _argument(call, 2, "training", True))
    if not isinstance(p, (int, float)) or not training or p == 0:
        return None
    shape = call.slots[0].tensor.shape
    is_plain = name in ("dropout", "dropout_", "native_dropout")
    groups = (
        call.slots[0].tensor.numel() if is_plain or name.startswith("alpha") else int(torch.Size(shape[:2]).numel())
    )
    return float(p), is_plain, 0 if "alpha" in name else groups  # alpha dropout leaves no zeros


def _argument(call: Call, place: int, name: str, default: Any) -> Any:
    return call.args[place] if len(call.args) > place else call.kwargs.get(name, default)


def _walk(bench: Any, device: Any, leaf: Callable[[Any, Any], None]) -> str | None:
    """What keeps the two from being compared."""
    if isinstance(bench, list) and isinstance(device, list):
        if len(bench) != len(device):
            return "bench and npu output structure is different."
        return next((fault for one, other in zip(bench, device) if (fault := _walk(one, other, leaf))), None)
    if isinstance(bench, dict) and isinstance(device, dict):
        if bench.keys() != device.keys():
            return "bench and npu output dict keys are different."
        return next((fault for name in bench if (fault := _walk(bench[name], device[name], leaf))), None)
    both_numbers = isinstance(bench, _SCALARS) and isinstance(device, _SCALARS)
    if type(bench) is not type(device) and not both_numbers:
        return "bench and npu output type is different."
    leaf(bench, device)
    return None


def _native_of(tensor: torch.Tensor) -> _native.Operand:
    dense, _ = plain(tensor)
    if dense.is_complex():
        dense = torch.view_as_real(dense.resolve_conj())
    return operand(dense)


def _type_text(value: Any) -> str:
    return str(value.dtype) if isinstance(value, torch.Tensor) else str(type(value))
