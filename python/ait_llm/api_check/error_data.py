"""ut_error_data: inputs and outputs of calls that failed, and a file by which each can be run again."""

from __future__ import annotations

import json
import os
from typing import Any

import torch

import ait_llm
from ait_llm._folders import make_folders
from ait_llm.api_check.inputs import DeviceSlot, Slot
from ait_llm.api_check.legs import Call, Result
from ait_llm.api_check.records import ERROR_DATA
from ait_llm.api_check.values import Describer

FOLDER = "ut_error_data"


def gather(call: Call, bench: Result, device: Result) -> dict[str, Any]:
    """What a worker hands over: groups of values, each by the middle of its files' names."""
    return {
        "forward.input": (call.args, call.kwargs),
        "forward.output.bench": bench.outputs,
        "forward.output.device": device.outputs,
        "backward.input": call.gradients,
        "backward.output.bench": bench.gradients,
        "backward.output.device": device.gradients,
    }


def save(folder: str, key: str, data: dict[str, Any], facts: dict[str, Any]) -> str:
    """Writes everything of one call. Returns the file by which it is run again."""
    make_folders(os.path.abspath(folder))
    stem = os.path.join(os.path.abspath(folder), key.replace("*", "."))
    written: dict[int, str] = {}
    for group, values in data.items():
        _Writer(f"{stem}.{group}", written).write(values)
    args, kwargs = data["forward.input"]
    is_index = "item__*" in key  # where a list is something else than a tuple
    record = {
        ERROR_DATA: 1,
        "key": key,
        **facts,
        "forward": {
            "args": [_describe(each, written, is_index) for each in args],
            "kwargs": _describe(kwargs, written),
        },
        "backward": _describe(data["backward.input"], written) or None,
    }
    path = f"{stem}.json"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o640), "w") as file:
        json.dump(record, file, indent=1)
    return path


class _Writer:
    """Numbers tensors and scalars, as the older tool does; only tensors are written."""

    def __init__(self, stem: str, written: dict[int, str]) -> None:
        self._stem = stem
        self._written = written
        self._number = 0

    def write(self, value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for each in value:
                self.write(each)
        elif isinstance(value, dict):
            for each in value.values():
                self.write(each)
        else:
            tensor = value.tensor if isinstance(value, Slot) else value
            if isinstance(tensor, torch.Tensor):
                path = f"{self._stem}.{self._number}.pt"
                ait_llm.save(path, tensor.detach())
                self._written[id(value)] = path
            if not isinstance(value, (torch.dtype, DeviceSlot)):
                self._number += 1


def _describe(value: Any, written: dict[int, str], is_index: bool = False) -> Any:
    """As a record has it, with the tensors' files."""
    if isinstance(value, Slot):
        path = os.path.basename(written[id(value)])
        entry = {"type": "torch.Tensor", "datapath": path, "requires_grad": value.requires_grad}
        return entry if value.tensor.is_contiguous() else {**entry, "stride": list(value.tensor.stride())}
    if isinstance(value, DeviceSlot):
        return {"type": "torch.device", "value": "cpu"}
    if isinstance(value, (list, tuple)):
        inner = [_describe(each, written, is_index) for each in value]
        return {"type": "list", "value": inner} if is_index and isinstance(value, list) else inner
    if isinstance(value, dict):
        return {name: _describe(each, written) for name, each in value.items()}
    return Describer(None).value(value)
