"""Labels, under their old name."""

from ait_llm.dump.labels import gen_id, set_label, set_task_id

__all__ = ["gen_id", "set_label", "set_task_id"]
