"""The switch, where older scripts look for it."""

from ait_llm.api_check.dump import restore, set_dump_switch, start, step, stop

__all__ = ["restore", "set_dump_switch", "start", "step", "stop"]
