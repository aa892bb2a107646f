"""Detection of overflows under its old name.

from ptdbg_ascend import *

register_hook(model, overflow_check, overflow_nums=1)
"""

from typing import Any

from ait_llm import overflow

__all__ = ["overflow_check", "register_hook"]


def overflow_check(*_: Any, **__: Any) -> None:
    """Stands for the hook in `register_hook`; it is not called."""


def register_hook(model: Any, hook: Any, overflow_nums: int = 1, dump_path: str = "./", **_: Any) -> Any:
    """Looks for overflows from now on, as ait_llm.overflow.watch does. Older arguments beside these have no meaning."""
    if hook is not overflow_check:
        raise ValueError("the only hook is overflow_check; for tensors of modules use ait_llm.register_hook")
    return overflow.watch(model, overflow_nums, dump_path=dump_path)
