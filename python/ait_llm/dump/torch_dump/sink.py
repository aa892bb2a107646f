"""Where the tensors of one recording go: its process folder with tables, tree and manifest."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump import capacity, captures, leaves, module_tree, process
from ait_llm.dump.torch_dump.dump_config import STATISTICS, TENSORS, DumpConfig
from ait_llm.dump.torch_dump.folder import DeviceOf, ProcessFolder
from ait_llm.dump.torch_dump.manifest import Manifest, Round
from ait_llm.dump.torch_dump.measuring import Measuring
from ait_llm.dump.torch_dump.selection import Selection
from ait_llm.dump.torch_dump.store import NotStorable, plain, unobserved
from ait_llm.dump.torch_dump.written import Written

MANIFEST_SHARE = 100
"""Of the time, the share that may be spent on the manifest while recording is one in so many: it is written anew each
time, and grows."""

STORED_AS_BF16 = "float32 is stored as bfloat16, rounded to the nearest, as store_as asks"

_logger = logging.getLogger("ait_llm")


class CallFiles:
    """What is written of one call."""

    __slots__ = ("name", "number", "path", "place", "table")

    def __init__(self, folder: str, place: str, name: str, table: _native.RoundTable | None, number: int) -> None:
        self.path = f"{folder}/{place}"
        self.place = place  # in the process folder
        self.name = name
        self.table = table  # of statistics, and there the number of the call
        self.number = number


class Sink:
    """Of one model and configuration."""

    def __init__(
        self, config: DumpConfig, selection: Selection, root_type: str, trouble: Callable[[BaseException, str], None]
    ) -> None:
        self._config = config
        self._selection = selection
        self.manifest = Manifest(config, root_type)
        self._measuring: Measuring | None = None
        if config.dump_statistics_mode != TENSORS:
            self._measuring = Measuring(config, self.manifest, trouble)
        self._natively = config.dump_statistics_mode == STATISTICS
        self._written = Written() if capacity.links() else None
        self.tree: dict[str, Any] = {}
        self._folder: ProcessFolder | None = None
        self._device = DeviceOf()
        self._lost = False  # no folder can be had, or it has been closed
        self._lock = threading.RLock()
        self._manifest_due = 0.0
        self._failures = 0
        self.path: str | None = None

    def open(self, model: torch.nn.Module) -> bool:
        """Makes the folder, or moves it when the model has gone to another device before its first call."""
        wanted = self._config.device_id
        if wanted is None and self.manifest.rounds and not self._lost:
            return True  # it stays where it began
        device, index = self._device.now(model)
        if self._lost or (wanted is not None and index is not None and index != wanted):
            return False
        if self._folder is None:
            try:
                self._folder = ProcessFolder(self._config.dump_path, device)
            except OSError as error:
                self._lost = True
                _logger.warning("ait_llm: nothing will be recorded: %s", error)
                return False
            process.call_at_exit()
            self._announce()
            self.write_tree()
            self.write_manifest(now=True)
            process.store().flush()  # however soon the process is killed, what it was is there
            if self._config.dump_weight:
                self._record_weights(model)
            self._begin_on(index)
        elif self._folder.device != device and not self.manifest.rounds:
            process.store().flush()
            self._folder.move(device)
            self._announce()
            self._begin_on(index)
        return True

    def _begin_on(self, device: int | None) -> None:
        if device is None or not torch.cuda.is_initialized():
            return
        captures.listen()
        if self._measuring is not None:
            self._measuring.use_device(device)

    @property
    def _there(self) -> ProcessFolder:
        assert self._folder is not None
        return self._folder

    def _announce(self) -> None:
        self.path = self._there.path
        process.say(f"ait_llm: recording {self.manifest.root_type} in {self.path}")

    # Tensors

    def files_of(self, place: str, name: str, table: _native.RoundTable | None, number: int) -> CallFiles:
        return CallFiles(self._there.path, place, name, table, number)

    def record_arguments(self, call: CallFiles, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._natively and self._measuring is not None and call.table is not None:
            with unobserved():
                self._measuring.recording.arguments(call.table, call.number, args, kwargs)
        else:
            self._record(call, leaves.of_arguments(args, kwargs))

    def record_output(self, call: CallFiles, output: Any) -> None:
        if self._natively and self._measuring is not None and call.table is not None:
            with unobserved():
                self._measuring.recording.output(call.table, call.number, output)
        else:
            self._record(call, leaves.of_output(output))

    def _record(self, call: CallFiles, found: Iterator[leaves.Leaf]) -> None:
        values = list(found)  # where classes of the script's own are looked into, its own code runs
        with unobserved():
            for stem, value in values:
                place = f"{call.place}/{stem}"
                try:
                    if not isinstance(value, torch.Tensor):
                        raise NotStorable(f"a {type(value).__name__} is not looked into")
                    self._record_tensor(call, stem, place, self._plain(value, place))
                except Exception as error:
                    self._say(error, place)

    def _plain(self, tensor: torch.Tensor, place: str) -> torch.Tensor:
        dense, note = plain(tensor)
        if note is not None:
            self.manifest.stored_otherwise.add(note, place)
        return dense

    def _as_kept(self, tensor: torch.Tensor, place: str) -> torch.Tensor:
        """In the type that `store_as` asks for. Other types are not changed: they have no more digits, or a range that
        bfloat16 has not."""
        if not self._changes_type(tensor):
            return tensor
        self.manifest.stored_otherwise.add(STORED_AS_BF16, place)
        return tensor.detach().to(torch.bfloat16)

    def _changes_type(self, tensor: torch.Tensor) -> bool:
        return self._config.store_as is not None and tensor.dtype is torch.float32

    def _say(self, error: Exception, place: str) -> None:
        """Of what cannot be stored, the manifest says why."""
        reason = str(error) if isinstance(error, NotStorable) else f"{type(error).__name__}: {error}"[:500]
        self.manifest.not_stored.add(reason, place)

    def _record_tensor(self, call: CallFiles, stem: str, place: str, tensor: torch.Tensor) -> None:
        if self._measuring is not None and call.table is not None:
            self._measuring.recording.tensor(call.table, call.number, stem, tensor)
        if self._config.dump_statistics_mode != STATISTICS:
            self._write_tensor(tensor, f"{call.path}/{stem}.pth", place)

    def _write_tensor(self, tensor: torch.Tensor, path: str, place: str) -> None:
        round_ = place.partition("/")[0]
        first = None if self._written is None else self._written.find(tensor, round_)
        if first is not None:
            process.store().submit_again(self._there.tensors, path, *first)
            if self._changes_type(tensor):
                self.manifest.stored_otherwise.add(STORED_AS_BF16, place)
            return
        kept = self._as_kept(tensor, place)
        process.store().submit(self._there.tensors, path, kept)
        if self._written is not None:
            self._written.add(tensor, round_, path, kept.numel() * kept.element_size())

    def forget_tensors(self) -> None:
        """What is met from now on is written, also if it was met before."""
        if self._written is not None:
            self._written.forget()

    # Statistics

    @property
    def natively(self) -> Measuring | None:
        """Of modules that need nothing but statistics, native code hears by itself."""
        return self._measuring if self._natively else None

    def begin_round(self, current: Round) -> None:
        self.forget_tensors()
        if self._measuring is not None:
            current.table = self._measuring.begin_round(current.number, current.captured)

    def stand_in(self, current: Round | None) -> None:
        """From now on this thread is in that round, or in none."""
        if self._measuring is not None:
            self._measuring.recording.set_current(None if current is None else current.table)

    def settle_round(self, current: Round, in_order: bool = False) -> None:
        """What the round has so far gets off the devices, and on its way to its file. The order of its calls is asked
        for once."""
        if self._measuring is None or current.table is None or self._folder is None or current.captured:
            return
        with self._lock, unobserved():
            rounds = self.manifest.rounds
            current.take_calls(rounds[-2] if len(rounds) > 1 and rounds[-1] is current else None, in_order)
            self._measuring.settle(current.table, process.store().tables, self._folder.others, self._folder.path)

    def end_round(self, current: Round) -> None:
        """Nothing belongs to it any more."""
        if self._measuring is not None and current.table is not None:
            self._judge(current)
            self._measuring.end_round(current.table)
            current.table = None
        self.manifest.rounds.settle()

    def _judge(self, current: Round) -> None:
        """Whether the tensors of the last rounds are kept."""
        trigger = self.manifest.trigger
        if trigger is None or self._folder is None or current.table is None:
            return
        process.store().tables.flush()  # then the numbers are there
        trigger.see(current.table)
        self._remove(trigger.end_round(current.number))

    def _remove(self, rounds: list[int]) -> None:
        for number in rounds:
            process.store().remove_tensors(self._there.tensors, os.path.join(self._there.path, str(number)))

    def _record_weights(self, model: torch.nn.Module) -> None:
        for full, parameter in module_tree.named_parameters(model):
            if not self._selection.wants_name(full):
                continue
            path = os.path.join(self._there.path, "weights", f"{leaves.file_name(full)}.pth")
            place = f"weights/{full}"
            with unobserved():
                try:
                    self._write_tensor(self._plain(parameter, place), path, place)
                except Exception as error:
                    self._say(error, place)

    def forget(self) -> None:
        """In a forked child: what was begun is the parent's affair."""
        if self._measuring is not None:
            self._measuring.close()

    # Files beside the tensors

    def settle(self) -> None:
        """Tensors that are still on a device get off it."""
        self.forget_tensors()
        with self._lock, unobserved():
            if self._folder is not None:
                process.store().hand_over()

    def write_tree(self) -> None:
        if self._folder is not None:
            self._folder.write_tree(process.store(), self.tree)

    def write_manifest(self, now: bool = False, ended: bool = False) -> None:
        if self._folder is None or (not now and time.monotonic() < self._manifest_due):
            return
        start = time.monotonic()
        self._folder.write_manifest(process.store(), self.manifest, ended)
        took = time.monotonic() - start
        if not now:  # the first round is noted in any case: it says that the model was called
            self._manifest_due = start + took * MANIFEST_SHARE

    def flush(self) -> None:
        self.settle()
        process.store().flush()  # so that the manifest can say what was written
        self.write_manifest(now=True)
        process.store().flush()
        self.warn_of_failures()

    def close(self) -> None:
        self.settle()
        if self._folder is not None and self.manifest.trigger is not None:
            self._remove(self.manifest.trigger.finish())
        process.store().flush()
        self.write_manifest(now=True, ended=True)
        process.store().flush()
        if self._folder is not None:
            self._folder.put_last_manifest_in_place()
        if self._measuring is not None:
            self._measuring.close()
        self.warn_of_failures()
        if self._failures:
            _logger.warning("ait_llm: %d files could not be written to %s", self._failures, self.path)
        self._folder, self._lost = None, True

    def step_aside(self) -> None:
        """After the end: leaves the folder's name to another recording."""
        if self.path is not None:
            self.path = ProcessFolder.step_aside(self.path)

    def warn_of_failures(self) -> None:
        """The first is said, the others are counted."""
        if self._folder is None:
            return
        failed = self._folder.tensors.failed + self._folder.others.failed
        if failed and not self._failures:
            failure = self._folder.tensors.first_failure or self._folder.others.first_failure
            _logger.warning("ait_llm: %s; from here on failures are only counted", failure)
        self._failures = failed
