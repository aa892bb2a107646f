"""The files of one recorded iteration of one process: forward_info, backward_info and stack_info, and tensors."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

import torch

from ait_llm import _native
from ait_llm._folders import FOLDER_MODE
from ait_llm.dump.torch_dump.store import Store

FORWARD, BACKWARD, STACK = "forward_info", "backward_info", "stack_info"
KINDS = (FORWARD, BACKWARD, STACK)
REAL_DATA = {FORWARD: "forward_real_data", BACKWARD: "backward_real_data"}

MAX_NUMBER = 10000
"""Behind names that are taken."""


def check_folder(path: str) -> None:
    """Raises an OSError that says what is wrong."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"The path {path} is not exist. Make the folder, or give another dump_path")
    if not os.path.isdir(path):
        raise NotADirectoryError(f"The path {path} is not a folder; dump_path must be one")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(f"The path {path} cannot be read and written; give another dump_path")


class Files:
    """Made when the first is needed; each has its name alone, and none is ever written over."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.suffix, self._open = self._claim()
        self.calls = 0
        self._real: dict[str, str] = {}
        self._store = Store()
        self._account = _native.Account()

    def path(self, kind: str) -> str:
        return os.path.join(self.folder, f"{kind}_{self.suffix}.json")

    def _claim(self) -> tuple[str, dict[str, _native.ObjectFile]]:
        """A process before this one may have had its number."""
        for number in range(MAX_NUMBER):
            suffix = f"{os.getpid()}_{number}" if number else f"{os.getpid()}"
            taken = [os.path.lexists(os.path.join(self.folder, f"{kind}_{suffix}.json")) for kind in KINDS]
            if any(taken):
                continue
            paths = {kind: os.path.join(self.folder, f"{kind}_{suffix}.json") for kind in KINDS}
            made = {kind: _native.ObjectFile.create(os.fsencode(path)) for kind, path in paths.items()}
            whole = {kind: file for kind, file in made.items() if file is not None}
            if len(whole) == len(KINDS):
                return suffix, whole
        raise FileExistsError(f"{self.folder} is full of files such as {FORWARD}_{os.getpid()}.json; remove them")

    def add(self, kind: str, key: str, value: Any) -> None:
        text = json.dumps(value, indent=4) if kind == STACK else json.dumps(value)
        self._open[kind].add(f"{json.dumps(key)}: {text}".encode())
        self.calls += kind == FORWARD

    def store(self, kind: str, key: str, number: int, tensor: torch.Tensor) -> str:
        """Has a plain tensor written, and says where."""
        path = os.path.join(self._real_folder(kind), f"{key}.{number}.pt")
        self._store.submit(self._account, path, tensor)
        return path

    def _real_folder(self, kind: str) -> str:
        if kind not in self._real:
            folder = os.path.join(self.folder, REAL_DATA[kind])
            try:
                os.mkdir(folder, FOLDER_MODE)
            except FileExistsError:  # another process has it: that of another card, or of an earlier run
                folder = os.path.join(folder, f"rank{self.suffix}")
                os.mkdir(folder, FOLDER_MODE)
            self._real[kind] = folder
        return self._real[kind]

    def write_about(self, error_data_path: str | None, iteration: int) -> None:
        """Who this process is, since its number alone says nothing, and what is to be remembered for run_ut."""
        about = {
            "pid": os.getpid(),
            "rank": _number("RANK"),
            "local_rank": _number("LOCAL_RANK"),
            "device": _device(),
            "host": socket.gethostname(),
            "iteration": iteration,
            "torch": torch.__version__,
            "error_data_path": None if error_data_path is None else os.path.abspath(error_data_path),
        }
        text = json.dumps(about, indent=1) + "\n"
        self._store.submit_text(self._account, self.path("rank_info"), text.encode())

    def flush(self) -> str | None:
        """Waits until everything is on disk. What could not be written."""
        self._store.flush()
        return self._account.first_failure if self._account.failed else None


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else None


def _device() -> str:
    for name in ("npu", "cuda"):
        module = getattr(torch, name, None)
        if module is not None and module.is_available() and getattr(module, "is_initialized", lambda: True)():
            return f"{name}:{module.current_device()}"
    return "cpu"
