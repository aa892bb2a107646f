"""Recording the inputs and outputs of a torch model's modules. See docs/torch_dump.md.

    from ait_llm import DumpConfig, register_hook

    register_hook(model, DumpConfig(dump_path="golden", token_range=[0, 1]))
    model.generate(...)

torch is imported by `register_hook`, not by this package.
"""

from ait_llm.dump.torch_dump.dump_config import DumpConfig
from ait_llm.dump.torch_dump.register import HookHandle, register_hook

__all__ = ["DumpConfig", "HookHandle", "register_hook"]
