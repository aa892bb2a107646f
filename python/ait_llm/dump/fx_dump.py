"""Recording the FX graph of a compiled model on any device, in the files that TorchAir's FX mode writes.

    model = torch.compile(model, backend=ait_llm.dump.fx_backend(dump_path="golden"))
    model(x)

runs each node of the graph by itself and writes what goes in and comes out:

    golden/msit_fx_dump/worldsize1_global_rank0/graph_1/0/mm-aten.mm.default.INPUT.0.20240125031118787351.npy
                        ranks                   graphs  tokens

Graphs are counted as they are compiled: one for each graph break and each recompilation, and one for a backward pass.
Tokens are the calls of a graph. With `inner` the model's results are those of another backend, and what comes out of
its graphs is recorded, too, in {dump_path}/{inner}_fx_dump. See docs/torchair.md.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import datetime
import itertools
import json
import logging
import operator
import os
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ait_llm import _native
from ait_llm._folders import make_private
from ait_llm.dump._place import place

if TYPE_CHECKING:
    import torch

__all__ = ["fx_backend"]

FOLDER = "msit_fx_dump"
MANIFEST = "manifest.json"
GRAPH_OUTPUT = "output-output"
"""Stands for node and target in the files of what comes out of a whole graph."""

Backend = Callable[..., Callable[..., Any]]

_logger = logging.getLogger("ait_llm")
_graph_numbers = itertools.count(1)  # of this process, whichever backend compiles them


def fx_backend(
    dump_path: str = "",
    inner: str | Backend | None = None,
    tokens: Container[int] | None = None,
) -> Backend:
    """A backend for torch.compile that records every node of the graphs that it is given.

    `tokens` are the calls of each graph to record, such as [0, 1] or range(3); all without it. `inner` is a backend, or
    the name of one such as "inductor", whose results the model gets; its graphs run beside the recorded ones on the
    same inputs, and what comes out of either is recorded.
    """
    if not isinstance(dump_path, str):
        raise TypeError(f"dump_path must be a str, not {type(dump_path).__name__}")
    return _FxBackend(os.path.abspath(os.path.expanduser(dump_path)), inner, tokens)


_ASKED_OF_BACKENDS = ("backend_ctx_ctor", "get_compiler_config", "reset")
"""What torch asks of a backend, if it has it. It must not take ours for "inductor", whose name it asks for, too."""


class _FxBackend:
    def __init__(self, dump_path: str, inner: str | Backend | None, tokens: Container[int] | None) -> None:
        self._recorder = _Recorder(dump_path, FOLDER, tokens)
        self._inner = None if inner is None else _lookup(inner)
        self._outputs: _Recorder | None = None
        if inner is not None:
            self._outputs = _Recorder(dump_path, f"{_file_name(_name_of(inner))}_fx_dump", tokens)
            for name in _ASKED_OF_BACKENDS:
                if hasattr(self._inner, name):
                    setattr(self, name, getattr(self._inner, name))

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
        recorded = _RecordedGraph(self._recorder)
        if self._inner is None or self._outputs is None:
            return recorded.compile(graph, inputs)
        # Backends change the graph that they are given; theirs is the one that the model has.
        copied = None
        with self._recorder.guard("a graph"):
            copied = copy.deepcopy(graph)
        theirs = self._inner(graph, inputs, **options)
        run = None
        if copied is not None:
            with self._recorder.guard("a graph"):
                run = recorded.compile(copied, inputs)
        return theirs if run is None else _both(recorded, run, theirs, self._recorder, self._outputs)

    # torch takes code that was compiled by an equal backend for its own.
    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, _FxBackend)
            and self._inner is not None
            and (self._inner, self._recorder.place) == (other._inner, other._recorder.place)
        )

    def __hash__(self) -> int:
        return id(self) if self._inner is None else hash(self._recorder.place)


def _name_of(backend: str | Backend) -> str:
    """As in the name of the folder of what comes out of its graphs."""
    if isinstance(backend, str):
        return backend
    name = getattr(backend, "compiler_name", None) or getattr(backend, "__name__", None) or type(backend).__name__
    return str(name)


def _lookup(backend: str | Backend) -> Backend:
    if not isinstance(backend, str):
        return backend
    from torch._dynamo.backends.registry import lookup_backend

    return lookup_backend(backend)


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)


class _RecordedGraph:
    """What torch.compile hands over as one graph; autograd makes a forward and a backward one of it."""

    def __init__(self, recorder: _Recorder) -> None:
        self._recorder = recorder
        self.number = 0  # of the forward graph

    def compile(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        # As torch's own "aot_eager", whose results are the same to the bit.
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.partitioners import min_cut_rematerialization_partition

        return aot_autograd(
            fw_compiler=self._take_forward,
            bw_compiler=self._take_backward,
            inference_compiler=self._take_inference,
            partition_fn=min_cut_rematerialization_partition,
            keep_inference_input_mutations=True,
        )(graph, inputs)

    def _take_inference(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return self._take(graph, "inference")

    def _take_forward(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return self._take(graph, "forward")

    def _take_backward(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return self._take(graph, "backward")

    def _take(self, graph: torch.fx.GraphModule, kind: str) -> Callable[..., Any]:
        number = next(_graph_numbers)
        if kind != "backward":
            self.number = number
        self._recorder.add_graph(number, kind, graph)
        interpreter = _interpreter(graph, self._recorder, number)

        def run(arguments: list[Any]) -> Any:
            # The caller gives its list away: what nobody needs any more is freed.
            given = list(arguments)
            arguments.clear()
            return interpreter.run(*given)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run


def _both(
    recorded: _RecordedGraph, run: Callable[..., Any], theirs: Callable[..., Any], ours: _Recorder, outputs: _Recorder
) -> Callable[..., Any]:
    """Runs both on the same inputs. What the recorded graph writes to its inputs stays its own affair."""
    import torch

    def both(*arguments: Any) -> Any:
        token = ours.token_of(recorded.number)
        with ours.guard("a call of a graph"):
            # Without gradients: the model's own are those of the other backend.
            with torch.random.fork_rng(), torch.no_grad():
                result = run(*[_own(each) for each in arguments])
            ours.save_outputs(recorded.number, token, GRAPH_OUTPUT, result)
        result = theirs(*arguments)
        with outputs.guard("what comes out of a graph"):
            outputs.save_outputs(recorded.number, token, GRAPH_OUTPUT, result)
        return result

    return both


def _own(value: Any) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone(memory_format=torch.preserve_format).requires_grad_(value.requires_grad)


def _interpreter(graph: torch.fx.GraphModule, recorder: _Recorder, number: int) -> Any:
    import torch

    class Interpreter(torch.fx.Interpreter):
        def run(self, *arguments: Any, **options: Any) -> Any:
            self._token = recorder.begin_call(number)
            return super().run(*arguments, **options)

        def run_node(self, node: torch.fx.Node) -> Any:
            token = self._token
            if token is None or node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
                return super().run_node(node)
            key, stamp = f"{node.name}-{node.target}", _now()
            arguments, _ = self.fetch_args_kwargs_from_env(node)
            with recorder.guard(key):  # before the call, which may write to them
                recorder.save_inputs(number, token, key, stamp, arguments)
            result = super().run_node(node)
            with recorder.guard(key):
                recorder.save_outputs(number, token, key, result, stamp)
            return result

    return Interpreter(graph, garbage_collect_values=True)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d%H%M%S%f")


class _Recorder:
    """Writes to one tree, {dump_path}/{folder}."""

    def __init__(self, dump_path: str, folder: str, tokens: Container[int] | None) -> None:
        self._dump_path, self._folder, self._tokens = dump_path, folder, tokens
        self.place = os.path.join(dump_path, folder)
        self._lock = threading.Lock()
        self._rank_folder: str | None = None
        self._graphs: dict[int, dict[str, Any]] = {}
        self._problems: dict[str, int] = {}
        self._made: set[str] = set()
        self._account: Any = None
        self._is_launchers = False

    def add_graph(self, number: int, kind: str, graph: torch.fx.GraphModule) -> None:
        nodes = sum(node.op == "call_function" for node in graph.graph.nodes)
        skipped = sorted(
            {
                str(node.target)
                for node in graph.graph.nodes
                if node.op == "call_function" and not _is_recorded(node.target)
            }
        )
        with self._lock:
            self._graphs[number] = {"kind": kind, "nodes": nodes, "calls": 0, "not_recorded": skipped}
        with self.guard("the text of a graph"):
            self._write_text(f"graph_{number}.txt", graph.print_readable(print_output=False))

    def token_of(self, number: int) -> int:
        """That of the next call."""
        return int(self._graphs[number]["calls"])

    def begin_call(self, number: int) -> int | None:
        """The token, or None for one that is not wanted."""
        with self._lock:
            graph = self._graphs[number]
            token = int(graph["calls"])
            graph["calls"] = token + 1
        wanted = self._tokens is None or token in self._tokens
        with self.guard("the manifest"):
            self._write_manifest()
            if self._is_launchers:
                _native.note_round(token, wanted)
        return token if wanted else None

    def save_inputs(self, number: int, token: int, key: str, stamp: str, arguments: Sequence[Any]) -> None:
        import torch

        for i, value in enumerate(arguments):
            if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
                for j, each in enumerate(value):
                    self._save(number, token, f"{key}.INPUT.{i}.{j}.{stamp}.npy", each)
            else:
                self._save(number, token, f"{key}.INPUT.{i}.{stamp}.npy", value)

    def save_outputs(self, number: int, token: int, key: str, result: Any, stamp: str | None = None) -> None:
        if self._tokens is not None and token not in self._tokens:
            return
        stamp = _now() if stamp is None else stamp
        for i, value in enumerate(result if isinstance(result, (list, tuple)) else [result]):
            self._save(number, token, f"{key}.OUTPUT.{i}.{stamp}.npy", value)

    @contextlib.contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """Whatever goes wrong in recording is noted, and the model goes on."""
        try:
            yield
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            with self._lock:
                first = words not in self._problems
                self._problems[words] = self._problems.get(words, 0) + 1
            if first:
                _logger.warning("%s was not recorded: %s", what, words)

    def _save(self, number: int, token: int, name: str, value: Any) -> None:
        import torch

        from ait_llm.dump.torch_dump import store

        if isinstance(value, torch.Tensor):
            with store.unobserved():
                tensor, _ = store.plain(value.detach())
                # numpy knows none of these.
                if tensor.dtype == torch.bfloat16 or "float8" in str(tensor.dtype):
                    tensor = tensor.to(torch.float32)
        else:
            numbers = _numbers(value)
            if numbers is None:
                return
            tensor = numbers
        folder = self._rank() + f"/graph_{number}/{token}"
        if folder not in self._made:
            os.makedirs(folder, mode=0o750, exist_ok=True)
            self._made.add(folder)
        if len(os.fsencode(name)) > 255:
            raise OSError(f"the name of the file would be too long: {name[:60]}…")
        _store().submit(self._account, os.path.join(folder, name), tensor)

    def _rank(self) -> str:
        """The folder of this rank; known when the first graph is compiled."""
        with self._lock:
            if self._rank_folder is None:
                from ait_llm.dump.torch_dump import folder

                world, rank = _world()
                path = make_private(self._dump_path, self._folder)
                if os.listdir(path) and not _is_claimed(path):
                    _logger.warning(
                        "%s is not empty: data of two dumps would be mixed, give each dump a dump_path of its own", path
                    )
                kind = _native.AccountKind
                self._is_launchers = folder.is_launchers(self._dump_path)
                self._account = _native.Account(kind.TENSORS if self._is_launchers else kind.PRIVATE)
                self._rank_folder = make_private(path, f"worldsize{world}_global_rank{rank}")
            return self._rank_folder

    def _write_manifest(self) -> None:
        import torch

        with self._lock:
            about = {
                "tool": "ait fx_backend",
                "torch": torch.__version__,
                "pid": os.getpid(),
                **place(),
                "graphs": self._graphs,
                "errors": [{"reason": words, "count": count} for words, count in self._problems.items()],
            }
        self._write_text(MANIFEST, json.dumps(about, indent=1, default=str))

    def _write_text(self, name: str, text: str) -> None:
        path = os.path.join(self._rank(), name)
        _store().native.submit_text(_native.Account(), os.fsencode(path), text.encode(errors="surrogateescape"))


_claimed: set[str] = set()


def _is_claimed(path: str) -> bool:
    """Whether this process has begun the tree: another backend with the same path goes on in it."""
    if path in _claimed:
        return True
    _claimed.add(path)
    return False


def _is_recorded(target: Any) -> bool:
    import torch

    return isinstance(target, torch._ops.OpOverload) or target is operator.getitem


def _numbers(value: Any) -> torch.Tensor | None:
    """As TorchAir stores arguments that are numbers; nothing of None, dtypes, devices and the like."""
    import torch

    numbers = list(value) if isinstance(value, (list, tuple)) else [value]
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
    found = {type(each) for each in numbers}
    if not numbers or not found <= set(kinds):
        return None
    dtype = kinds[max(found, key=list(kinds).index)]
    return torch.tensor(value if not isinstance(value, tuple) else list(value), dtype=dtype)


def _world() -> tuple[int, int]:
    import torch.distributed

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size(), torch.distributed.get_rank()
    return 1, 0


def _store() -> Any:
    from ait_llm.dump.torch_dump import process

    if not _flushes:
        _flushes.append(True)
        process.call_at_exit()
        atexit.register(lambda: process.store().flush())  # is called before
    return process.store()


_flushes: list[bool] = []


def flush() -> None:
    """Waits until everything that was recorded so far is on disk."""
    _store().flush()
