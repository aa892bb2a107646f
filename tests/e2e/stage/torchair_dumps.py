"""Dumps as TorchAir leaves them: one graph, executed twice; a matrix product of GE's second execution is off by 2 %."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from ge_run import GraphRun, ge_operations, inputs_like, two_blocks, write_fx, write_ge

run = GraphRun(two_blocks, inputs_like(1, 2, 5))
right = next(op for op in ge_operations(run.tokens[1]) if op.name == "MatMulV2_4").results[0].numpy()


def change(name, array):
    is_it = name == "MatMulV2_4/output_0" and np.array_equal(array, right)
    return array * np.float32(1.02) if is_it else array


write_fx([[run]], pathlib.Path("dump/msit_fx_dump"))
write_ge([[run]], pathlib.Path("dump/msit_ge_dump"), change=change)
write_ge([[run]], pathlib.Path("dump_fusion_off/msit_ge_dump"), fused=False)
write_fx([[run]], pathlib.Path("dump_710/msit_fx_dump/data_dump"), layout="B")
write_ge([[run]], pathlib.Path("old_dump"))
