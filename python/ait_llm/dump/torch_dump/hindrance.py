"""Moments in which nobody may listen to what a script does with torch: while torch itself looks at it."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any, Callable

import torch

JIT_TRACED = "called while torch.jit traced the model"
FX_TRACED = "called while torch.fx traced the model"
EXPORTED = "called while torch.export looked at the model"
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
dynamo: Any = sys.modules.get("torch._C._dynamo.eval_frame")


def _frame_callback() -> Any:
    if not hasattr(dynamo, "set_eval_frame"):
        return None
    callback = dynamo.set_eval_frame(None)
    dynamo.set_eval_frame(callback)
    return callback


def _no_callback(_callback: Any) -> Any:
    return None


def hide_from_compile(code: CodeType) -> None:
    """torch.compile runs such code as it is."""
    if hasattr(dynamo, "set_code_exec_strategy"):
        action = dynamo._FrameAction
        dynamo.set_code_exec_strategy(code, dynamo._FrameExecStrategy(action.SKIP, action.DEFAULT))
    elif hasattr(dynamo, "skip_code"):
        dynamo.skip_code(code)


set_tracing_state: Callable[[Any], None] = vars(torch._C)["_set_tracing_state"]  # which its stub lacks
is_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", bool)
_running_compiled: Callable[[], Any] = getattr(dynamo, "get_eval_frame_callback", _frame_callback)
set_callback: Callable[[Any], Any] = getattr(dynamo, "set_eval_frame", _no_callback)
"""What torch.compile runs this thread's frames with from now on; None: not at all. Returns the one before."""
for _function in (hindrance, _frame_callback):
    hide_from_compile(_function.__code__)
