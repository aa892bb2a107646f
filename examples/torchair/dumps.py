"""Writes dumps as TorchAir leaves them on an NPU into the current folder: GE fused and not, FX in two layouts.

A matrix product of GE's second execution is 2 % too large.
"""

import pathlib
import runpy

runpy.run_path(str(pathlib.Path(__file__).resolve().parents[2] / "tests/e2e/stage/torchair_dumps.py"))
