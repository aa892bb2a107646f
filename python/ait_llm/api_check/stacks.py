"""Where a call comes from, as texts: the innermost frame first, without the frames of this package and of torch's own
wrappers around the function."""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType

import torch

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_WRAPPERS = frozenset(
    _TORCH + name for name in ("overrides.py", "_jit_internal.py", "nn/functional.py", "functional.py", "_tensor.py")
)

_texts: dict[tuple[CodeType, int], str] = {}


def stack_texts() -> list[str]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_wrapper(frame.f_code.co_filename):
        frame = frame.f_back
    texts = []
    while frame is not None:
        text = _text_of(frame)
        if text:
            texts.append(text)
        frame = frame.f_back
    return texts


def _is_wrapper(path: str) -> bool:
    return path.startswith(_OWN) or path in _WRAPPERS


def _text_of(frame: FrameType) -> str:
    """ "" for a frame whose source is not to be had."""
    code, line = frame.f_code, frame.f_lineno or 0
    text = _texts.get((code, line))
    if text is None:
        source = linecache.getline(code.co_filename, line, frame.f_globals).strip()
        place = f"File {code.co_filename}, line {line}, in {code.co_name}, \n {source}"
        text = _texts[code, line] = place if source and not code.co_filename.startswith(_OWN) else ""
    return text
