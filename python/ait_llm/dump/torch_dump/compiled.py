"""Modules inside what torch.compile makes of a model.

While torch.compile follows a recorded model through its Python code, no module is called: calls become part of a graph,
and where one begins or ends, an operator of ait's is put into the graph, which gets the tensors each time the graph
runs. So that what a script has compiled for itself stays as it is, a recorded call is compiled by a backend of its own,
which hands the graph on to the script's: torch keeps the results of different backends apart. When the recording ends,
so does what it has compiled.

Only torch's own backends get such graphs. One of the script's own would see operators that it does not know.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, Callable

import torch

from ait_llm.dump.torch_dump.hindrance import dynamo, hide_from_compile, set_callback

KNOWN = ("eager", "aot_eager", "inductor")
CUDAGRAPHS = "inductor with CUDA graphs of its own, whose replay calls nothing"

Begin = Callable[[torch.nn.Module, "tuple[Any, ...]", "dict[str, Any]"], None]
End = Callable[[torch.nn.Module, Any], None]


class _Leaf:
    """Stands for a tensor in what a module was called with or returned."""

    def __init__(self, index: int) -> None:
        self.index = index


class _Note:
    """Where a call of a module begins or ends in a graph."""

    def __init__(self, module: torch.nn.Module, begins: bool, value: Any) -> None:
        self.module = weakref.ref(module)
        self.begins = begins
        self.value = value  # what was given or returned, without tensors


class _State:
    def __init__(self) -> None:
        self.keys = itertools.count(1)
        self.notes: dict[int, _Note] = {}
        self.callbacks: dict[int, _Callback] = {}  # by the identity of torch's, which each keeps alive
        self.codes: dict[int, weakref.ref[CodeType]] = {}  # that were compiled for us
        self.graphs = 0  # that were compiled for recordings, or while nobody recorded
        self.listener: tuple[Begin, End, Callable[[torch.nn.Module], bool]] | None = None
        self.region: int | None = None  # where torch keeps what was compiled for us, apart from the rest
        self.operator: Any = None
        self.library: Any = None


_state = _State()
_set_region: Callable[[int], int] | None = getattr(dynamo, "set_eval_frame_isolate_recompiles_id", None)


def tell(begin: Begin, end: End, is_heard: Callable[[torch.nn.Module], bool]) -> None:
    """Whom the operator tells, and of which modules."""
    _state.listener = (begin, end, is_heard)


def all_graphs() -> int:
    """How many torch.compile has compiled in this process."""
    counters: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return int(counters["stats"]["unique_graphs"]) if "stats" in counters else 0


def count_unrecorded(before: int | None) -> None:
    """Graphs that were compiled since there were so many are of rounds that nobody records."""
    if before is not None and not _state.callbacks:
        _state.graphs += max(all_graphs() - before, 0)


def strange_graphs() -> int:
    """Those that may have run in a round that is recorded, and are not."""
    return max(all_graphs() - _state.graphs, 0)


def recording_callback(callback: Any) -> tuple[Any, str]:
    """What is to run in place of `callback`, torch's own for compiled code, and which backend it compiles with; None if
    there is nothing that can."""
    if isinstance(callback, _Callback):
        return callback, callback.name
    known = _state.callbacks.get(id(callback))
    if known is None:
        convert = sys.modules.get("torch._dynamo.convert_frame")
        made_by_torch = isinstance(callback, getattr(convert, "CatchErrorsWrapper", ()))
        if not made_by_torch or not hasattr(callback._torchdynamo_orig_backend, "_clone_with_backend"):
            return None, _name_of(callback)
        name = _backend_of(callback)
        if name not in KNOWN or not _operator():
            return None, name
        known = _state.callbacks[id(callback)] = _Callback(callback, name)
    return known, known.name


def enter_region() -> int | None:
    """What this thread calls from now on is compiled, and counted, apart from what the script has compiled: torch
    limits how often something is. Returns where it was before."""
    if _set_region is None:
        return None
    if _state.region is None:
        _state.region = next(sys.modules["torch._dynamo.eval_frame"]._next_isolate_recompiles_id)
    return int(_set_region(_state.region))


def leave_region(before: int | None) -> None:
    if _set_region is not None and before is not None:
        _set_region(before)


def forget() -> None:
    """What was compiled for recordings goes: nobody records any more, or others are listened to from now on."""
    for reference in list(_state.codes.values()):
        code = reference()
        if code is not None:
            with contextlib.suppress(Exception):  # of a version of torch that keeps it elsewhere
                _remove_entries(code)
    _state.codes.clear()
    _state.region = None
    _state.callbacks.clear()
    _state.notes.clear()


# Backends


class _Backend:
    """The script's, under another identity."""

    def __init__(self, backend: Callable[..., Any], name: str) -> None:
        self._backend = backend
        self.__name__ = name

    def __call__(self, graph: Any, inputs: Any, **options: Any) -> Any:
        _state.graphs += 1
        return self._backend(graph, inputs, **options)


