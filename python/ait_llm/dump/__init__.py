"""Recording the tensors of a run from within it. Each way is a module of its own: `from ait_llm.dump import manual_dump`."""
