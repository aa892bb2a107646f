"""ait_llm.common.json_fitter under an old name."""

from ait_llm.common.json_fitter import atb_json_to_onnx

__all__ = ["atb_json_to_onnx"]
