"""Tensors saved by hand in a model script, each beside the path of the file that it is to be compared with.

    from ait_llm.dump.manual_dump import dump_data

    dump_data(token_id=0, data_id=1, golden_data=hidden_states, my_path="dump/outtensor0.bin", output_path="golden")

Then `ait llm compare --golden-path golden/ait_dump/{pid}_{device}` compares every pair. See docs/dump_data.md.
"""

from __future__ import annotations

import atexit
import functools
import logging
import operator
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable

from ait_llm import _native
from ait_llm._errors import AitError
from ait_llm._file_names import file_name
from ait_llm._folders import ForeignFolderError, make_private
from ait_llm._tensor import _is_torch_tensor, operand_of

if TYPE_CHECKING:
    import torch

__all__ = ["dump_data", "flush"]

MAX_QUEUED_BYTES = 64 << 20
"""How much may wait to be written before dump_data waits, too."""

_logger = logging.getLogger("ait_llm")


def dump_data(
    token_id: int | str = -1,
    data_id: int | str = -1,
    golden_data: torch.Tensor | None = None,
    my_path: str | os.PathLike[str] = "",
    output_path: str | os.PathLike[str] = "./",
) -> None:
    """Saves `golden_data` and notes that it belongs to the file `my_path`.

    The tensor goes to {output_path}/ait_dump/{pid}_{device_id}/golden_tensor/{token_id}/{data_id}_tensor.pth; the
    device id of a CPU tensor is -1. metadata.json beside it maps data id and token id to both paths. `data_id` says
    what the tensor is, `token_id` in which round it was: each pair of them is one entry, and the last call for it wins.

    The tensor is copied before this returns and written in the background; at exit everything is written. Whatever
    goes wrong is a warning of the logger "ait_llm", never an exception.
    """
    _untraced(_dump)(token_id, data_id, golden_data, my_path, output_path)


def _untraced(function: Callable[..., None]) -> Callable[..., None]:
    """The function as it is, for models that torch.compile traces."""
    dynamo: Any = sys.modules.get("torch._dynamo")  # importing it takes seconds, and nobody traces without it
    return dynamo.disable(function) if hasattr(dynamo, "disable") else function


def _dump(token_id: Any, data_id: Any, golden_data: Any, my_path: Any, output_path: Any) -> None:
    token, data = _text_of_id(token_id), _text_of_id(data_id)
    problem = _what_is_wrong(token, data, golden_data, my_path)
    if problem is not None or token is None or data is None:
        _logger.warning("dump_data(token_id=%r, data_id=%r): %s; nothing is saved", token_id, data_id, problem)
        return
    if not os.path.exists(my_path):
        _warn_of_missing(os.fspath(my_path))
    try:
        _submit(token, data, golden_data, my_path, output_path)
    except (AitError, OSError, RuntimeError, TypeError, ValueError) as error:
        _logger.warning("dump_data: data_id %s of token_id %s cannot be saved: %s", data, token, error)


def _what_is_wrong(token: str | None, data: str | None, golden_data: Any, my_path: Any) -> str | None:
    if token is None:
        return "Please check whether token_id passed in are correct"
    if data is None:
        return "Please check whether data_id passed in are correct"
    if not _is_torch_tensor(golden_data):
        return f"The golden_data is not a torch tensor! It is a {type(golden_data).__name__}"
    if not isinstance(my_path, (str, os.PathLike)) or not os.fspath(my_path):
        return "Please check whether my_path passed in are correct"
    return None


def flush() -> None:
    """Waits until everything dumped so far is on disk, metadata.json included."""
    _recorder.flush()


@functools.lru_cache(maxsize=1024)
def _warn_of_missing(path: str) -> None:
    """Once for each path: a script in a loop names the same one again and again."""
    _logger.warning("dump_data: my_path %s does not exist yet; it must by the time of the comparison", path)


def _submit(token: str, data: str, golden: torch.Tensor, my_path: Any, output_path: Any) -> None:
    device = golden.device
    device_id = -1 if device.type == "cpu" or device.index is None else device.index
    output = os.path.abspath(output_path)
    names = ("ait_dump", f"{os.getpid()}_{device_id}", "golden_tensor")
    folder = _folder(output, names)
    golden_path = os.path.join(folder, _file_name(token), f"{_file_name(data)}_tensor.pth")
    entry = (data.encode(), token.encode(), os.fsencode(golden_path), os.fsencode(os.path.abspath(my_path)))
    _recorder.submit(operand_of(golden), os.fsencode(folder), entry)
    _recorder.report()


@functools.lru_cache(maxsize=1024)
def _folder(output: str, names: tuple[str, ...]) -> str:
    """Made if it can be; otherwise the writer tries again, and counts what fails."""
    try:
        return make_private(output, *names)
    except ForeignFolderError:
        raise
    except OSError:
        return os.path.join(output, *names)


class _ProcessRecorder:
    """The recorder of this process, made when it is needed. A forked child starts over."""

    def __init__(self) -> None:
        self.start_over()

    def start_over(self) -> None:
        self._lock = threading.Lock()
        self._native: _native.Recorder | None = None
        self._account = _native.Account()
        self._reported = 0

    def submit(self, tensor: _native.Operand, folder: bytes, entry: tuple[bytes, bytes, bytes, bytes]) -> None:
        with self._lock:
            if self._native is None:
                self._native = _native.Recorder(MAX_QUEUED_BYTES)
                _call_at_exit(self.close)
            native = self._native
        native.submit_mapped(self._account, tensor, folder, entry)

    def flush(self) -> None:
        if self._native is not None:
            self._native.flush()
            self.report()

    def report(self) -> None:
        """Says the first thing that went wrong, once."""
        with self._lock:
            if self._native is None or self._reported:
                return
            failure = self._account.first_failure or self._native.first_mapping_failure
            if failure is None:
                return
            self._reported = max(1, self._account.failed)
        _logger.warning("dump_data: %s; from here on failures are only counted", failure)

    def close(self) -> None:
        """The last words of the process."""
        self.flush()
        native, account = self._native, self._account
        if account.failed > self._reported:
            self._reported = account.failed
            _logger.warning("dump_data: %d of %d tensors could not be saved", account.failed, account.submitted)
        if native is not None and native.missing_mappings:
            _logger.warning(
                "dump_data: %d of %d tensors that were saved are not in metadata.json and will not be compared: %s",
                native.missing_mappings,
                account.written,
                native.first_mapping_failure,
            )


def _call_at_exit(function: Any) -> None:
    atexit.register(function)
    # Processes that multiprocessing has forked leave without the handlers of atexit, but not without these.
    if "multiprocessing" in sys.modules:
        from multiprocessing import util

        util.Finalize(None, function, exitpriority=0)


def _text_of_id(given: Any) -> str | None:
    """An id as metadata.json holds it, or None if it was not given."""
    try:
        given = operator.index(given)  # integers of any kind, a tensor with a single one too
    except TypeError:
        pass
    text = str(given).encode(errors="replace").decode()
    return None if given is None or text in ("", "-1") else text


def _file_name(text: str) -> str:
    """The file beside the folders of tokens keeps its name."""
    return "metadata%2Ejson" if text == "metadata.json" else file_name(text)


_recorder = _ProcessRecorder()
os.register_at_fork(after_in_child=_recorder.start_over)
