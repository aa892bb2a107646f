"""One run of a recorded call: on the device, in the benchmark's precision, or with inputs a rounding off."""

from __future__ import annotations

import contextlib
from typing import Any, Callable

import torch

from ait_llm.api_check.apis import Api, Function
from ait_llm.api_check.classes import casts, changes_inputs, makes_tensors
from ait_llm.api_check.devices import Device
from ait_llm.api_check.inputs import DeviceSlot, Skip, Slot

RAISED = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64}


class Call:
    """A recorded call with its arguments made again."""

    def __init__(
        self,
        api: Api,
        function: Function,
        args: list[Any],
        kwargs: dict[str, Any],
        gradients: list[Slot | None],
        autocast: torch.dtype | None,
    ) -> None:
        self.api = api
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.gradients = gradients  # that arrived at its outputs; none: no backward pass
        self.autocast = autocast
        self.slots: list[Slot] = []
        _visit((args, kwargs), self.slots)
        self.wants_gradients = any(gradients) and "out" not in kwargs and any(slot.requires_grad for slot in self.slots)
        self.changes_inputs = changes_inputs(api, args, kwargs)
        self.is_raised = True  # the benchmark has a higher precision than the device, where there is one


class Result:
    """What came of one run, on the CPU."""

    def __init__(self, outputs: Any, gradients: list[Any] | None, no_gradients: str | None) -> None:
        self.outputs = outputs
        self.gradients = gradients
        self.no_gradients = no_gradients  # why there are none although they were wanted


def raised_dtype(call: Call) -> torch.dtype | None:
    """The benchmark's precision: one level up from the highest of the inputs."""
    if not call.is_raised or casts(call.api) or any(isinstance(each, torch.dtype) for each in call.args):
        return None
    found = {slot.tensor.dtype for slot in call.slots} & set(RAISED)
    if not found:
        return None
    return torch.float64 if torch.float32 in found else torch.float32


def run_device(call: Call, device: Device) -> Result:
    def convert(slot: Slot) -> torch.Tensor:
        return _copy(slot.tensor, device.device)

    with device.autocast(call.autocast):
        return _run(call, convert, device.device, lambda each: each, device.call, device.finish)


def run_bench(call: Call, move: Callable[[torch.Tensor, int], torch.Tensor] | None = None) -> Result:
    """`move` changes an input by a rounding; it is given its number, too."""
    dtype = raised_dtype(call)
    numbers = {id(slot): number for number, slot in enumerate([*call.slots, *filter(None, call.gradients)])}

    def convert(slot: Slot) -> torch.Tensor:
        # Of a tensor without gaps another type is a copy already, with the same strides.
        raised = dtype is not None and slot.tensor.dtype in RAISED and slot.tensor.dtype != dtype
        copy = slot.tensor if raised else _copy(slot.tensor, torch.device("cpu"))
        if raised:
            copy = copy.to(dtype)
        return move(copy, numbers[id(slot)]) if move is not None and copy.is_floating_point() else copy

    def raise_word(value: Any) -> Any:
        return RAISED.get(value, value) if dtype is not None else value

    return _run(call, convert, torch.device("cpu"), raise_word, _plain_call, lambda: None)