class _Callback:
    """Compiles as torch's does, for our backend, and notes the calls of modules meanwhile."""

    def __init__(self, callback: Any, name: str) -> None:
        convert = callback._torchdynamo_orig_backend
        backend = _Backend(convert._torchdynamo_orig_backend, name)
        self.name = name
        self._original = callback
        self._ours = type(callback)(convert._clone_with_backend(backend), callback.hooks)
        self._torchdynamo_orig_backend = backend  # by which torch knows what was compiled for it

    def __call__(self, frame: Any, *rest: Any) -> Any:
        with sys.modules["torch._dynamo.convert_frame"].compile_lock, _noting():
            _state.codes.setdefault(id(frame.f_code), weakref.ref(frame.f_code))
            return self._ours(frame, *rest)


def _innermost(callback: Any) -> Any:
    while hasattr(callback, "_torchdynamo_orig_backend"):
        callback = callback._torchdynamo_orig_backend
    return callback


def _name_of(callback: Any) -> str:
    backend = _innermost(callback)
    backend = _innermost(getattr(backend, "compiler_fn", backend))
    return str(getattr(backend, "compiler_name", None) or getattr(backend, "__name__", type(backend).__name__))


def _backend_of(callback: Any) -> str:
    """The name of torch's own backend that it compiles with, or of another one, in words."""
    backend = _innermost(callback)
    kind = type(backend).__name__ if type(backend).__module__ == "torch" else ""
    if kind == "_TorchCompileInductorWrapper":
        return CUDAGRAPHS if _replays(backend.config) else "inductor"
    if kind == "_TorchCompileWrapper":
        backend = _innermost(backend.compiler_fn)
    from torch._dynamo.backends import registry

    for name in KNOWN:
        with contextlib.suppress(Exception):
            if registry.lookup_backend(name) is backend:
                return CUDAGRAPHS if name == "inductor" and _replays({}) else name
    return f"a backend of the script's own, {_name_of(callback)}"


def _replays(config: Mapping[str, Any]) -> bool:
    from torch._inductor import config as defaults

    triton: Any = defaults.triton
    return torch.cuda.is_available() and bool(config.get("triton.cudagraphs", triton.cudagraphs))


def _remove_entries(code: CodeType) -> None:
    from torch._C._dynamo import eval_frame
    from torch._dynamo import guards

    for entry in eval_frame._debug_get_cache_entry_list(code):
        state = getattr(entry.guard_manager, "extra_state", None)
        if isinstance(entry.backend, _Backend) and state is not None:
            state.invalidate(entry, guards.DeletedGuardManagerWrapper("the recording has ended"))


# Calls in a graph


@contextlib.contextmanager
def _noting() -> Iterator[None]:
    """The calls of modules that this thread sees while it compiles get into the graph. To be entered with the lock that
    only one thread compiles under."""
    from torch._dynamo.variables import nn_module

    thread = threading.get_ident()
    replaced = []
    kind: Any
    for kind in (nn_module.NNModuleVariable, nn_module.UnspecializedNNModuleVariable):
        original = vars(kind)["call_function"]
        if getattr(original, "_of_ait", False):
            continue  # one compilation inside another

        def call_function(self: Any, tx: Any, args: Any, kwargs: Any, original: Any = original) -> Any:
            module = _module_of(self, tx)
            if module is None or threading.get_ident() != thread or not _is_heard(module):
                return original(self, tx, args, kwargs)
            _put_in(tx, module, True, (list(args), dict(kwargs)))
            output = original(self, tx, args, kwargs)
            _put_in(tx, module, False, output)
            return output

        call_function._of_ait = True  # type: ignore[attr-defined]
        replaced.append((kind, original))
        kind.call_function = call_function
    try:
        yield
    finally:
        for kind, original in replaced:
            kind.call_function = original


def _is_heard(module: torch.nn.Module) -> bool:
    return _state.listener is not None and _state.listener[2](module)


def _module_of(variable: Any, tx: Any) -> torch.nn.Module | None:
    value = getattr(variable, "value", None)
    if value is None and hasattr(variable, "module_key"):
        value = tx.output.get_submodule(variable.module_key)
    return value if isinstance(value, torch.nn.Module) else None


