"""How recordings hear of the calls of modules: from beside the model, never by anything on it.

A recorded model carries no hook, no attribute and no wrapper of ours, so it saves, copies, scripts, quantises, compiles
and prints as it would alone. Each call of a module leads to one function of torch, `Module._call_impl`, and the
interpreter lets native code stand between a function and its callers: see `_native.Ear`. What is listened to is in a
table here, by the identity of the module. While torch traces or exports a model, nobody listens. What torch.compile
has compiled is heard of from inside: see `compiled`.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump import compiled, process
from ait_llm.dump.torch_dump.hindrance import (
    COMPILED,
    JIT_TRACED,
    hide_from_compile,
    hindrance,
    set_callback,
    set_tracing_state,
)
from ait_llm.dump.torch_dump.module_tree import ROOT, uncompiled

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
        inner = uncompiled(module)
        self._inner = None if inner is module else id(inner)  # of what torch.compile has put something around
        self._native: _native.NativeTap | None = None

    def attach(self, native: _native.NativeTap | None = None) -> None:
        """Python hears of the calls, or `native` where it can."""
        self._native = native
        with _state.lock:
            others = _state.taps.get(self._key, ())
            if self not in others:
                # Those of a module that is gone and had the same address hear nothing any more.
                alive = (other for other in others if other.module() is self.module())
                _state.taps[self._key] = (*alive, self)
            self._listen()
            if self._inner is not None and self._inner not in _state.taps:
                _ear.add(self._inner, None)

    def detach(self) -> None:
        with _state.lock:
            others = tuple(other for other in _state.taps.get(self._key, ()) if other is not self)
            if others:
                _state.taps[self._key] = others
                self._listen()
            else:
                _state.taps.pop(self._key, None)
                _ear.discard(self._key)
            if self._inner is not None and self._inner not in _state.taps:
                _ear.discard(self._inner)

    def _listen(self) -> None:
        taps = _state.taps[self._key]
        _ear.add(self._key, taps[0]._native if len(taps) == 1 else None)


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


class _Begun:
    """A call that has begun: who is to be told of its end, and what torch.compile runs frames with besides."""

    __slots__ = ("callback", "graphs", "region", "taps")

    def __init__(self, taps: tuple[Tap, ...], callback: Any, region: int | None, graphs: int | None) -> None:
        self.taps = taps
        self.callback = callback
        self.region = region
        self.graphs = graphs  # that there were before, if what is compiled now is missed by nobody


def _begin(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], outermost: bool
) -> tuple[Tap, ...] | _Begun | None:
    """Before a call. Returns those who are to be told of its end, if any."""
    reason = hindrance()
    if reason is None:
        return _tell(module, args, kwargs, outermost) or None
    if reason is COMPILED:
        return _begin_compiled(module, args, kwargs, outermost)
    _pass_by(module, reason)
    return None


def _tell(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], outermost: bool) -> tuple[Tap, ...]:
    if outermost and _state.newcomer is not None:
        _state.newcomer(module)
    taps = taps_of(module)
    try:
        for tap in taps:
            tap.session.enter(tap, args, kwargs)
    except BaseException:  # somebody interrupts the program just now
        _end(taps, None, True)
        raise
    return taps


def _begin_compiled(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], outermost: bool
) -> _Begun | None:
    """torch.compile runs the frames of this thread, and would compile ours. What it is about to call may be recorded
    from inside."""
    callback = now = set_callback(None)
    try:
        reason = hindrance()
        if reason is not None:
            _pass_by(module, reason)
            return None
        taps = _tell(module, args, kwargs, outermost)
        region = None
        sessions = [session for session in process.sessions() if session.looks_inside]
        if sessions:
            ours, backend = compiled.recording_callback(callback)
            for session in sessions:
                session.note_compiled(backend, ours is not None)
            if ours is not None:
                now, region = ours, compiled.enter_region()
        return _Begun(taps, callback, region, None if sessions else compiled.all_graphs())
    finally:
        set_callback(now)


def _end(begun: tuple[Tap, ...] | _Begun, output: Any, raised: bool) -> None:
    if not isinstance(begun, _Begun):
        for tap in reversed(begun):
            tap.session.leave(tap, output, raised)
        return
    set_callback(None)
    try:
        for tap in reversed(begun.taps):
            tap.session.leave(tap, output, raised)
        compiled.count_unrecorded(begun.graphs)
    finally:
        compiled.leave_region(begun.region)
        set_callback(begun.callback)


def _begin_inside(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A call in a graph of torch.compile."""
    for tap in taps_of(module):
        with tap.session.from_inside():
            tap.session.enter(tap, args, kwargs)


def _end_inside(module: torch.nn.Module, output: Any) -> None:
    for tap in reversed(taps_of(module)):
        with tap.session.from_inside():
            tap.session.leave(tap, output, False)


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


for _function in (_begin, _begin_compiled, _end):
    hide_from_compile(_function.__code__)
compiled.tell(_begin_inside, _end_inside, lambda module: bool(taps_of(module)))
_ear = _native.Ear(torch.nn.Module._call_impl, _begin, _end)
