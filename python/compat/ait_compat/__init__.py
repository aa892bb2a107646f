"""What the compatibility names need besides ait_llm."""
