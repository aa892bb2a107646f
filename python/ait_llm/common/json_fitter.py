"""Topologies of the acceleration library as ONNX files, for a viewer.

    from ait_llm.common.json_fitter import atb_json_to_onnx

    atb_json_to_onnx("ait_dump/model/4711/LlamaModel.json", 1)     # writes ait_dump/model/4711/LlamaModel.onnx

See docs/topology.md.
"""

from __future__ import annotations

import logging
import os

from ait_llm import _native
from ait_llm._errors import AitError

__all__ = ["atb_json_to_onnx"]

_DEEPER_THAN_ANY = 1 << 31

_logger = logging.getLogger("ait_llm")


def atb_json_to_onnx(json_path: str | os.PathLike[str], level: int | None = -1) -> str:
    """Converts a layer's or a model's topology and returns the path of the .onnx file, which is beside the .json.

    `level` is the depth to look at: 0 shows the whole as one node, 1 its parts, and so on; -1 (or None) shows all
    down to the single operations. Shapes and types are added where the dump has a table of operations (`--type op`).
    """
    if level is None:
        level = -1
    if isinstance(level, bool) or not hasattr(level, "__index__"):
        raise AitError(f"the level must be a whole number of 0 or more, or -1 for all levels, not {level!r}")
    depth = min(level.__index__(), _DEEPER_THAN_ANY)
    if depth < -1:
        raise AitError(f"the level {level} makes no sense; give 0 or more, or -1 for all levels")
    written, table_problem = _native.atb_json_to_onnx(os.fsencode(json_path), depth)
    if table_problem is not None:
        _logger.warning("the topology has no shapes: %s", table_problem)
    return os.fsdecode(written)
