"""Where the tensors of one recording go: its process folder with tables, tree and manifest."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import torch

from ait_llm.dump.torch_dump import leaves, module_tree, process
from ait_llm.dump.torch_dump.dump_config import STATISTICS, TENSORS, DumpConfig
from ait_llm.dump.torch_dump.folder import ProcessFolder, device_of
from ait_llm.dump.torch_dump.manifest import Manifest
from ait_llm.dump.torch_dump.selection import Selection
from ait_llm.dump.torch_dump.statistics import FILE as STATISTICS_FILE
from ait_llm.dump.torch_dump.statistics import OnDevice, Row, measure, table
from ait_llm.dump.torch_dump.store import NotStorable, plain, unobserved

MANIFEST_SHARE = 10
"""Of the time, the share that may be spent on the manifest while recording is one in so many: it is written anew each
time, and grows."""
MANIFEST_FREE_SECONDS = 0.005
"""What takes no longer than this is written after every round."""

_logger = logging.getLogger("ait_llm")


class CallFiles:
    """What is written of one call."""

    __slots__ = ("name", "path", "place", "rows", "type_name")

    def __init__(self, folder: str, place: str, name: str, type_name: str) -> None:
        self.path = f"{folder}/{place}"
        self.place = place  # in the process folder
        self.name = name
        self.type_name = type_name
        self.rows: list[Row] = []


class Sink:
    """Of one model and configuration."""

    def __init__(self, config: DumpConfig, selection: Selection, root_type: str) -> None:
        self._config = config
        self._selection = selection
        self.manifest = Manifest(config, root_type)
        self.tree: dict[str, Any] = {}
        self._folder: ProcessFolder | None = None
        self._lost = False  # no folder can be had, or it has been closed
        self._lock = threading.RLock()
        self._on_device = OnDevice()
        self._tables: list[tuple[str, list[Row]]] = []
        self._manifest_due = 0.0
        self._failures = 0
        self.path: str | None = None

    def open(self, model: torch.nn.Module) -> bool:
        """Makes the folder, or moves it when the model has gone to another device before its first call."""
        device, index = device_of(model)
        wanted = self._config.device_id
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
        elif self._folder.device != device and not self.manifest.rounds:
            process.store().flush()
            self._folder.move(device)
            self._announce()
        return True

    @property
    def _there(self) -> ProcessFolder:
        assert self._folder is not None
        return self._folder

    def _announce(self) -> None:
        self.path = self._there.path
        process.say(f"ait_llm: recording {self.manifest.root_type} in {self.path}")

    # Tensors

    def files_of(self, place: str, name: str, type_name: str) -> CallFiles:
        return CallFiles(self._there.path, place, name, type_name)

    def record(self, call: CallFiles, found: Iterator[leaves.Leaf]) -> None:
        values = list(found)  # where classes of the script's own are looked into, its own code runs
        with unobserved():
            for stem, value in values:
                with self._said(f"{call.place}/{stem}"):
                    if not isinstance(value, torch.Tensor):
                        raise NotStorable(f"a {type(value).__name__} is not looked into")
                    self._record_tensor(call, stem, self._plain(value, f"{call.place}/{stem}"))

    def _plain(self, tensor: torch.Tensor, place: str) -> torch.Tensor:
        dense, note = plain(tensor)
        if note is not None:
            self.manifest.stored_otherwise.add(note, place)
        return dense

    @contextlib.contextmanager
    def _said(self, place: str) -> Iterator[None]:
        """Of what cannot be stored, the manifest says why."""
        try:
            yield
        except NotStorable as error:
            self.manifest.not_stored.add(str(error), place)
        except Exception as error:
            self.manifest.not_stored.add(f"{type(error).__name__}: {error}"[:500], place)

    def _record_tensor(self, call: CallFiles, stem: str, tensor: torch.Tensor) -> None:
        if self._config.dump_statistics_mode != TENSORS:
            row = Row(call.name, call.type_name, stem, tensor)
            if OnDevice.takes(tensor):
                self._on_device.add(row, tensor)
            else:
                row.values = measure(tensor.cpu())
            call.rows.append(row)
        if self._config.dump_statistics_mode != STATISTICS:
            process.store().submit(self._there.tensors, f"{call.path}/{stem}.pth", tensor)

    def end_call(self, call: CallFiles) -> None:
        if not call.rows:
            return
        with self._lock, unobserved():
            self._tables.append((f"{call.path}/{STATISTICS_FILE}", call.rows))
            if self._on_device.full or not self._on_device.pending:
                self._write_tables()

    def _record_weights(self, model: torch.nn.Module) -> None:
        for full, parameter in module_tree.named_parameters(model):
            if not self._selection.wants_name(full):
                continue
            path = os.path.join(self._there.path, "weights", f"{leaves.file_name(full)}.pth")
            with unobserved(), self._said(f"weights/{full}"):
                process.store().submit(self._there.tensors, path, self._plain(parameter, f"weights/{full}"))

    # Files beside the tensors

    def settle(self) -> None:
        """Whatever is still on a device gets off it."""
        with self._lock, unobserved():
            if self._folder is not None:
                self._write_tables()
                process.store().hand_over()

    def _write_tables(self) -> None:
        self._on_device.fetch()
        tables, self._tables = self._tables, []
        for path, rows in tables:
            process.store().submit_text(self._there.others, path, table(rows))

    def write_tree(self) -> None:
        if self._folder is not None:
            self._folder.write_tree(process.store(), self.tree)

    def write_manifest(self, now: bool = False, ended: bool = False) -> None:
        if self._folder is None or (not now and time.monotonic() < self._manifest_due):
            return
        start = time.monotonic()
        self._folder.write_manifest(process.store(), self.manifest, ended)
        took = time.monotonic() - start
        self._manifest_due = start + took * MANIFEST_SHARE if took > MANIFEST_FREE_SECONDS else 0.0

    def flush(self) -> None:
        self.settle()
        process.store().flush()  # so that the manifest can say what was written
        self.write_manifest(now=True)
        process.store().flush()
        self.warn_of_failures()

    def close(self) -> None:
        self.settle()
        process.store().flush()
        self.write_manifest(now=True, ended=True)
        process.store().flush()
        if self._folder is not None:
            self._folder.put_last_manifest_in_place()
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
