"""Which iterations of a training are recorded: the switch, and the fetches of data loaders that turn it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any, Callable

from torch.utils.data import dataloader

from ait_llm.api_check.config import Config, config
from ait_llm.api_check.files import BACKWARD, FORWARD, check_folder
from ait_llm.api_check.listening import Listening
from ait_llm.api_check.recording import Recording
from ait_llm.dump.torch_dump.process import say

ON, OFF = "ON", "OFF"


def stop_by_exception(iteration: int) -> None:
    """The older tool's way to end a training."""
    raise Exception(f"Model pretest: exit after iteration {iteration}.")


class Control:
    """Of one process."""

    def __init__(self, settings: Config, stop_script: Callable[[int], None] = stop_by_exception) -> None:
        self._config = settings
        self._stop_script = stop_script
        self._fetch: Any = None  # of data loaders, as it was
        self._parents: list[Any] = []
        self._start_over()

    def _start_over(self) -> None:
        """The state of a process that has recorded nothing; as a forked child is."""
        self._recording = Recording(self._config)
        self._listening: Listening | None = None
        self._lock = threading.RLock()
        self._at_exit: list[str] = []
        self.fetches = 0
        self.switch: str | None = None

    def _start_over_in_child(self) -> None:
        # What belongs to the parent must not be destroyed here: threads that would be waited for do not exist.
        self._parents.append((self._recording, self._listening))
        self._recording.on = False
        if self._listening is not None:
            self._listening.active = False
        self._start_over()

    # The switch

    def set_dump_switch(self, switch: str) -> None:
        """ "ON": record what this thread calls from now on. "OFF": stop that, and wait until everything is on disk."""
        if switch not in (ON, OFF):
            raise ValueError("Please set switch with 'ON' or 'OFF'.")
        with self._lock:
            if switch == ON:
                self._turn_on()
            else:
                self._turn_off()

    def _turn_on(self) -> None:
        check_folder(self._config.dump_path)
        iteration = max(0, self.fetches - 1) if self._config.enable_dataloader else self.fetches
        folder = os.path.abspath(self._config.dump_path)
        if isinstance(self._config.target_iter, list):
            folder = os.path.join(folder, f"step{iteration}")
        self._recording.begin_files(folder, iteration)
        if self._listening is None:
            self._listening = Listening(self._recording)
        self._recording.on = True
        self._listening.start()
        self.switch = ON
        self._call_at_exit()

    def _turn_off(self) -> None:
        was_on, self._recording.on = self._recording.on, False
        if self._listening is not None:
            self._listening.stop()
            self._listening = None
        self.switch = OFF
        if was_on:
            self._recording.settle()

    # Scripts without a data loader

    def start(self) -> None:
        """Begins, if this iteration is one to record."""
        if not self._config.enable_dataloader and self.switch != ON and self.fetches in self._config.targets:
            self.set_dump_switch(ON)

    def stop(self) -> None:
        self.set_dump_switch(OFF)

    def step(self) -> None:
        """The next iteration begins."""
        if not self._config.enable_dataloader:
            self.fetches += 1

    # Data loaders

    def follow_loaders(self) -> None:
        """From now on what data loaders fetch turns the switch."""
        if self._fetch is not None:
            return
        fetch = self._fetch = dataloader._BaseDataLoaderIter.__next__
        control = self

        def __next__(self: Any) -> Any:
            if not control._config.enable_dataloader or dataloader.get_worker_info() is not None:
                return fetch(self)
            control.set_dump_switch(OFF)
            batch = fetch(self)
            control.fetched()
            return batch

        __next__.__wrapped__ = fetch  # type: ignore[attr-defined]
        dataloader._BaseDataLoaderIter.__next__ = __next__  # type: ignore[method-assign]
        os.register_at_fork(after_in_child=self._start_over_in_child)
        self._call_at_exit()

    def leave_loaders(self) -> None:
        if self._fetch is not None:
            dataloader._BaseDataLoaderIter.__next__ = self._fetch  # type: ignore[method-assign]
            self._fetch = None

    def fetched(self) -> None:
        number = self.fetches
        self.fetches += 1
        if number in self._config.targets:
            self.set_dump_switch(ON)
        elif number > max(self._config.targets):
            self.leave_loaders()
            self._stop_script(number - 1)

    # The end

    def restore(self) -> None:
        """Everything of torch is as it was."""
        self.set_dump_switch(OFF)
        self.leave_loaders()

    def _call_at_exit(self) -> None:
        if "atexit" not in self._at_exit:
            self._at_exit.append("atexit")
            atexit.unregister(self._close)  # a fork's parent had it registered, too
            atexit.register(self._close)
        # Processes that multiprocessing has started leave without the handlers of atexit, but not without these.
        if "multiprocessing" in sys.modules and "multiprocessing" not in self._at_exit:
            from multiprocessing import util

            self._at_exit.append("multiprocessing")
            util.Finalize(None, self._close, exitpriority=0)

    def _close(self) -> None:
        if not self._at_exit:  # the other way to the end was first
            return
        self._at_exit = []
        self.set_dump_switch(OFF)
        files = self._recording.files
        if files is not None:
            say(
                f"ait_llm: {files.calls} calls of torch APIs are recorded in {files.path(FORWARD)}; next:\n"
                f"  ait api check -forward {files.path(FORWARD)} -backward {files.path(BACKWARD)}"
            )
        elif self._is_expected():
            say(
                f"ait_llm: no call of a torch API is recorded, because iteration {min(self._config.targets)} did not "
                f"begin: {self.fetches} began. Give a smaller target_iter, or call "
                'set_dump_switch("ON") in the loop of the training'
            )

    def _is_expected(self) -> bool:
        """Whether somebody is told that nothing is recorded."""
        return self._config.enable_dataloader


control = Control(config)
