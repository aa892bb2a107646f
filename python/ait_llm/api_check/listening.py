"""How calls of torch's functions are heard of: by a mode of torch's own (TorchFunctionMode), on the threads that ask.

A mode sees functions, methods and operators alike, however the script came by them, and not what those call in turn.
Nothing of torch is replaced, so functions keep their identity. Two questions are answered as if the mode were not
there, because torch acts upon them: whether the fast path of an attention module may be taken, and whether a backward
pass is somebody else's business. The mode lies below those of the script, which come and go as they like.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Callable, Protocol

import torch
from torch import overrides
from torch.overrides import TorchFunctionMode

from ait_llm.api_check import apis
from ait_llm.dump.torch_dump.hindrance import hide_from_compile, hindrance, is_compiling

_push: Callable[[Any], None] = vars(overrides)["_push_mode"]
_pop: Callable[[], Any] = vars(overrides)["_pop_mode"]
_stack: Callable[[], list[Any]] = vars(overrides)["_get_current_function_mode_stack"]


class Listener(Protocol):
    def begin(self, api: apis.Api, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Before a call. What it returns is given to `end`, unless it is None."""

    def end(self, begun: Any, output: Any) -> None:
        """After a call that did not raise."""


class _Thread(threading.local):
    deaf = False


_thread = _Thread()


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """What this thread does inside is our own business. In backward passes listeners have to say so themselves."""
    before, _thread.deaf = _thread.deaf, True
    try:
        yield
    finally:
        _thread.deaf = before


class Listening(TorchFunctionMode):
    """To be started and stopped by the thread that is to be heard."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self._listener = listener
        self.active = True  # False: it hears nothing any more, on whatever stack it still is

    def start(self) -> None:
        if self not in _stack():
            _put_below(self)
            _questions.answer_as_if_alone(self)

    def stop(self) -> None:
        self.active = False
        if self in _stack():
            _take_out(self)
        _questions.answer_as_ever(self)

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if is_compiling():  # torch.compile takes this for True, so that nothing of ours is in its graphs
            return function(*args, **kwargs)
        api = apis.name_of(function) if self.active else None
        if api is None or _thread.deaf or hindrance() is not None or _is_preparation():
            return function(*args, **kwargs)
        with unheard():
            begun = self._listener.begin(api, args, kwargs)
        output = self._backward(*args, **kwargs) if function is torch.Tensor.backward else function(*args, **kwargs)
        if begun is not None:
            with unheard():
                self._listener.end(begun, output)
        return output

    def _backward(
        self, tensor: Any, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False, inputs: Any = None
    ) -> Any:
        """As Tensor.backward. What runs in a backward pass is heard: checkpoints run their forward pass again in it."""
        _push(self)
        try:
            return torch.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)
        finally:
            _take_out(self)


def _is_preparation() -> bool:
    """Whether torch.autograd itself calls, to begin a backward pass."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == overrides.__file__:  # torch 1.13 goes through it
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == torch.autograd.__file__


def _put_below(mode: TorchFunctionMode) -> None:
    above = [_pop() for _ in _stack()]
    _push(mode)
    for each in reversed(above):
        _push(each)


def _take_out(mode: TorchFunctionMode) -> None:
    above = []
    while _stack():
        each = _pop()
        if each is mode:
            break
        above.append(each)
    for each in reversed(above):
        _push(each)


class _Questions:
    """Functions of torch that ask whether anybody overrides functions, while somebody listens."""

    PLACES = (overrides, torch.autograd)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking: list[Listening] = []
        self._own: list[Any] = []

    def answer_as_if_alone(self, mode: Listening) -> None:
        with self._lock:
            if not self._asking:
                self._own = [vars(place).get("has_torch_function") for place in self.PLACES]
                for place, function in zip(self.PLACES, self._own):
                    if function is not None:
                        place.has_torch_function = _alone(function)  # type: ignore[attr-defined]
            self._asking.append(mode)

    def answer_as_ever(self, mode: Listening) -> None:
        with self._lock:
            if mode not in self._asking:
                return
            self._asking = [each for each in self._asking if each is not mode]
            if not self._asking:
                for place, function in zip(self.PLACES, self._own):
                    if function is not None:
                        place.has_torch_function = function  # type: ignore[attr-defined]


def _alone(has_torch_function: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def asked(arguments: Any) -> bool:
        if is_compiling() or not all(isinstance(each, Listening) for each in _stack()):
            return has_torch_function(arguments)
        ours = [_pop() for _ in _stack()]
        try:
            return has_torch_function(arguments)
        finally:
            for each in reversed(ours):
                _push(each)

    hide_from_compile(asked.__code__)
    return asked


_questions = _Questions()
