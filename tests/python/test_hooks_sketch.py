"""Sketches beside statistics: what is in the tables, against the definition in docs/metrics.md."""

import base64
import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from ait_llm import DumpConfig, register_hook

COLUMNS = "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File".split(",")
OF_ROUND = ["NaN", "Inf", "SameAs"]


class Giving(torch.nn.Module):
    """Returns one tensor after the other."""

    def __init__(self, tensors):
        super().__init__()
        self.tensors = tensors

    def forward(self):
        return tuple(self.tensors)


def mixed(x):
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def group_norms(squares):
    size = max(1, -(-len(squares) // 256))
    return [np.sqrt(squares[first : first + size].sum()) for first in range(0, len(squares), size)]


def expected(tensor):
    """Projections, norms of rows, norms of columns."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj()).flatten(-2)
    values = tensor.double().numpy()
    values = np.where(np.isfinite(values), values, 0)
    grid = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    flat = grid.reshape(-1)
    buckets = np.zeros((4, 64))
    for q in range(-(-flat.size // 64)):
        turns = mixed(q ^ (2**64 - 1))
        for p in range(4):
            signs, turn = mixed(4 * q + p), (turns >> 16 * p) % 64
            for j, value in enumerate(flat[64 * q : 64 * q + 64]):
                buckets[p, (j + turn) % 64] += -value if signs >> j & 1 else value
    return np.array([*buckets.reshape(-1), *group_norms((grid**2).sum(1)), *group_norms((grid**2).sum(0))])


def tensors():
    torch.manual_seed(3)
    x = torch.randn(3, 5, 70)
    yield x
    yield x.to(torch.bfloat16)
    yield x.to(torch.float16).transpose(0, 2)
    yield (x * 50).to(torch.int32)
    yield torch.randn(1, 600).to(torch.float64)
    yield torch.randn(600, 1)
    yield torch.randn(4, 3, dtype=torch.complex64).conj()
    yield torch.tensor(2.5)
    yield torch.zeros(0, 4)
    broken = torch.randn(4, 8)
    broken[1, 2], broken[3, 3] = float("nan"), float("-inf")
    yield broken


def rows_in(path):
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        return reader.fieldnames, list(reader)


@pytest.mark.parametrize("per_module", [False, True])
def test_sketches_are_those_of_the_definition(per_module, tmp_path):
    given = list(tensors())
    model = Giving(given)
    options = {"dump_statistics_mode": 1, "dump_sketch": True, "statistics_per_module": per_module}
    with register_hook(model, DumpConfig(str(tmp_path), **options)) as handle:
        model()
    table = Path(handle.folder, "0", "root" if per_module else ".", "statistics.csv")
    names, rows = rows_in(table)
    assert names == COLUMNS + ([] if per_module else OF_ROUND) + ["Sketch"]
    for tensor, row in zip(given, rows, strict=True):
        if tensor.numel() == 0:
            assert row["Sketch"] == ""
            continue
        version, _, text = row["Sketch"].partition(":")
        found = np.frombuffer(base64.b64decode(text), "<f4")
        assert version == "1"
        np.testing.assert_allclose(found, expected(tensor), rtol=1e-6, atol=1e-6 * float(row["L2Norm"]))
    manifest = json.loads(Path(handle.folder, "manifest.json").read_text())
    assert manifest["statistics"]["sketches"] == len(given) - 1 and manifest["config"]["dump_sketch"]


def test_a_large_tensor_and_one_that_is_met_again(tmp_path):
    large = torch.randn(700_000)
    model = torch.nn.Sequential(torch.nn.Identity())
    with register_hook(model, DumpConfig(str(tmp_path), dump_statistics_mode=2, dump_sketch=True)) as handle:
        model(large)
    _, rows = rows_in(Path(handle.folder, "0", "statistics.csv"))
    assert len(rows) == 4 and len({row["Sketch"] for row in rows}) == 1 and rows[0]["Sketch"].startswith("1:")
    assert [bool(row["SameAs"]) for row in rows] == [False, True, True, True]


def test_there_are_none_unless_they_are_asked_for(tmp_path, caplog):
    model = torch.nn.Linear(3, 3)
    with register_hook(model, DumpConfig(str(tmp_path), dump_statistics_mode=1)) as handle:
        model(torch.ones(1, 3))
    names, _ = rows_in(Path(handle.folder, "0", "statistics.csv"))
    assert names == COLUMNS + OF_ROUND
    with register_hook(model, DumpConfig(str(tmp_path), dump_sketch=True)):
        model(torch.ones(1, 3))
    assert "dump_sketch is kept beside statistics; ask for these with dump_statistics_mode 1 or 2" in caplog.text
    with pytest.raises(ValueError, match="dump_sketch must be True or False"):
        DumpConfig(str(tmp_path), dump_sketch=1)
