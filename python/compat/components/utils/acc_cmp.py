"""Reading GE dumps, under the name that scripts for TorchAir import."""

from ait_llm.common.tool import parse_torchair_dump_data

__all__ = ["parse_torchair_dump_data"]
