"""ait_llm under the name of its successor's package."""

from typing import Any

import ait_llm
from ait_llm import *  # noqa: F403
from ait_llm import __all__, __version__  # noqa: F401

__all__ = list(__all__)


def __getattr__(name: str) -> Any:
    return getattr(ait_llm, name)


def __dir__() -> list[str]:
    return dir(ait_llm)
