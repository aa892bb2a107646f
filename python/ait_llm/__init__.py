"""Reads, writes and compares the tensors of large-language-model runs.

    import ait_llm

    tensor = ait_llm.load("layer.bin")            # any format ait knows; a dict for files of several tensors
    tensor.dtype, tensor.shape                    # "bfloat16", (1, 13, 4096)
    result = ait_llm.compare("golden.pth", tensor)
    result.cosine_similarity, result.max_relative_error

    for row in ait_llm.compare_runs("golden_run", "my_run"):   # dumps, checkpoints, folders, as `ait llm compare`
        row.subject, row.cosine_similarity, row.reason

    register_hook(model, DumpConfig("golden"))    # records what goes into and comes out of a torch model's modules
    overflow.watch(model)                         # stops a training where it overflows, and keeps the inputs

Paths, tensors from `load`, NumPy arrays and torch tensors are taken alike, without copying and without holding
the interpreter lock. Neither NumPy nor torch is imported unless it is used.
"""

from ait_llm import overflow
from ait_llm._api import Comparable, compare, compare_runs, load, open_rows, save, statistics
from ait_llm._errors import AitError, CorruptError, NotFoundError, RefusedError, UnsupportedError, WriteError
from ait_llm._native import (
    AlignedToken,
    Comparison,
    Coverage,
    Pairing,
    Record,
    Row,
    RowFinding,
    RowIterator,
    Rows,
    RowSide,
    RowStore,
    Side,
    Statistics,
    Subject,
    __version__,
)
from ait_llm._tensor import Tensor
from ait_llm.dump.torch_dump import DumpConfig, HookHandle, register_hook

__all__ = [
    "AitError",
    "AlignedToken",
    "Comparable",
    "Comparison",
    "CorruptError",
    "Coverage",
    "DumpConfig",
    "HookHandle",
    "NotFoundError",
    "Pairing",
    "Record",
    "RefusedError",
    "Row",
    "RowFinding",
    "RowIterator",
    "RowSide",
    "RowStore",
    "Rows",
    "Side",
    "Statistics",
    "Subject",
    "Tensor",
    "UnsupportedError",
    "WriteError",
    "__version__",
    "compare",
    "compare_runs",
    "load",
    "open_rows",
    "overflow",
    "register_hook",
    "save",
    "statistics",
]
