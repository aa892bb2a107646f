"""Processes that run calls, so that one that crashes or hangs costs no more than itself."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import resource
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any, Callable

from ait_llm._errors import AitError

# What a worker does with a job. Called in its process.
Work = Callable[[Any], Any]

_LENGTH = struct.Struct("<Q")
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # M_… of malloc.h


class WorkerDied(Exception):
    """Says how, after "the process that ran it"."""


class Worker:
    """A fork of this process, which must have no other threads and must not have used a device."""

    def __init__(self, start: Callable[[], Work]) -> None:
        mine, other = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            mine.close()
            _serve(other, start)
        other.close()
        self._socket = mine
        self.place: int | None = None  # of the job that it has
        self.job: Any = None
        self.started = 0.0
        self._ready = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def give(self, place: int, job: Any) -> None:
        """AitError where it could not even start."""
        if not self._ready:  # what it takes to start is not the job's fault
            if _receive(self._socket) is None:
                raise AitError(f"a process that was to run calls {self._end()} before it could begin")
            self._ready = True
        self.place, self.job, self.started = place, job, time.monotonic()
        with contextlib.suppress(OSError):  # it is dead, and `take` will say so
            _send(self._socket, job)

    def take(self) -> Any:
        """What came of the job. WorkerDied."""
        self.place = None
        answer = _receive(self._socket)
        if answer is None:
            raise WorkerDied(self._end())
        return answer

    def kill(self) -> None:
        if self._socket.fileno() >= 0:  # it has not ended by itself
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """For its end after it was killed: to give back its memory takes a moment."""
        if self._socket.fileno() >= 0:
            self._end()

    def _end(self) -> str:
        self._socket.close()
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return f"was killed by signal {number} ({signal.Signals(number).name})"
        return f"ended with status {os.WEXITSTATUS(status)}"


def _serve(connection: socket.socket, start: Callable[[], Work]) -> None:
    """The life of a worker. It ends without a trace of the process that it is a copy of."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and says what is to be done
        _end_with_parent()
        gc.freeze()  # of torch's modules nothing will ever be garbage; to look through them takes a tenth of a second
        work = start()
        _send(connection, True)
        while (job := _receive(connection)) is not None:
            _send(connection, work(job))
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _end_with_parent() -> None:
    """A parent that is interrupted or killed at a bad moment cannot end its workers any more."""
    parent_death_signal = 1  # of prctl, in <linux/prctl.h>
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def _send(connection: socket.socket, value: Any) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def _receive(connection: socket.socket) -> Any:
    """None at the end."""
    header = _read(connection, _LENGTH.size)
    data = None if header is None else _read(connection, _LENGTH.unpack(header)[0])
    return None if data is None else pickle.loads(data)  # of our own fork alone


def _read(connection: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = connection.recv(min(count - len(parts), 1 << 20))
        except OSError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)


def limit_memory(max_bytes: int) -> None:
    """What this process takes beyond what it has now."""
    with open("/proc/self/statm") as file:
        data_pages = int(file.read().split()[5])
    limit = data_pages * resource.getpagesize() + max_bytes
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def keep_freed_memory() -> None:
    """Has glibc use memory of this process again in place of giving it back: fresh pages cost more than most calls."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        set_option = ctypes.CDLL(None).mallopt
        set_option(_TRIM_THRESHOLD, -1)
        set_option(_MMAP_MAX, 0)


def run_all(
    jobs: list[Any],
    starts: list[Callable[[], Work]],
    lost: Callable[[Any, str], Any],
    time_limit_seconds: float,
) -> Iterator[Any]:
    """What comes of each job, in their order. `starts` has one function for each worker that is to be there at a time.

    A job whose worker dies or takes too long comes to what lost(job, how) says, and another worker takes its place.
    """
    pending = list(enumerate(jobs))[::-1]
    done: dict[int, Any] = {}
    workers: list[Worker | None] = [None] * len(starts)
    next_place = 0
    try:
        while next_place < len(jobs):
            idle = [number for number, worker in enumerate(workers) if worker is None or worker.place is None]
            for number in idle[: len(pending)]:  # all of them start side by side
                workers[number] = workers[number] or Worker(starts[number])
            for number in idle[: len(pending)]:
                worker = workers[number]
                assert worker is not None
                worker.give(*pending.pop())
            busy = [worker for worker in workers if worker is not None and worker.place is not None]
            soonest = min(worker.started for worker in busy) + time_limit_seconds
            ready, _, _ = select.select(busy, [], [], max(0.0, soonest - time.monotonic()))
            for number, worker in enumerate(workers):
                if worker is None or worker.place is None:
                    continue
                place, job = worker.place, worker.job
                if worker in ready:
                    try:
                        done[place] = worker.take()
                    except WorkerDied as end:
                        done[place] = lost(job, f"the process that ran it {end}")
                        workers[number] = None
                elif time.monotonic() - worker.started >= time_limit_seconds:
                    worker.kill()
                    worker.wait()
                    done[place] = lost(job, f"it took longer than {time_limit_seconds:g} s")
                    workers[number] = None
            while next_place in done:
                yield done.pop(next_place)
                next_place += 1
    finally:
        left = [worker for worker in workers if worker is not None]
        for worker in left:
            worker.kill()
        for worker in left:
            worker.wait()
