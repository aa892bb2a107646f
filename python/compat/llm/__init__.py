"""ait_llm under the name that its first documents import."""

from ait_llm import DumpConfig, HookHandle, register_hook

__all__ = ["DumpConfig", "HookHandle", "register_hook"]
