"""CUDA graphs: which capture each came from, and when it is replayed.

While a graph is captured, nothing is computed: the launches of ait's kernel become part of the graph, and each replay
renews the numbers. torch's class of graphs is left as it is; its functions are heard of like those of modules. Python
3.11 alone calls a method past whoever listens to it: there, as long as something is recorded, the class has descriptors
in their place that give the same methods in another form.
"""

from __future__ import annotations

import functools
import sys
import time
import weakref
from typing import Any

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump import process

PAST_LISTENERS = sys.version_info[:2] == (3, 11)
"""Python 3.11 calls a method without looking at what stands between it and its callers."""


class _Method:
    """Gives a method that 3.11 calls like any other object."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, graph: Any, _owner: Any = None) -> Any:
        return self.function if graph is None else functools.partial(self.function, graph)


class _State:
    def __init__(self) -> None:
        # By graph: the number of its capture, and when that ended.
        self.captures: weakref.WeakKeyDictionary[Any, tuple[int, float]] = weakref.WeakKeyDictionary()
        self.ears: list[_native.Ear] = []
        self.functions: dict[str, Any] = {}  # of torch's class, that there are ears at
        self.replaced: type | None = None  # the class, while it has descriptors of ours


_state = _State()


def listen() -> None:
    """From now on, to every CUDA graph of this process. Those that are there already are strangers."""
    graphs: Any = torch.cuda.CUDAGraph
    if not _state.ears:
        for name, begin, end in (("capture_end", _before_end, _nothing), ("replay", _before_replay, _after_replay)):
            function = vars(graphs).get(name)
            if function is None or not hasattr(function, "__code__"):  # of a torch that keeps them in C++
                return
            ear = _native.Ear(function, begin, end)
            ear.everything = True
            _state.ears.append(ear)
            _state.functions[name] = function
    if PAST_LISTENERS and _state.replaced is None:
        _state.replaced = graphs
        for name, function in _state.functions.items():
            setattr(graphs, name, _Method(function))


def rest() -> None:
    """Nobody records any more."""
    graphs, _state.replaced = _state.replaced, None
    for name, function in _state.functions.items() if graphs is not None else ():
        if isinstance(vars(graphs).get(name), _Method):  # not what somebody has put there since
            setattr(graphs, name, function)


def under_way() -> int:
    """The number of the capture that this thread's stream takes part in; 0 if there is none, or if its replays would
    not be heard of."""
    if not _state.ears or not torch.cuda.is_initialized() or not torch.cuda.is_current_stream_capturing():
        return 0
    return _native.capture_on(current_stream())


def current_stream() -> int:
    return int(torch.cuda.current_stream().cuda_stream)


def _before_end(graph: Any, _args: Any, _kwargs: Any, _outermost: bool) -> None:
    if not _native.busy():
        _state.captures[graph] = (_native.capture_on(current_stream()), time.monotonic())


def _before_replay(graph: Any, _args: Any, _kwargs: Any, _outermost: bool) -> Any:
    return None if _native.busy() else graph


def _after_replay(graph: Any, _output: Any, raised: bool) -> None:
    if raised:
        return
    for session in process.sessions():
        session.replayed(*_state.captures.get(graph, (0, 0.0)))


def _nothing(_begun: Any, _output: Any, _raised: bool) -> None:
    pass
