"""A file that the acceleration library saves anew in every call of the model, and the labels that name it.

The library names the file after the operation alone, so one call overwrites what the call before left. A label wants
the data of its own call:

    after the library    the file is there when the label is set: it is copied at once
    before the library   the file is not there yet, or is the one of the call before: the label waits, and what the
                         library saves next is its own

A script sets a label at one place, so the first label of a file tells which of the two it is. Where the library did not
save the file, or saved it more than once while a label waited, the label gets a problem in place of data.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass

NOT_SAVED = (
    "the library did not save this file for the call of this label: is ACLTRANSFORMER_SAVE_TENSOR=1 set, is "
    "ACLTRANSFORMER_SAVE_TENSOR_MAX large enough, and does ACLTRANSFORMER_SAVE_TENSOR_RUNNER name the runner?"
)
SAVED_AGAIN = (
    "the library saved this file {} times after this label, so its own data are lost: set a label for every call of "
    "the library, or set it after the call."
)
NO_TASK = (
    "the library had saved tensors before the first label, and no task was set, so the call that this file belongs to "
    "is not known: call set_task_id before the library runs."
)


@dataclass
class Label:
    """A label of a saved file; `note` writes it down, again whenever one of these changes."""

    note: Callable[[Label], None]
    copy: str  # where a copy of the data may lie
    path: str  # where its data are
    seen_ns: int | None = None  # the time of the file that the label does not mean
    waits: bool = False
    problem: str = ""


class SavedFile:
    def __init__(self, path: str, since_ns: int, order_is_known: bool) -> None:
        """A file that is older than `since_ns` was there before the task."""
        self._path = path
        self._since_ns = since_ns
        self._order_is_known = order_is_known
        self._after_the_library: bool | None = None
        self._waiting: Label | None = None
        self._seen_ns: int | None = None  # the file as it was at the last label
        self._writes = _Writes(path)

    def add(self, label: Label) -> None:
        times = self._times_saved()
        self._settle(times, keep_a_copy=True)
        saved_ns = self._saved_ns()
        if self._after_the_library is None:
            self._after_the_library = saved_ns is not None and saved_ns >= self._since_ns
            times = int(self._after_the_library)
        if not self._order_is_known:
            label.problem = NO_TASK
        elif not self._after_the_library:
            label.waits, label.seen_ns = True, saved_ns
            self._waiting = label
        elif times == 0:
            label.problem = NOT_SAVED
        else:
            self._take(label)
        self._seen_ns = saved_ns
        self._writes.start()
        label.note(label)

    def end(self) -> None:
        """Nothing will be saved any more, so the last label needs no copy."""
        self._settle(self._times_saved(), keep_a_copy=False)

    def _settle(self, times: int, keep_a_copy: bool) -> None:
        """Gives the waiting label what the library has saved since."""
        label, self._waiting = self._waiting, None
        if label is None:
            return
        label.waits = False
        if times == 0:
            label.problem = NOT_SAVED
        elif times > 1:
            label.problem = SAVED_AGAIN.format(times)
        elif keep_a_copy:
            self._take(label)
        else:
            label.path = self._found()
        label.note(label)

    def _take(self, label: Label) -> None:
        os.makedirs(os.path.dirname(label.copy), 0o750, exist_ok=True)
        shutil.copyfile(self._found(), label.copy)
        label.path = label.copy

    def _times_saved(self) -> int:
        """How often the file was saved since the last label; more than once is seen only where Linux counts."""
        saved_ns, times = self._saved_ns(), self._writes.count()
        if saved_ns is None:
            return 0
        return int(saved_ns != self._seen_ns) if times is None else times

    def _saved_ns(self) -> int | None:
        try:
            return os.stat(self._found()).st_mtime_ns
        except OSError:
            return None

    def _found(self) -> str:
        """Versions of the library differ in the case of "outTensor0.bin"."""
        if os.path.exists(self._path):
            return self._path
        folder, wanted = os.path.split(self._path)
        try:
            names = os.listdir(folder)
        except OSError:
            return self._path
        return os.path.join(folder, next((name for name in names if name.lower() == wanted.lower()), wanted))


_IN_CLOSE_WRITE, _IN_MOVED_TO, _IN_CREATE, _IN_MODIFY = 0x8, 0x80, 0x100, 0x2
_EVENT = struct.Struct("iIII")


class _Writes:
    """How often a file was written since a moment, as Linux tells it; the time of a file is too coarse for that."""

    def __init__(self, path: str) -> None:
        self._folder, self._name = os.path.split(path)
        self._descriptor = -1

    def start(self) -> None:
        self._close()
        if os.environ.get("ACLTRANSFORMER_SAVE_TENSOR") != "1":
            return
        # Linux merges equal events that follow each other; those of the writing in between keep two writes apart.
        events = _IN_CLOSE_WRITE | _IN_MOVED_TO | _IN_CREATE | _IN_MODIFY
        try:
            os.makedirs(self._folder, exist_ok=True)  # as the library itself will, so that it can be watched
            libc = ctypes.CDLL(None)
            self._descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if libc.inotify_add_watch(self._descriptor, os.fsencode(self._folder), events) < 0:
                self._close()
        except (OSError, AttributeError):
            self._close()

    def count(self) -> int | None:
        """None: this cannot be told here."""
        if self._descriptor < 0:
            return None
        count = 0
        try:
            while events := os.read(self._descriptor, 65536):
                while events:
                    _, mask, _, length = _EVENT.unpack_from(events)
                    name = os.fsdecode(events[_EVENT.size : _EVENT.size + length].rstrip(b"\0"))
                    count += bool(mask & (_IN_CLOSE_WRITE | _IN_MOVED_TO)) and name.lower() == self._name.lower()
                    events = events[_EVENT.size + length :]
        except BlockingIOError:
            pass
        self._close()
        return count

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
