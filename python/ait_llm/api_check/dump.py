"""Recording from within a script: what `import api_accuracy_checker.dump` leads to.

    from ait_llm.api_check import dump

    dump.install()                              # the second batch that a data loader fetches begins the recording
    dump.config.update_config(target_iter=3)

Importing this module imports torch and changes nothing.
"""

from __future__ import annotations

from ait_llm.api_check.config import config
from ait_llm.api_check.iterations import control

__all__ = ["config", "install", "restore", "set_dump_switch", "start", "step", "stop"]

install = control.follow_loaders
restore = control.restore
set_dump_switch = control.set_dump_switch
start = control.start
step = control.step
stop = control.stop
