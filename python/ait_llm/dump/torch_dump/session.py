"""One model being recorded: which calls belong to which round, and when the model is listened to at all."""

from __future__ import annotations

import contextlib
import copy
import logging
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump import captures, compiled, determinism, leaves, module_tree, process
from ait_llm.dump.torch_dump.apis import ApiRecorder
from ait_llm.dump.torch_dump.dump_config import INPUTS, OUTPUTS, DumpConfig
from ait_llm.dump.torch_dump.folder import is_launchers
from ait_llm.dump.torch_dump.listening import Tap
from ait_llm.dump.torch_dump.manifest import CUDA_GRAPH, SCRIPTED, STRANGE_GRAPH, Round
from ait_llm.dump.torch_dump.perturbation import Perturbation, unit_of
from ait_llm.dump.torch_dump.selection import Selection
from ait_llm.dump.torch_dump.sink import CallFiles, Sink

_logger = logging.getLogger("ait_llm")


class Call:
    """A call of a module or function that has not returned."""

    __slots__ = ("files", "name", "tap", "type_name")

    def __init__(self, tap: Tap | None, name: str, type_name: str) -> None:
        self.tap = tap  # None for a function
        self.name = name
        self.type_name = type_name
        self.files: CallFiles | None = None  # None if it is not recorded


class _Thread(threading.local):
    """Where one thread is."""

    def __init__(self) -> None:
        self.stack: list[Call] = []
        self.round: Round | None = None  # of the root call that it is in
        self.functions: Any = None  # what listens to functions in it

    @property
    def busy(self) -> bool:
        """In code of ours. Native code that hears of calls knows it, too."""
        return _native.busy()

    @busy.setter
    def busy(self, now: bool) -> None:
        _native.set_busy(now)


def begin(model: torch.nn.Module, config: DumpConfig) -> Session:
    if config.seed is not None:
        determinism.switch_on(config.seed)
    session = Session(model, config)
    compiled.forget()
    process.add(session)
    with session.guarded("the model"):
        session.open()
    return session


