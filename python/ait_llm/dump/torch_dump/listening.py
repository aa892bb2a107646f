"""How recordings hear of the calls of modules: from beside the model, never by anything on it.

A recorded model carries no hook, no attribute and no wrapper of ours, so it saves, copies, scripts, quantises, compiles
and prints as it would alone. Each call of a module leads to one function of torch, `Module._call_impl`, and the
interpreter lets native code stand between a function and its callers: see `_native.Ear`. What is listened to is in a
table here, by the identity of the module. While torch traces, exports or compiles a model, nobody listens.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump.manifest import EXPORTED, FX_TRACED, JIT_TRACED
from ait_llm.dump.torch_dump.module_tree import ROOT

if TYPE_CHECKING:
    from ait_llm.dump.torch_dump.session import Session

COMPILED = "called by what torch.compile runs"


class Tap:
    """One listened-to module of one recording. Keeps neither alive."""

    def __init__(self, session: Session, module: torch.nn.Module, name: str) -> None:
        self.session = session
        self.module = weakref.ref(module)
        self.name = name
        self.is_root = name == ROOT
        self.type_name = ""
        self.wanted = False
        self.expected = False  # to be called in a round; containers never are
        self._key = id(module)

    def attach(self) -> None:
        with _state.lock:
            others = _state.taps.get(self._key, ())
            if self not in others:
                # Those of a module that is gone and had the same address hear nothing any more.
                alive = (other for other in others if other.module() is self.module())
                _state.taps[self._key] = (*alive, self)
                _ear.add(self._key)

    def detach(self) -> None:
        with _state.lock:
            others = tuple(other for other in _state.taps.get(self._key, ()) if other is not self)
            if others:
                _state.taps[self._key] = others
            else:
                _state.taps.pop(self._key, None)
                _ear.discard(self._key)


def watch(newcomer: Callable[[torch.nn.Module], None]) -> None:
    """From now on calls newcomer(module) before each call of a module that a thread makes outside any other."""
    _state.newcomer = newcomer
    _ear.outermost = True


class _State:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.taps: dict[int, tuple[Tap, ...]] = {}  # by id(module); replaced, never changed, since readers do not lock
        self.newcomer: Callable[[torch.nn.Module], None] | None = None

    def renew_lock(self) -> None:
        """In a forked child, where nobody would ever release it."""
        self.lock = threading.Lock()


_state = _State()
os.register_at_fork(after_in_child=_state.renew_lock)


def taps_of(module: torch.nn.Module) -> tuple[Tap, ...]:
    return tuple(tap for tap in _state.taps.get(id(module), ()) if tap.module() is module)


def _begin(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], outermost: bool
) -> tuple[Tap, ...] | None:
    """Before a call. Returns those who are to be told of its end, if any."""
    hindrance = _hindrance()
    if hindrance is not None:
        if hindrance is not COMPILED:
            _pass_by(module, hindrance)
        return None
    if outermost and _state.newcomer is not None:
        _state.newcomer(module)
    taps = taps_of(module)
    try:
        for tap in taps:
            tap.session.enter(tap, args, kwargs)
    except BaseException:  # somebody interrupts the program just now
        _end(taps, None, True)
        raise
    return taps or None


def _end(taps: tuple[Tap, ...], output: Any, raised: bool) -> None:
    for tap in reversed(taps):
        tap.session.leave(tap, output, raised)


def _pass_by(module: torch.nn.Module, reason: str) -> None:
    """Nobody listens to this call, for that reason."""
    tracing = torch._C._get_tracing_state()
    _set_tracing_state(None)  # or a question about a tensor's shape gets into the traced graph
    try:
        # A manifest is to say it. torch.fx and torch.export, unlike torch.jit, do not call the model that they look at.
        if reason is JIT_TRACED and _state.newcomer is not None:
            _state.newcomer(module)
        for tap in taps_of(module):
            tap.session.pass_by(tap, reason)
    finally:
        _set_tracing_state(tracing)


# Hindrances


def _hindrance() -> str | None:
    """Why a call may not be listened to right now."""
    if _running_compiled() is not None:
        return COMPILED
    if is_compiling():
        return EXPORTED
    if torch._C._get_tracing_state() is not None:
        return JIT_TRACED
    if getattr(sys.modules.get("torch.fx._symbolic_trace"), "_is_fx_tracing_flag", False):
        return FX_TRACED
    return None


# The part of torch.compile that is there before anybody asks for the rest of it.
_dynamo: Any = sys.modules.get("torch._C._dynamo.eval_frame")


def _frame_callback() -> Any:
    if not hasattr(_dynamo, "set_eval_frame"):
        return None
    callback = _dynamo.set_eval_frame(None)
    _dynamo.set_eval_frame(callback)
    return callback


def _hide_from_compile(code: CodeType) -> None:
    """torch.compile runs such code as it is."""
    if hasattr(_dynamo, "set_code_exec_strategy"):
        action = _dynamo._FrameAction
        _dynamo.set_code_exec_strategy(code, _dynamo._FrameExecStrategy(action.SKIP, action.DEFAULT))
    elif hasattr(_dynamo, "skip_code"):
        _dynamo.skip_code(code)


_set_tracing_state: Callable[[Any], None] = vars(torch._C)["_set_tracing_state"]  # which its stub lacks
is_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", bool)
_running_compiled: Callable[[], Any] = getattr(_dynamo, "get_eval_frame_callback", _frame_callback)
for _function in (_begin, _hindrance, _frame_callback):
    _hide_from_compile(_function.__code__)
_ear = _native.Ear(torch.nn.Module._call_impl, _begin, _end)
