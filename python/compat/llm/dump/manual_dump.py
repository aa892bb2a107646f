"""ait_llm.dump.manual_dump under an old name."""

from ait_llm.dump.manual_dump import dump_data, flush

__all__ = ["dump_data", "flush"]
