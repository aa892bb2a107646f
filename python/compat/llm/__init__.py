"""ait_llm under the name that its first documents import."""