def _put_in(tx: Any, module: torch.nn.Module, begins: bool, variables: Any) -> None:
    proxies: list[Any] = []
    try:
        value = _Look(tx, proxies).at(variables, 0)
    except sys.modules["torch._dynamo.exc"].RestartAnalysis:  # torch begins again, and knows more then
        raise
    except Exception:
        proxies.clear()
        value = ((_UNCLEAR,), {}) if begins else _UNCLEAR
    key = next(_state.keys)
    _state.notes[key] = _Note(module, begins, value)
    tx.output.create_proxy("call_function", _state.operator, (key, proxies), {})


_UNCLEAR = type("value that torch.compile does not show", (), {})()
"""What cannot be looked into is said by the name of its class."""


class _Look:
    """Into what torch.compile knows of the values that a module is called with or returns."""

    def __init__(self, tx: Any, proxies: list[Any]) -> None:
        from torch._dynamo import variables

        self._tx = tx
        self._proxies = proxies
        self._kinds = variables

    def at(self, variable: Any, depth: int) -> Any:
        """The same with a _Leaf for each tensor; what cannot be looked into is an object of a class of that name."""
        if depth > 16:
            return None
        if isinstance(variable, (list, tuple)):
            return tuple(self.at(each, depth) for each in variable)
        if isinstance(variable, dict):
            return {name: self.at(each, depth) for name, each in variable.items()}
        variable = self._realized(variable)
        kinds = self._kinds
        if variable is None:
            return None
        if isinstance(variable, kinds.TensorVariable):
            self._proxies.append(variable.as_proxy())
            return _Leaf(len(self._proxies) - 1)
        if isinstance(variable, kinds.BaseListVariable):
            return tuple(self.at(each, depth + 1) for each in variable.items)
        inside = getattr(variable, "_base_vt", None) or getattr(variable, "_dict_vt", None) or variable
        if isinstance(inside, kinds.ConstDictVariable):
            return {_key_of(key): self.at(each, depth + 1) for key, each in inside.items.items()}
        if isinstance(inside, kinds.BaseListVariable):
            return tuple(self.at(each, depth + 1) for each in inside.items)
        if variable.is_python_constant() or isinstance(variable, kinds.SymNodeVariable):
            return None
        kind = getattr(variable, "value_type", type(variable))
        if dataclasses.is_dataclass(kind):
            return {field.name: self._attribute(variable, field.name, depth) for field in dataclasses.fields(kind)}
        return type(kind.__name__, (), {})()

    def _attribute(self, variable: Any, name: str, depth: int) -> Any:
        return self.at(variable.var_getattr(self._tx, name), depth + 1)

    @staticmethod
    def _realized(variable: Any) -> Any:
        """What nobody has looked at so far is looked at only if it may hold tensors."""
        if not hasattr(variable, "peek_value") or variable.is_realized():
            return variable.realize() if hasattr(variable, "realize") else variable
        value = variable.peek_value()
        return variable.realize() if isinstance(value, (torch.Tensor, list, tuple, Mapping)) else None


def _key_of(key: Any) -> str:
    inner = getattr(key, "vt", key)
    return str(inner.as_python_constant() if hasattr(inner, "as_python_constant") else inner)


# The operator


def _operator() -> bool:
    """Whether torch has it. It is made when it is needed first, and stays, since torch cannot forget one."""
    if _state.operator is None:
        _state.operator = _make_operator() or False
    return bool(_state.operator)


def _make_operator() -> Any:
    try:
        from torch._higher_order_ops import effects

        library = torch.library.Library("ait", "DEF")
        library.define("module_call(int key, Tensor[] tensors) -> ()")
        library.impl("module_call", _run, "CompositeExplicitAutograd")
        operator = torch.ops.ait.module_call.default
        torch.library.register_fake("ait::module_call", lambda key, tensors: None, lib=library)
        ordered = effects._EffectType.ORDERED
        try:
            effects._register_effectful_op("ait::module_call", ordered)
        except Exception:  # of versions that want the operator itself
            effects._register_effectful_op(operator, ordered)
    except Exception:
        return None
    _state.library = library  # which must live
    return operator


def _run(key: int, tensors: list[torch.Tensor]) -> None:
    """Each time that a graph gets to where a call begins or ends."""
    note, listener = _state.notes.get(key), _state.listener
    module = None if note is None else note.module()
    if note is None or module is None or listener is None:
        return
    callback = set_callback(None)
    try:
        value = _filled(note.value, tensors)
        if note.begins:
            listener[0](module, *value)
        else:
            listener[1](module, value)
    finally:
        set_callback(callback)


def _filled(value: Any, tensors: list[torch.Tensor]) -> Any:
    if isinstance(value, _Leaf):
        return tensors[value.index]
    if isinstance(value, tuple):
        return tuple(_filled(each, tensors) for each in value)
    if isinstance(value, dict):
        return {name: _filled(each, tensors) for name, each in value.items()}
    return value


for _function in (_run, recording_callback):
    hide_from_compile(_function.__code__)
