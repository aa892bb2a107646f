"""run_ut: every recorded call on its own, on the device and in the benchmark's precision, compared."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable, NamedTuple

import torch

from ait_llm._errors import AitError
from ait_llm._folders import make_folders
from ait_llm.api_check import error_data, outcome
from ait_llm.api_check.devices import Device, open_device
from ait_llm.api_check.outcome import Outcome, Settings, skipped
from ait_llm.api_check.progress import Progress
from ait_llm.api_check.records import ERROR_DATA, Records, read_records
from ait_llm.api_check.reports import DETAILS, RESULT, Reports
from ait_llm.api_check.workers import Work, keep_freed_memory, limit_memory, run_all

TIME_LIMIT_SECONDS = 300.0


class Options(NamedTuple):
    forward: str
    backward: str | None = None
    out_path: str = "./"
    save_error_data: bool = False
    error_data_path: str | None = None
    devices: tuple[str, ...] = ("auto",)
    device_number: int = 0
    against: str | None = None
    jit_compile: bool = False
    resume: bool = False
    resumed: str | None = None  # a result csv to go on with
    timestamp: bool = False
    time_limit_seconds: float = TIME_LIMIT_SECONDS
    settings: Settings = Settings()
    data_path: str | None = None


def log(text: str, level: str = "INFO") -> None:
    """In the older tool's form."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}({os.getpid()})-[{level}]{text}", file=sys.stderr, flush=True)


class Run:
    """One run over a file of recorded calls."""

    def __init__(self, options: Options, make_device: Callable[[str], Device] | None = None) -> None:
        self._options = options
        self._make_device = make_device or self._open
        self.forward, self.backward = read_both(options.forward, options.backward)
        folders = [options.data_path] if options.data_path else []
        for path in filter(None, (options.forward, options.backward)):
            folders.append(os.path.dirname(os.path.abspath(path)))
        self.settings = options.settings._replace(
            data_folders=tuple(dict.fromkeys(folders)), keep_data=options.save_error_data
        )
        try:
            make_folders(os.path.abspath(options.out_path))
        except OSError as error:
            raise AitError(f"{options.out_path}: the reports cannot be written there: {error.strerror}") from None
        resumed = options.resumed
        if resumed is None and options.resume:
            resumed = os.path.join(options.out_path, f"{RESULT}.csv")
        self.reports = Reports(options.out_path, options.timestamp, resumed)
        stamp = os.path.basename(self.reports.result)[len(RESULT) : -len(".csv")].lstrip("_")
        self.error_folder = os.path.join(self._error_path(), f"{error_data.FOLDER}{stamp}")
        self.reproducers: list[str] = []
        self.device_text = ""

    def _open(self, name: str) -> Device:
        options = self._options
        return open_device(name, options.device_number, options.against, options.jit_compile)

    def _error_path(self) -> str:
        """As asked for here, as remembered from the recording, or the current folder."""
        if self._options.error_data_path is not None:
            return self._options.error_data_path
        name = os.path.basename(self._options.forward)
        about = os.path.join(os.path.dirname(self._options.forward), name.replace("forward_info", "rank_info"))
        if about != self._options.forward:
            try:
                with open(about) as file:
                    remembered = json.load(file).get("error_data_path")
            except (OSError, ValueError, AttributeError):
                remembered = None
            if isinstance(remembered, str) and "\0" not in remembered:
                return remembered
        return "./"

    def run(self) -> None:
        jobs = [
            (key, record, self.backward.get(key))
            for key, record in self.forward.items()
            if key not in self.reports.done
        ]
        progress = Progress(len(jobs))
        starts = [self._start(name) for name in self._workers()]
        results = run_all(jobs, starts, lambda job, how: skipped(job[0], how), self._options.time_limit_seconds)
        for result in results:
            self._take(result)
            progress.step(result.key)
        progress.end()

    def _workers(self) -> tuple[str, ...]:
        """The device of each. Two share the CPU: while one runs a function the other makes inputs or compares."""
        names = self._options.devices
        return names * 2 if names == ("cpu",) and torch.get_num_threads() > 1 else names

    def _start(self, name: str) -> Callable[[], Work]:
        threads = max(1, torch.get_num_threads() * len(self._options.devices) // len(self._workers()))

        def start() -> Work:
            torch.set_num_threads(threads)
            device = self._make_device(name)
            device.prepare(self.settings.seed)
            limit_memory(self.settings.max_bytes)
            keep_freed_memory()
            return lambda job: outcome.check(job[0], job[1], job[2], device, self.settings)

        return start

    def _take(self, result: Outcome) -> None:
        if result.error_data is not None:
            facts = {"seed": self.settings.seed, "forward_verdict": result.forward, "backward_verdict": result.backward}
            facts["message"] = result.message
            self.reproducers.append(error_data.save(self.error_folder, result.key, result.error_data, facts))
        self.reports.add(result)


def read_both(forward: str, backward: str | None) -> tuple[Records, Records]:
    records = read_records(forward)
    if ERROR_DATA in records:  # the file of one failed call
        key = records.get("key")
        if not isinstance(key, str):
            raise AitError(f"{forward}: the name of the call is missing")
        found = records.get("backward")
        return {key: records.get("forward")}, {} if found is None else {key: found}
    return records, {} if backward is None else read_records(backward)


def resolved(options: Options) -> tuple[Options, str]:
    """With the devices that are there, and what they are. AitError where one is not.

    In a process of its own: whoever asks for an accelerator cannot fork any more.
    """

    def start() -> Work:
        def work(name: Any) -> Any:
            try:
                device = open_device(name, options.device_number, options.against, options.jit_compile)
                return (device.name, device.describe())
            except AitError as error:
                return (None, str(error))

        return work

    answers = list(run_all(list(options.devices), [start], lambda _, how: (None, how), options.time_limit_seconds))
    for name, text in answers:
        if name is None:
            raise AitError(text)
    return options._replace(devices=tuple(name for name, _ in answers)), "; ".join(text for _, text in answers)


__all__ = ["DETAILS", "Options", "Run", "log", "read_both", "resolved"]
