"""Importing it is enough: what data loaders fetch begins and ends the recording."""

from ait_llm.api_check.dump import config as msCheckerConfig
from ait_llm.api_check.dump import install, restore, set_dump_switch, start, step, stop

from api_accuracy_checker.dump import dump

__all__ = ["dump", "msCheckerConfig", "restore", "set_dump_switch", "start", "step", "stop"]

install()
