"""The folder of one process and model: {dump_path}/ait_dump/torch_tensors/{device_id}_{PID}."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import weakref
from typing import Any

import torch

from ait_llm import _native
from ait_llm._folders import FOLDER_MODE, make_private
from ait_llm.dump.torch_dump import module_tree
from ait_llm.dump.torch_dump.manifest import FILE as MANIFEST_FILE
from ait_llm.dump.torch_dump.manifest import Manifest
from ait_llm.dump.torch_dump.store import Store, unobserved

TREE_FILE = "model_tree.json"


class ProcessFolder:
    """Made by nobody else: where the name is taken, by another model or an older process of the same number, it gets
    `_1`, `_2` and so on behind it."""

    def __init__(self, dump_path: str, device: str) -> None:
        self._parent = _parent(dump_path)
        self.device = device
        kind, private = _native.AccountKind, not is_launchers(dump_path)
        self.tensors = _native.Account(kind.PRIVATE if private else kind.TENSORS)
        self.others = _native.Account(kind.PRIVATE if private else kind.RECORDS)
        make_private(os.path.abspath(dump_path), "ait_dump", "torch_tensors")
        self.path = _claim(os.path.join(self._parent, f"{device}_{os.getpid()}"))
        self._last_manifest = (_native.Account(), b"")

    def move(self, device: str) -> None:
        """To the name of another device."""
        path = _claim(os.path.join(self._parent, f"{device}_{os.getpid()}"))
        os.rename(self.path, path)  # over the empty folder
        self.path, self.device = path, device

    @staticmethod
    def step_aside(path: str) -> str:
        """Moves a folder to a name with a number behind it, which is returned."""
        base = re.sub(r"(_\d+)_\d+$", r"\1", path)
        aside = _claim(base)
        os.rename(path, aside)
        return aside

    def write_tree(self, store: Store, tree: dict[str, Any]) -> None:
        store.submit_text(self.others, os.path.join(self.path, TREE_FILE), _native.json_text(tree, 4))

    def write_manifest(self, store: Store, manifest: Manifest, ended: bool) -> None:
        described = manifest.describe(self.device, self.tensors, self.others, ended)
        text = _native.json_text(described, 1)
        # On an account of its own: it cannot count itself.
        self._last_manifest = (_native.Account(), text)
        store.submit_text(self._last_manifest[0], os.path.join(self.path, MANIFEST_FILE), text)

    def put_last_manifest_in_place(self) -> None:
        """Where a full disk had no room for a new file: into the room of the one before it."""
        account, text = self._last_manifest
        if account.failed == 0:
            return
        with contextlib.suppress(OSError), open(os.path.join(self.path, MANIFEST_FILE), "r+b") as file:
            file.write(text)
            file.truncate()


def is_launchers(dump_path: str) -> bool:
    """Whether `ait llm dump` looks there for what it has recorded; a script may also record something of its own."""
    launchers = os.environ.get("AIT_TORCH_DUMP_PATH") or os.environ.get("AIT_FX_DUMP_PATH") or ""
    return launchers != "" and os.path.realpath(launchers) == os.path.realpath(dump_path)


class DeviceOf:
    """The device of a model: that of its last parameter. It is looked for once, since a round waits for it."""

    def __init__(self) -> None:
        self._decides: weakref.ref[torch.nn.Parameter] | None = None

    def now(self, model: torch.nn.Module) -> tuple[str, int | None]:
        """As in the folder's name, and the number of the device, or None on the CPU."""
        with unobserved():
            parameter = None if self._decides is None else self._decides()
            if parameter is None:
                every = [each for _, each in module_tree.named_parameters(model)]
                if not every:
                    return "cpu", None
                parameter = every[-1]
            self._decides = weakref.ref(parameter)
            device = parameter.device
        if device.type in ("cpu", "meta"):
            return "cpu", None
        index = 0 if device.index is None else device.index
        return str(index), index


def _parent(dump_path: str) -> str:
    return os.path.join(os.path.abspath(dump_path), "ait_dump", "torch_tensors")


def _claim(base: str) -> str:
    for again in itertools.count():
        path = f"{base}_{again}" if again else base
        try:
            os.mkdir(path, FOLDER_MODE)
            return path
        except FileExistsError:
            continue
    raise AssertionError("unreachable")
