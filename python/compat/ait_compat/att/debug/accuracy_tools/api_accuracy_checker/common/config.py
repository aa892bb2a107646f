"""The configuration of recording, where older scripts look for it."""

from ait_llm.api_check.dump import config as msCheckerConfig

__all__ = ["msCheckerConfig"]