class Session:
    """Listens to `model` from `open` to `close`. Nothing that goes wrong here is allowed to reach the model.

    All modules are listened to while the latest round is one to record, else only the root.
    """

    def __init__(self, model: torch.nn.Module, config: DumpConfig) -> None:
        self.config = copy.copy(config)
        self.closed = False
        self._counted = is_launchers(self.config.dump_path)
        self._model = weakref.ref(model)
        self._selection = Selection(self.config)
        self._apis = ApiRecorder(self, self._selection) if "api" in self.config.mode else None
        self._taps: dict[str, Tap] = {}
        self._layout: tuple[tuple[str, int, type], ...] = ()
        self._print: int | None = None  # of the modules, the last time that they were looked at
        self._attached = False  # the modules below the root
        self._tree: dict[str, Any] = {}
        self._own_calls: list[str] = []
        self._perturbation: Perturbation | None = None
        self._begin()

    def start_over(self) -> None:
        """In a forked child, which goes on listening: the state of a process that has recorded nothing."""
        self._sink.forget()
        self._attached = False
        self._begin()

    def _begin(self) -> None:
        model = self._model()
        self._lock = threading.RLock()
        self._thread = _Thread()
        self._round: Round | None = None  # of the latest root call, or the first if there was none
        self._captured: dict[int, list[Round]] = {}  # calls that CUDA graphs were captured of, by the capture's number
        self._since = time.monotonic()
        self._active = 0  # root calls under way that are recorded
        self._ordered = False
        root_type = "" if model is None else type(module_tree.uncompiled(model)).__name__
        self._sink = Sink(self.config, self._selection, root_type, self.trouble)
        self._sink.tree = self._tree
        self._sink.manifest.own_calls = self._own_calls
        self._sink.manifest.perturbation = self._perturbation

    @property
    def model(self) -> torch.nn.Module | None:
        return self._model()

    @property
    def folder(self) -> str | None:
        return self._sink.path

    def open(self) -> None:
        """Begins to listen, and writes the files that do not depend on a call."""
        with self._lock:
            model = self._model()
            if model is None:
                return
            self._look_at(model)
            unit = unit_of(self.config.perturb)
            if unit is not None:
                self._perturbation = Perturbation(model, unit, self.config.seed or 0, self.trouble)
                self._sink.manifest.perturbation = self._perturbation
            if self._sink.open(model) and 0 in self.config.token_range:
                self._attach()
            self._taps[module_tree.ROOT].attach()

    def flush(self) -> None:
        with self.guarded("flush"):
            if self._round is not None:
                self._sink.settle_round(self._round)
            self._sink.flush()

    def close(self, replaced_by: str | None = None) -> None:
        """Ends the recording; what was recorded is on disk when this returns."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self._sink.manifest.replaced_by = replaced_by
            for tap in self._taps.values():
                tap.detach()
            if self._perturbation is not None:
                self._perturbation.remove()
        process.remove(self)
        with self.guarded("the end"):
            if not process.sessions():
                compiled.forget()
                captures.rest()
            for each in list(self._sink.manifest.rounds):
                self._sink.settle_round(each)
                self._sink.end_round(each)
            self._sink.close()

    def step_aside(self) -> None:
        """After `close`: leaves the folder's name to another recording."""
        with self.guarded("the folder"):
            self._sink.step_aside()

    def guarded(self, what: str) -> _Guard:
        return _Guard(self, what)

    def trouble(self, error: BaseException, what: str) -> None:
        """Something of ours went wrong: said once, counted always."""
        if self._sink.manifest.errors.add(f"{type(error).__name__}: {error}"[:500], what):
            _logger.warning("ait_llm: %s cannot be recorded: %s: %s", what, type(error).__name__, error)

    # Modules

    def _look_at(self, model: torch.nn.Module) -> None:
        """Finds the modules, which may have changed since the last time."""
        print_of = _native.print_of_modules(model)
        if print_of is not None and print_of == self._print:
            return
        self._print = print_of
        named, tree = module_tree.walk(model)
        layout = tuple((name, id(module), type(module)) for name, module in named)
        if layout == self._layout:
            return
        old, self._taps = self._taps, {}
        for name, module in named:
            tap = old.get(name)
            if tap is not None and tap.module() is module:
                del old[name]
            else:
                tap = Tap(self, module, name)
            self._taps[name] = tap
            self._describe(tap, module_tree.uncompiled(module))
        for tap in old.values():
            tap.detach()
        self._layout = layout
        self._attached = False
        self._tree = self._sink.tree = tree
        inner = ((name, module_tree.uncompiled(module)) for name, module in named)
        self._own_calls = [name for name, module in inner if module_tree.has_own_call(module)]
        self._sink.manifest.own_calls = self._own_calls
        self._sink.write_tree()

    def _describe(self, tap: Tap, module: torch.nn.Module) -> None:
        """A module may have become of another class, as lazy and sharded ones do."""
        if isinstance(module, torch.jit.ScriptModule) and not tap.type_name:
            self._sink.manifest.not_listened.add(SCRIPTED, tap.name)
        tap.type_name = type(module).__name__
        tap.wanted = self._selection.wants_module(module, tap.name)
        tap.expected = tap.wanted and module_tree.has_forward(module)

    def _attach(self) -> None:
        if self._attached:
            return
        self._attached = True
        for tap in self._taps.values():
            if not tap.is_root and (tap.wanted or self._apis is not None):
                tap.attach(self._native_tap(tap))

    def _native_tap(self, tap: Tap) -> _native.NativeTap | None:
        """What hears of its calls without Python; None where Python has to."""
        natively, module = self._sink.natively, tap.module()
        if natively is None or module is None or self._apis is not None or not tap.wanted:
            return None
        return natively.tap(module, tap.name, tap.type_name)

    def _detach(self) -> None:
        self._attached = False
        for tap in self._taps.values():
            if not tap.is_root:
                tap.detach()

    # Rounds

    def _start_round(self) -> Round:
        capture = captures.under_way() if self._sink.natively is not None else 0
        with self._lock:
            if capture:
                return self._captured_round(capture)
            manifest = self._sink.manifest
            number = manifest.root_calls
            manifest.root_calls += 1
            current = before = self._round
            if current is None or number > 0:
                current = self._round = Round(number, number in self.config.token_range)
            if before is not None and before is not current and (before.finished or before.raised):
                self._sink.end_round(before)
            if self._counted:
                _native.note_round(number, current.wanted)
            current.started = True
            model = self._model()
            if current.wanted and model is not None:
                self._look_at(model)
                self._prepare(current)
            if current.wanted:
                self._attach()
                self._active += 1
            elif self._attached and self._active == 0:
                self._detach()
            return current

    def _captured_round(self, capture: int) -> Round:
        """Stands for those that the replays of the graph will be."""
        current = Round(self._sink.manifest.root_calls, True, captured=True)
        model = self._model()
        if model is not None and self._sink.open(model):
            self._look_at(model)
            self._attach()
            self._sink.begin_round(current)
        self._captured.setdefault(capture, []).append(current)
        return current

    def replayed(self, capture: int, ended: float) -> None:
        """A CUDA graph has run; that capture of it ended then, at 0 if nobody listened."""
        if self._thread.busy:
            return
        with self.guarded("the replay of a CUDA graph"), self._lock:
            manifest = self._sink.manifest
            if ended < self._since:
                manifest.replays_unheard += 1
                if manifest.replays_unheard == 1:
                    process.say(
                        f"ait_llm: what was {STRANGE_GRAPH} is not recorded; begin to record before the capture"
                    )
                return
            for captured in self._captured.get(capture, ()):
                self._replay(captured)

    def _replay(self, captured: Round) -> None:
        if captured.table is None:
            return
        of_root = module_tree.ROOT in captured.table.calls()
        current = self._start_round() if of_root else self._thread.round or self._round_between()
        if current.wanted and current.table is not None:
            current.table.append_replay(captured.table, captures.current_stream())
        if of_root:
            self._end_round(current, False)
        elif self._thread.round is None:
            self._sink.settle_round(current)

    def _round_between(self) -> Round:
        """Calls of modules outside any root call belong to the latest round, or the first if there was none."""
        capture = captures.under_way() if self._sink.natively is not None else 0
        if capture:
            with self._lock:
                known = self._captured.get(capture)
                return known[-1] if known else self._captured_round(capture)
        with self._lock:
            if self._round is None:
                self._round = Round(0, 0 in self.config.token_range)
            if self._round.wanted:
                self._prepare(self._round)
            return self._round

    def _prepare(self, current: Round) -> None:
        rounds = self._sink.manifest.rounds
        if rounds and rounds[-1] is current:
            return
        model = self._model()
        if model is None or not self._sink.open(model):
            current.wanted = False
            return
        current.expected = [name for name, tap in self._taps.items() if tap.expected]
        self._sink.begin_round(current)
        rounds.append(current)

    def _end_round(self, current: Round, raised: bool) -> None:
        with self._lock:
            current.finished, current.raised = not raised, raised
            if current.table is not None and current.captured:
                current.table.forget_tensors()
            if not current.wanted or current.captured:
                return
            self._active -= 1
            self._sink.settle_round(current, in_order=not self._ordered)
            self._sink.settle()
            if current is not self._round:
                self._sink.end_round(current)
            if not self._ordered and not raised:
                self._ordered = True
                module_tree.add_order(self._tree, current.calls)
                self._sink.write_tree()
            self._sink.write_manifest()
            self._sink.warn_of_failures()

    # Calls

    def enter(self, tap: Tap, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        thread = self._thread
        if thread.busy:
            return
        thread.busy = True
        try:
            if tap.is_root and all(call.tap is not tap for call in thread.stack):
                thread.stack.clear()
                thread.round = self._start_round()
                self._sink.stand_in(thread.round)
                if self._apis is not None and thread.round.wanted:
                    thread.functions = self._apis.listen()
            call = Call(tap, tap.name, tap.type_name)
            thread.stack.append(call)
            if not tap.wanted:
                return
            current = thread.round or self._round_between()
            if current.wanted:
                self._begin_call(call, current, args, kwargs)
        except Exception as error:
            self.trouble(error, tap.name)
        finally:
            thread.busy = False

    def leave(self, tap: Tap, output: Any, raised: bool) -> None:
        thread = self._thread
        if thread.busy:
            return
        thread.busy = True
        try:
            call = self._pop(thread, tap)
            if call is None:
                return
            is_end = tap.is_root and all(other.tap is not tap for other in thread.stack)
            ended = thread.round if is_end else None
            if ended is not None and thread.functions is not None:
                thread.functions.stop()
                thread.functions = None
            if self.closed:
                return
            if call.files is not None and not raised:
                self._end_call(call.files, output)
                if call.files.table is None:
                    (thread.round or self._round_between()).seen.add(call.name)
            if thread.round is None and not thread.stack and self._round is not None:
                self._sink.settle_round(self._round)
            if ended is not None:
                thread.round = None
                self._sink.stand_in(None)
                thread.stack.clear()
                self._end_round(ended, raised)
        except Exception as error:
            self.trouble(error, tap.name)
        finally:
            thread.busy = False

    @property
    def looks_inside(self) -> bool:
        """What this thread is about to call belongs to a round that is recorded."""
        if self._thread.busy or self.closed or self.config.mode != ["module"]:
            return False
        current = self._thread.round or self._round
        return 0 in self.config.token_range if current is None else current.wanted

    def note_compiled(self, backend: str, recorded: bool) -> None:
        """Something that torch.compile compiles is about to be called."""
        with self.guarded("a compiled model"):
            if not self._sink.manifest.note_compiled(backend, recorded):
                return
            if recorded:
                what = f"for {backend} is compiled once more, with the recording in it"
            else:
                what = f"is not recorded inside ({backend}); record with TORCHDYNAMO_DISABLE=1"
            process.say(f"ait_llm: what torch.compile makes of the model {what}")

    @contextlib.contextmanager
    def from_inside(self) -> Iterator[None]:
        """Around what is told of tensors in compiled code: it writes to memory that it has used before, and nothing at
        the tensors says so."""
        self._forget_tensors()
        yield
        self._forget_tensors()

    def _forget_tensors(self) -> None:
        self._sink.forget_tensors()
        current = self._thread.round or self._round
        if current is not None and current.table is not None:
            current.table.forget_tensors()

    def pass_by(self, tap: Tap, reason: str) -> None:
        """A call that is not listened to."""
        with self.guarded(tap.name):
            manifest = self._sink.manifest
            manifest.not_stored.add(reason, f"{manifest.root_calls}/{tap.name}")

    def enter_api(self, name: str, type_name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallFiles | None:
        """None if this call is not to be recorded."""
        thread = self._thread
        current = thread.round
        if thread.busy or current is None or not current.wanted or not thread.stack:
            return None
        full = f"{thread.stack[-1].name}.{name}"
        if not self._selection.wants_name(full):
            return None
        with self.guarded(full):
            call = Call(None, full, type_name)
            self._begin_call(call, current, args, kwargs)
            return call.files
        return None

    def leave_api(self, files: CallFiles, output: Any) -> None:
        with self.guarded(files.name):
            self._end_call(files, output)

    @staticmethod
    def _pop(thread: _Thread, tap: Tap) -> Call | None:
        """The latest call of this tap; those above it have raised something that a caller caught."""
        for index in range(len(thread.stack) - 1, -1, -1):
            if thread.stack[index].tap is tap:
                call = thread.stack[index]
                del thread.stack[index:]
                return call
        return None

    def _begin_call(self, call: Call, current: Round, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hindrance = None if current.captured else _hindrance()
        if hindrance is not None:
            self._sink.manifest.not_stored.add(hindrance, f"{current.number}/{call.name}")
            return
        name, table, number = leaves.file_name(call.name), current.table, 0
        with self._lock:
            if call.tap is None:
                place = name + current.suffix_of_function(call.name, self._taps)
                if table is not None:
                    number = table.begin_function(call.name, call.type_name, place)
            elif table is not None:
                number, place = table.begin_call(call.name, call.type_name, name)
            else:
                place = name + current.suffix_of_module(call.name)
        call.files = self._sink.files_of(f"{current.number}/{place}", call.name, table, number)
        if self.config.tensor_part != OUTPUTS:
            self._sink.record_arguments(call.files, args, kwargs)

    def _end_call(self, files: CallFiles, output: Any) -> None:
        if self.config.tensor_part != INPUTS:
            self._sink.record_output(files, output)
        if files.table is not None:
            files.table.end_call(files.number)


class _Guard:
    """Inside it nothing can go wrong for the caller, and our own calls are not recorded."""

    def __init__(self, session: Session, what: str) -> None:
        self._session = session
        self._what = what

    def __enter__(self) -> None:
        self._thread = self._session._thread
        self._busy = self._thread.busy
        self._thread.busy = True

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> bool:
        self._thread.busy = self._busy
        if isinstance(error, Exception):
            self._session.trouble(error, self._what)
            return True
        return False


def _hindrance() -> str | None:
    """Why tensors cannot be looked at right now."""
    if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        return CUDA_GRAPH
    return None
