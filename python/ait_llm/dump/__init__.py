"""Recording the tensors of a run from within it. Each way is a module: `from ait_llm.dump import manual_dump`."""

from __future__ import annotations

from ait_llm.dump.fx_dump import fx_backend

__all__ = ["fx_backend"]
