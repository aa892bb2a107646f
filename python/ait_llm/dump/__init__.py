"""Recording the tensors of a run from within it. Each way is a module: `from ait_llm.dump import manual_dump`."""