def _plain_call(function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


def _copy(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """With the same strides, whatever they are."""
    if tensor.is_contiguous():
        return tensor.to(device, copy=True)
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
    storage = tensor.as_strided((span,), (1,)).to(device, copy=True)
    return storage.as_strided(tensor.shape, tensor.stride())


def _run(
    call: Call,
    convert: Callable[[Slot], torch.Tensor],
    device: torch.device,
    word: Callable[[Any], Any],
    run: Callable[[Function, list[Any], dict[str, Any]], Any],
    finish: Callable[[], None],
) -> Result:
    leaves: list[torch.Tensor] = []
    given: list[torch.Tensor] = []

    def tensor(slot: Slot) -> torch.Tensor:
        made = convert(slot)
        if slot.requires_grad and call.wants_gradients:
            leaves.append(made.requires_grad_())
            if call.changes_inputs:
                made = made.clone()
        given.append(made)
        return made

    args = _fill(call.args, tensor, device, word)
    kwargs = _fill(call.kwargs, tensor, device, word)
    if makes_tensors(call.api) and device.type != "cpu":
        kwargs.setdefault("device", device)
    with torch.enable_grad() if call.wants_gradients else torch.no_grad():
        output = run(call.function, args, kwargs)
    gradients: list[Any] | None = None
    reason: str | None = None
    if call.wants_gradients:
        try:
            gradients = _backward(call, output, leaves, convert)
        except Skip as skip:
            reason = str(skip)
    finish()
    # A function that returns nothing has changed what it was given.
    shown = given if output is None else output
    return Result(_home(shown), None if gradients is None else _home(gradients), reason)


def _backward(
    call: Call, output: Any, leaves: list[torch.Tensor], convert: Callable[[Slot], torch.Tensor]
) -> list[torch.Tensor | None]:
    outputs: list[torch.Tensor] = []
    _tensors(output, outputs)
    differentiable = [each for each in outputs if each.requires_grad]
    slots = call.gradients
    if len(slots) == len(outputs):
        pairs = [(each, slot) for each, slot in zip(outputs, slots) if slot is not None and each.requires_grad]
    elif len(slots) == len(differentiable):
        pairs = [(each, slot) for each, slot in zip(differentiable, slots) if slot is not None]
    else:
        wanted = [slot for slot in slots if slot is not None]
        pairs = list(zip(differentiable, wanted)) if len(wanted) <= len(differentiable) else []
    if not pairs:
        raise Skip("no output that the recorded gradients belong to requires a gradient")
    for each, slot in pairs:
        if each.shape != slot.tensor.shape:
            raise Skip("its outputs have other shapes than in the recorded call: they depend on values")
    incoming = [convert(slot).to(each.dtype) for each, slot in pairs]
    with torch.enable_grad():
        begin = _Arrival.apply(incoming, *(each for each, _ in pairs))  # type: ignore[no-untyped-call]
    torch.autograd.backward([begin])
    return [leaf.grad for leaf in leaves]


class _Arrival(torch.autograd.Function):
    """Where a backward pass begins. Given the gradients themselves, torch.autograd.backward would import sympy to look
    at their shapes: a third of a second in each process."""

    @staticmethod
    def forward(ctx: Any, incoming: list[torch.Tensor], *outputs: torch.Tensor) -> torch.Tensor:
        ctx.incoming = incoming
        return torch.zeros((), device=outputs[0].device)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (None, *ctx.incoming)


def _fill(value: Any, tensor: Callable[[Slot], torch.Tensor], device: torch.device, word: Callable[[Any], Any]) -> Any:
    if isinstance(value, Slot):
        return tensor(value)
    if isinstance(value, DeviceSlot):
        return device
    if isinstance(value, torch.dtype):
        return word(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_fill(each, tensor, device, word) for each in value)
    if isinstance(value, dict):
        return {name: _fill(each, tensor, device, word) for name, each in value.items()}
    return value


def _visit(value: Any, slots: list[Slot]) -> None:
    if isinstance(value, Slot):
        slots.append(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _visit(each, slots)
    elif isinstance(value, dict):
        for each in value.values():
            _visit(each, slots)


def _tensors(value: Any, found: list[torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _tensors(each, found)
    elif isinstance(value, dict):
        for each in value.values():
            _tensors(each, found)


def _home(value: Any) -> Any:
    """The same on the CPU, without a graph."""
    if isinstance(value, torch.Tensor):
        with contextlib.suppress(NotImplementedError):
            return value.detach().cpu()
        return value.detach()
    if isinstance(value, (list, tuple)):
        return [_home(each) for each in value]
    if isinstance(value, dict):
        return {name: _home(each) for name, each in value.items()}
    return value
