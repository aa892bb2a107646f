"""How recordings hear of the calls of modules: from beside the model, never by anything on it.

A recorded model carries no hook, no attribute and no wrapper of ours, so it saves, copies, scripts, quantises, compiles
and prints as it would alone. Each call of a module leads to one function of torch, `Module._call_impl`, and the
interpreter lets native code stand between a function and its callers: see `_native.Ear`. What is listened to is in a
table here, by the identity of the module. While torch traces, exports or compiles a model, nobody listens.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump.hindrance import COMPILED, hide_from_compile, hindrance, set_tracing_state
from ait_llm.dump.torch_dump.manifest import JIT_TRACED
from ait_llm.dump.torch_dump.module_tree import ROOT

if TYPE_CHECKING:
    from ait_llm.dump.torch_dump.session import Session


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
    reason = hindrance()
    if reason is not None:
        if reason is not COMPILED:
            _pass_by(module, reason)
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
    set_tracing_state(None)  # or a question about a tensor's shape gets into the traced graph
    try:
        # A manifest is to say it. torch.fx and torch.export, unlike torch.jit, do not call the model that they look at.
        if reason is JIT_TRACED and _state.newcomer is not None:
            _state.newcomer(module)
        for tap in taps_of(module):
            tap.session.pass_by(tap, reason)
    finally:
        set_tracing_state(tracing)


hide_from_compile(_begin.__code__)
_ear = _native.Ear(torch.nn.Module._call_impl, _begin, _end)
