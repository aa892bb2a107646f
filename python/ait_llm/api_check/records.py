"""Reading the files of a recording, however they have come down to us.

A file that was cut short or edited by hand loses the records that cannot be read, each with its reason, and no others.
Nothing of what a file says is ever executed.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any

from ait_llm._errors import AitError

MAX_FILE_BYTES = 4 << 30
ERROR_DATA = "ait_error_data"
"""The member by which the file of one failed call is known."""

_decoder = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_NEXT_MEMBER = re.compile(r'\n[ \t]*"')


class Unreadable:
    """Stands for a record that could not be read."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


Records = dict[str, Any]
"""By key, in the order of the file; of two with the same key the last."""


def read_records(path: str) -> Records:
    """Raises AitError where there is no such file or nothing of the kind in it."""
    text = _read(path)
    at = _blank(text, 0)
    if not text.startswith("{", at):
        raise AitError(f"{path}: a JSON object of recorded calls was expected; give a forward_info_….json")
    records: Records = {}
    at += 1
    while True:
        at = _blank(text, at)
        if at >= len(text) or text[at] == "}":
            break
        if text[at] == ",":
            at += 1
            continue
        key, value, at = _member(text, at)
        records.pop(key, None)
        records[key] = value
    return records


def _member(text: str, at: int) -> tuple[str, Any, int]:
    start, key = at, f"the record at character {at}"
    try:
        name, at = _decoder.raw_decode(text, at)
        if not isinstance(name, str):
            raise ValueError("a key was expected")
        key = name
        at = _blank(text, at)
        if not text.startswith(":", at):
            raise ValueError("a colon was expected")
        value, at = _decoder.raw_decode(text, _blank(text, at + 1))
        return key, value, at
    except (ValueError, RecursionError) as error:
        following = _NEXT_MEMBER.search(text, start + 1)
        reason = "is nested too deeply" if isinstance(error, RecursionError) else f"cannot be read: {error}"
        if following is None:
            reason += "; the file was probably cut short here"
        return key, Unreadable(reason), len(text) if following is None else following.start()


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise AitError(f"{path}: {error.strerror}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise AitError(f"{path}: a file was expected")
    with open(descriptor, "rb") as file:
        if status.st_size > MAX_FILE_BYTES:
            raise AitError(f"{path}: it has {status.st_size} bytes; files of recorded calls are smaller")
        return file.read().decode("utf-8", "replace")
