"""Recording one iteration of a script that knows nothing of it. Called by startup/sitecustomize.py."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from ait_llm.api_check.config import Config
from ait_llm.api_check.iterations import OFF, Control
from ait_llm.dump.torch_dump.process import say, speak_past_the_script


def config_of(environ: Mapping[str, str]) -> Config:
    config = Config()
    iterations = [int(each) for each in environ.get("AIT_API_ITERATION", "1").split(",")]
    config.update_config(
        dump_path=os.path.abspath(environ["AIT_API_DUMP_PATH"]),  # the script may go to another folder
        target_iter=iterations if len(iterations) > 1 else iterations[0],
        real_data=environ.get("AIT_API_REAL_DATA") == "1",
        api_list=environ.get("AIT_API_LIST") or None,
    )
    return config


class ZeroEdit(Control):
    """Scripts that fetch nothing from a data loader are followed by the steps of their first optimizer."""

    def __init__(self, config: Config, keep_going: bool) -> None:
        super().__init__(config, self._end_script)
        self._keep_going = keep_going
        self._optimizer: Any = None
        self._ended = False

    def follow_optimizers(self) -> None:
        place = sys.modules.get("torch.optim.optimizer")  # torch.optim does not show it
        register = getattr(place, "register_optimizer_step_post_hook", None)
        if register is not None:  # torch 2
            register(lambda optimizer, *_: self._stepped(optimizer))

    def _stepped(self, optimizer: Any) -> None:
        if self.fetches == 0:  # from now on these are what counts; the first iteration is over
            self.leave_loaders()
            self._optimizer = optimizer
            self.fetches = 1
        if optimizer is self._optimizer and not self._ended:
            self.set_dump_switch(OFF)
            self.fetched()

    def _end_script(self, iteration: int) -> None:
        self._ended = True
        if not self._keep_going:
            say(f"ait: iteration {iteration} is recorded, and the script ends here; --keep-going lets it run on")
            raise SystemExit(0)

    def _is_expected(self) -> bool:
        return self.fetches > 0  # helpers of a script import torch, too


def start(environ: Mapping[str, str]) -> None:
    """From now on, in this process."""
    control = ZeroEdit(config_of(environ), environ.get("AIT_API_KEEP_GOING") == "1")
    speak_past_the_script()
    control.follow_loaders()
    control.follow_optimizers()
