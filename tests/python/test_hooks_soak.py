"""A long run that is watched: memory stays flat, the round that goes wrong is found, its neighbours are there."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

ROUNDS, PLANTED, KEEP = 2000, 1700, 2
WARM = 600
"""Rounds after which everything has been used once: pools, queues, histories."""
MAX_GROWTH = 8 << 20
"""What the process may have grown by from there to the end; the tensors of these rounds are a gigabyte."""

SCRIPT = """
import json, os, sys, torch
from ait_llm import DumpConfig, register_hook

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(64), torch.nn.Linear(64, 128), torch.nn.Linear(128, 64)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(*(Layer() for _ in range(8)))
rounds, planted, keep, warm = map(int, sys.argv[2:])

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

seen = []
with register_hook(model, DumpConfig(sys.argv[1]), when="nan,spike=20", keep=keep) as handle, torch.no_grad():
    for number in range(rounds):
        x = torch.randn(1, 32, 64, generator=torch.Generator().manual_seed(number))
        if number == planted:
            x[0, 3, 7] = float("nan")
        model(x)
        if number >= warm and number % 100 == 0:
            handle.flush()
            seen.append(resident())
print(json.dumps({"folder": handle.folder, "resident": seen}))
"""


@pytest.mark.slow
def test_two_thousand_rounds_with_a_nan_in_one(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, script, tmp_path / "out", *map(str, (ROUNDS, PLANTED, KEEP, WARM))]
    environ = {**os.environ, "AIT_TORCH_MEMORY": "16"}  # what waits for a slow disk is no growth
    process = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=1800, env=environ)
    assert process.returncode == 0, process.stderr
    answer = json.loads(process.stdout)
    folder = Path(answer["folder"])
    assert max(answer["resident"]) - answer["resident"][0] < MAX_GROWTH, answer["resident"]
    around = list(range(PLANTED - KEEP, PLANTED + KEEP + 1))
    assert sorted({int(path.parts[-3]) for path in folder.glob("[0-9]*/*/*.pth")}) == around
    for number in around:
        x = torch.load(folder / str(number) / "root" / "input_0.pth", weights_only=True)
        assert bool(torch.isnan(x).any()) is (number == PLANTED)
    tables = {int(path.relative_to(folder).parts[0]) for path in folder.glob("[0-9]*/**/statistics.csv")}
    assert tables == set(range(ROUNDS))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["state"] == "complete"
    (event,) = manifest["when"]["held"]
    assert (event["round"], event["condition"], event["module"]) == (PLANTED, "nan", "root.0.norm")
    assert manifest["when"]["rounds_with_tensors"] == [[around[0], around[-1]]]
    assert (folder / "manifest.json").stat().st_size < 1 << 20
