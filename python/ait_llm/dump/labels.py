"""Labels: tensors of a torch model and of an acceleration library that a script names as a pair while it runs.

    from ait_llm.dump.labels import gen_id, set_label, set_task_id

    set_task_id()                                   # before each round of a dialogue
    data_id = gen_id()
    set_label("pta", data_id, hidden_states)        # the trusted side
    set_label("acl", data_id, acl_model_out[0])     # or tensor_path=…, a file that the library saves by itself

Run the script with `ait debug compare aclcmp --exec "python3 script.py"`: when it has ended every pair is compared. See
docs/labels.md.
"""

from __future__ import annotations

import atexit
import itertools
import json
import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import ait_llm
from ait_llm._errors import AitError
from ait_llm._file_names import file_name
from ait_llm._tensor import _is_torch_tensor
from ait_llm.dump._saved_file import Label, SavedFile

if TYPE_CHECKING:
    import torch

__all__ = ["gen_id", "set_label", "set_task_id"]

TASK_ID = "AIT_CMP_TASK_ID"
"""The acceleration library names the folder of a round after it, where it is set."""
_SOURCES = ("pta", "acl")
_FOLDER_MODE, _FILE_MODE = 0o750, 0o640
_CLOCK_STEP_NS = 20_000_000
"""A file's time is that of a clock that moves in steps, and may lag behind the process's own."""

_logger = logging.getLogger("ait_llm")
_numbers = itertools.count()
_tasks = itertools.count()
_lock = threading.Lock()
_announced: set[str] = set()
_saved_files: dict[str, SavedFile] = {}
_task_began_ns = 0
_order_is_known = True
"""Whether labels of the task can tell if they are set before the library runs or after it."""


def gen_id() -> str:
    """An id that no other call gives: data_{seconds}_{number}."""
    return f"data_{time.time()}_{next(_numbers)}"


def set_task_id() -> None:
    """Begins a new task: labels from now on go to a report of their own."""
    global _task_began_ns, _order_is_known
    _task_began_ns, _order_is_known = time.time_ns(), True
    os.environ[TASK_ID] = f"{os.getpid()}_{next(_tasks)}"


def set_label(
    data_src: str, data_id: str, data_val: torch.Tensor | None = None, tensor_path: str | None = None
) -> None:
    """Names one side of a pair; equal ids belong together, and a later label for the same side replaces an earlier one.

    data_src: "pta", the trusted side, or "acl", the acceleration library.
    data_val: the tensor; it may change as soon as this returns.
    tensor_path: for "acl", a file that the library saves in this round (ACLTRANSFORMER_SAVE_TENSOR=1), as its path
        below the round's folder. It need not exist yet.

    Whatever goes wrong is a warning of the logger "ait_llm", never an exception.
    """
    if data_src not in _SOURCES:
        _logger.warning('set_label: data_src must be "pta" or "acl", not %r', data_src)
        return
    is_tensor = _is_torch_tensor(data_val)
    if not is_tensor and (data_src == "pta" or not tensor_path):
        _logger.warning(
            "set_label: %s of %s needs a torch tensor%s",
            data_src,
            data_id,
            "" if data_src == "pta" else " or a tensor_path",
        )
        return
    try:
        _note(data_src, str(data_id), data_val if is_tensor else None, tensor_path)
    except (AitError, OSError, RuntimeError, TypeError, ValueError) as error:
        _logger.warning("set_label: %s of %s cannot be kept: %s", data_src, data_id, error)


def _note(source: str, data_id: str, tensor: Any, tensor_path: str | None) -> None:
    global _order_is_known
    if TASK_ID not in os.environ:
        set_task_id()
        # What the library saved until now lies in folders that no label names.
        _order_is_known = not os.path.exists(_rounds())
    task = os.environ[TASK_ID]
    folder = _folder()
    name = file_name(data_id)
    kept = os.path.join(folder, f"{os.getpid()}_cmp_dump_data", f"{source}_tensor")
    labels = os.path.join(folder, f"{file_name(task)}_labels.jsonl")
    if tensor is not None:
        os.makedirs(kept, _FOLDER_MODE, exist_ok=True)
        path = os.path.join(kept, f"{name}_tensor.bin")
        ait_llm.save(path, tensor.detach().cpu())
        _append(labels, {"data_id": data_id, "source": source, "path": path})
    else:
        path = os.path.join(_rounds(), task, str(tensor_path))
        inside = os.path.normpath(str(tensor_path))
        if os.path.isabs(inside) or inside.startswith(".."):
            inside = os.path.basename(inside)

        def note(label: Label) -> None:
            line = {"data_id": data_id, "source": source, "path": label.path, "problem": label.problem}
            _append(labels, {**line, "waits": label.waits, "seen_ns": label.seen_ns})

        with _lock:
            if path not in _saved_files:
                _saved_files[path] = SavedFile(path, _task_began_ns - _CLOCK_STEP_NS, _order_is_known)
            _saved_files[path].add(Label(note, os.path.join(kept, name, inside), path))
    _announce(folder)


def _append(path: str, label: dict[str, Any]) -> None:
    line = json.dumps(label) + "\n"
    # One write of one line: threads and processes that share a task do not get into each other's.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _FILE_MODE)
    try:
        os.write(descriptor, line.encode(errors="surrogateescape"))
    finally:
        os.close(descriptor)


def _rounds() -> str:
    """Where the library saves the tensors of this process, a folder for each task or round."""
    home = os.path.abspath(os.environ.get("ACLTRANSFORMER_HOME_PATH") or ".")
    return os.path.join(home, "tensors", str(os.getpid()))


@atexit.register
def _end_files() -> None:
    for file in _saved_files.values():
        try:
            file.end()
        except OSError as error:
            _logger.warning("set_label: a saved file cannot be labelled: %s", error)


# What the parent labelled is the parent's.
os.register_at_fork(after_in_child=_saved_files.clear)


def _folder() -> str:
    """Where the launcher wants labels, or else the current folder."""
    launcher = os.environ.get("AIT_CMP_TASK_PID")
    folder = os.environ.get("AIT_CMP_TASK_DIR", ".")
    folder = os.path.abspath(os.path.join(folder, launcher) if launcher else folder)
    os.makedirs(folder, _FOLDER_MODE, exist_ok=True)
    return folder


def _announce(folder: str) -> None:
    """Without the launcher nobody compares: says once, at the end, how to."""
    if "AIT_CMP_TASK" in os.environ or folder in _announced:
        return
    _announced.add(folder)
    atexit.register(
        print,
        f"ait_llm: labels are kept in {folder}; compare them with: ait debug compare aclcmp --labels {folder}",
        file=sys.stderr,
    )
