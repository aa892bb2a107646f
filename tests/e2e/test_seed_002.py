"""Manual mapping as its document describes it: dump the library's side, insert dump_data, compare."""

import csv
import subprocess
import sys

import numpy as np
import pytest
from conftest import atb_bin

MODEL = """
import os
import torch
from llm.dump.manual_dump import dump_data

torch.manual_seed(0)
hidden = torch.randn(1, 7, 16)
for token_id in range(3):
    for data_id, layer in enumerate((torch.nn.Linear(16, 16), torch.nn.LayerNorm(16))):
        hidden = layer(hidden)
        my_path = f"ait_dump/tensors/0_900/{token_id}/{data_id}_Operation/after/outtensor0.bin"
        dump_data(token_id, data_id, hidden, my_path, "dump_dir")
        hidden.data.mul_(1.0)   # later changes in place must not reach the dump
print(os.getpid())
"""


@pytest.fixture
def acceleration_library(tmp_path):
    """Step 1, without the library: its .bin files, wrong by 1 % at token 2."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    hidden = torch.randn(1, 7, 16)
    with torch.no_grad():
        for token_id in range(3):
            for data_id, layer in enumerate((torch.nn.Linear(16, 16), torch.nn.LayerNorm(16))):
                hidden = layer(hidden)
                path = tmp_path / f"ait_dump/tensors/0_900/{token_id}/{data_id}_Operation/after/outtensor0.bin"
                path.parent.mkdir(parents=True)
                scale = np.float32(1.01 if token_id == 2 else 1)
                path.write_bytes(atb_bin(hidden.numpy() * scale, 0))


def test_the_three_steps(ait, acceleration_library, tmp_path):
    pytest.importorskip("llm.dump.manual_dump")
    done = subprocess.run([sys.executable, "-c", MODEL], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    golden = f"dump_dir/ait_dump/{done.stdout.strip()}_-1/"
    assert (tmp_path / golden / "golden_tensor/metadata.json").exists()

    compared = ait("llm", "compare", "--golden-path", golden, "--my-path", "my-path.bin", "--output", "output_dir")
    assert compared.returncode == 0, compared.stderr
    with open(tmp_path / "output_dir/cmp_report.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["data_id"], row["token_id"]) for row in rows] == [(d, t) for d in "01" for t in "012"]
    assert all(row["cmp_fail_reason"] == "" for row in rows)
    for row in rows:
        expected = 0.01 if row["token_id"] == "2" else 0
        assert float(row["relative_euclidean_distance"]) == pytest.approx(expected, rel=1e-3, abs=1e-12)
