"""What the recordings of one process share: the store, the list of them, and the end of the process."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump.dump_config import DumpConfig
from ait_llm.dump.torch_dump.store import Store

if TYPE_CHECKING:
    from ait_llm.dump.torch_dump.session import Session


class _Process:
    def __init__(self) -> None:
        self.store = Store()
        self.sessions: list[Session] = []
        self.lock = threading.RLock()
        self.calls_at_exit: list[str] = []
        self.past_the_script = False


_process = _Process()
_of_the_parent: list[Store] = []


def store() -> Store:
    return _process.store


def add(session: Session) -> None:
    with _process.lock:
        _process.sessions.append(session)


def remove(session: Session) -> None:
    with _process.lock:
        if session in _process.sessions:
            _process.sessions.remove(session)


def sessions() -> list[Session]:
    with _process.lock:
        return list(_process.sessions)


def find(model: torch.nn.Module, config: DumpConfig) -> Session | None:
    """The session that already records this."""
    with _process.lock:
        return next((each for each in _process.sessions if each.model is model and each.config == config), None)


def speak_past_the_script() -> None:
    """What is said from now on is none of the script's business: it may catch what is written to sys.stderr."""
    _process.past_the_script = True


def say(words: str) -> None:
    stream = sys.__stderr__ if _process.past_the_script else sys.stderr
    if stream is None:
        return
    try:
        print(words, file=stream, flush=True)
    except (OSError, ValueError):  # closed
        pass


def _end() -> None:
    for session in list(_process.sessions):
        session.close()
    if _process.calls_at_exit:  # not in a forked child that recorded nothing
        _native.note_end()


def call_at_exit() -> None:
    """Has every recording ended when the process ends. To be called when there is something to end: multiprocessing
    forgets what was registered before or during a fork."""
    if "atexit" not in _process.calls_at_exit:
        _process.calls_at_exit.append("atexit")
        atexit.unregister(_end)  # a fork's parent had it registered, too
        atexit.register(_end)
    # Processes that multiprocessing has started leave without the handlers of atexit, but not without these.
    if "multiprocessing" in sys.modules and "multiprocessing" not in _process.calls_at_exit:
        from multiprocessing import util

        _process.calls_at_exit.append("multiprocessing")
        util.Finalize(None, _end, exitpriority=0)


def _start_over_in_child() -> None:
    """The parent's files are the parent's affair."""
    sessions, past_the_script = _process.sessions, _process.past_the_script
    _of_the_parent.append(_process.store)  # page-locked memory must not be freed in a child
    _process.__init__()  # type: ignore[misc]
    for session in sessions:
        session.start_over()
    _process.sessions, _process.past_the_script = sessions, past_the_script


os.register_at_fork(after_in_child=_start_over_in_child)
