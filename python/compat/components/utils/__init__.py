"""ait_llm.common under an old name."""
