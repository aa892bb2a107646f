"""Recording what a script compiles with torch.compile, without a word from it. Called by startup/sitecustomize.py.

The script's own backend compiles and gives the results; the graph beside it is recorded, see fx_dump.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

from ait_llm.dump import fx_dump
from ait_llm.dump.torch_dump import process
from ait_llm.dump.torch_dump.zero_edit import TokenRanges, show_warnings


def start(environ: Mapping[str, str]) -> None:
    """From now on whatever asks torch's compiler for a backend gets one that records beside it."""
    from torch._dynamo import eval_frame

    dump_path = os.path.abspath(environ["AIT_FX_DUMP_PATH"])  # the script may go to another folder
    tokens = TokenRanges(environ.get("AIT_FX_TOKEN_RANGE") or "0,0", "AIT_FX_TOKEN_RANGE")
    find = eval_frame.get_compiler_fn

    @functools.wraps(find)
    def get_compiler_fn(compiler_fn: Any) -> Any:
        return find(compiler_fn if compiler_fn is None else fx_dump.fx_backend(dump_path, compiler_fn, tokens))

    eval_frame.get_compiler_fn = get_compiler_fn
    process.speak_past_the_script()
    show_warnings()
