"""ait_llm.dump.torch_dump under an old name."""

from ait_llm.dump.torch_dump import DumpConfig, HookHandle, register_hook

__all__ = ["DumpConfig", "HookHandle", "register_hook"]
