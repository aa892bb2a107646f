"""ait_llm.dump.torchair_dump under an old name."""

from ait_llm.dump.torchair_dump import fx_backend, get_fx_dump_config, get_ge_dump_config

__all__ = ["fx_backend", "get_fx_dump_config", "get_ge_dump_config"]
