"""ait_llm.dump under an old name."""
