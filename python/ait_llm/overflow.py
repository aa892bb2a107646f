"""Finding the functions of torch in which a training overflows: finite inputs, and outputs that are not.

    import ait_llm

    ait_llm.overflow.watch(model, overflow_nums=1)     # before the training loop
    # ait api overflow -forward forward_info_4711.json   says whether the device's kernel is at fault

torch is imported by `watch`, not by this module. See docs/api-check.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ait_llm.api_check.overflow_watch import Watch

__all__ = ["watch"]


def watch(model: Any, overflow_nums: int = 1, *, dump_path: str = "./") -> Watch:
    """From now on looks at what each function that this thread calls returns, and at the gradients that it gives.

    A call that overflows is written to forward_info_{pid}.json or backward_info_{pid}.json in `dump_path`, with its
    inputs. Behind `overflow_nums` of them the training is stopped by a ValueError; -1 never stops it. `model` says
    which device it is about, and may be None. The result has `remove()`, and ends with its `with` block.
    """
    from ait_llm.api_check.overflow_watch import Watch

    made = Watch(model, overflow_nums, dump_path)
    made.start()
    return made
