"""Reads, writes and compares the tensors of large-language-model runs.

    import ait_llm

    tensor = ait_llm.load("layer.bin")            # any format ait knows; a dict for files of several tensors
    tensor.dtype, tensor.shape                    # "bfloat16", (1, 13, 4096)
    result = ait_llm.compare("golden.pth", tensor)
    result.cosine_similarity, result.max_relative_error

    register_hook(model, DumpConfig("golden"))    # records what goes into and comes out of a torch model's modules

Paths, tensors from `load`, NumPy arrays and torch tensors are taken alike, without copying and without holding
the interpreter lock. Neither NumPy nor torch is imported unless it is used.
"""

from ait_llm._api import Comparable, compare, load, save, statistics
from ait_llm._errors import AitError, CorruptError, NotFoundError, RefusedError, UnsupportedError, WriteError
from ait_llm._native import Comparison, RowFinding, Side, Statistics, __version__
from ait_llm._tensor import Tensor
from ait_llm.dump.torch_dump import DumpConfig, HookHandle, register_hook

__all__ = [
    "AitError",
    "Comparable",
    "Comparison",
    "CorruptError",
    "DumpConfig",
    "HookHandle",
    "NotFoundError",
    "RefusedError",
    "RowFinding",
    "Side",
    "Statistics",
    "Tensor",
    "UnsupportedError",
    "WriteError",
    "__version__",
    "compare",
    "load",
    "register_hook",
    "save",
    "statistics",
]
