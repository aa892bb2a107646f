"""Moments in which nobody may listen to what a script does with torch: while torch itself looks at it."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any, Callable

import torch

from ait_llm.dump.torch_dump.manifest import EXPORTED, FX_TRACED, JIT_TRACED

COMPILED = "called by what torch.compile runs"


def hindrance() -> str | None:
    """Why a call may not be listened to right now."""
    if _running_compiled() is not None:
        return COMPILED
    if is_compiling():
        return EXPORTED
    if torch._C._get_tracing_state() is not None:
        return JIT_TRACED
    if getattr(sys.modules.get("torch.fx._symbolic_trace"), "_is_fx_tracing_flag", False):
        return FX_TRACED
    return None


# The part of torch.compile that is there before anybody asks for the rest of it.
_dynamo: Any = sys.modules.get("torch._C._dynamo.eval_frame")


def _frame_callback() -> Any:
    if not hasattr(_dynamo, "set_eval_frame"):
        return None
    callback = _dynamo.set_eval_frame(None)
    _dynamo.set_eval_frame(callback)
    return callback


def hide_from_compile(code: CodeType) -> None:
    """torch.compile runs such code as it is."""
    if hasattr(_dynamo, "set_code_exec_strategy"):
        action = _dynamo._FrameAction
        _dynamo.set_code_exec_strategy(code, _dynamo._FrameExecStrategy(action.SKIP, action.DEFAULT))
    elif hasattr(_dynamo, "skip_code"):
        _dynamo.skip_code(code)


set_tracing_state: Callable[[Any], None] = vars(torch._C)["_set_tracing_state"]  # which its stub lacks
is_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", bool)
_running_compiled: Callable[[], Any] = getattr(_dynamo, "get_eval_frame_callback", _frame_callback)
for _function in (hindrance, _frame_callback):
    hide_from_compile(_function.__code__)
