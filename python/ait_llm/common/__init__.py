"""What several scenarios use. Each function is in a module of its own: `from ait_llm.common import json_fitter`."""
