"""`ait llm dump --probe fx`: graphs of scripts that call torch.compile and know nothing of being recorded."""

import json
import sys

import numpy as np
from dump_run import TIMEOUT_SECONDS, run_to_the_end

SCRIPT = """
import torch
torch.manual_seed(3)
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Dropout(0.5)), backend={!r})
with torch.no_grad():
    for step in range(3):
        out = model(torch.randn(2, 4))
print("sum", out.sum().item(), torch.rand(1).item())
"""


def run(tmp_path, script):
    """Without ait."""
    (tmp_path / "script.py").write_text(script)
    return run_to_the_end([sys.executable, "script.py"], cwd=tmp_path)


def record(ait, tmp_path, script, *options):
    (tmp_path / "script.py").write_text(script)
    command = f"{sys.executable} script.py"
    return ait("llm", "dump", "--exec", command, "--probe", "fx", "-o", "out", *options, timeout=TIMEOUT_SECONDS)


def arrays(tmp_path, folder):
    found = {}
    for path in sorted((tmp_path / "out" / folder / "worldsize1_global_rank0").glob("graph_*/*/*.npy")):
        found[(*path.parts[-3:-1], path.name.rsplit(".", 2)[0])] = np.load(path)
    return found


def test_the_scripts_own_backend_gives_the_results(ait, tmp_path):
    script = SCRIPT.format("aot_eager")
    alone = run(tmp_path, script)
    done = record(ait, tmp_path, script, "-er", "0,1")
    assert done.returncode == 0 and alone.stdout.startswith("sum ")
    assert done.stdout.startswith(alone.stdout), "results and random numbers are those of the script alone"
    assert "complete" in done.stdout and "Next: ait llm compare -gp out/msit_fx_dump -mp MY" in done.stdout
    ours, theirs = arrays(tmp_path, "msit_fx_dump"), arrays(tmp_path, "aot_eager_fx_dump")
    assert {token for _, token, _ in ours} == {"0", "1"}
    assert {name for *_, name in theirs} == {"output-output.OUTPUT.0"}
    assert "addmm-aten.addmm.default.OUTPUT.0" in {name for *_, name in ours}
    manifest = json.loads((tmp_path / "out/ait_dump/manifest.json").read_text())
    assert manifest["complete"] and manifest["options"]["probe"] == "fx"
    assert manifest["tensors"]["written"] == len(ours) + len(theirs)


def test_a_script_that_compiles_nothing_is_told_so(ait, tmp_path):
    done = record(ait, tmp_path, "import torch; print(torch.ones(1).item())")
    assert done.stdout.startswith("1.0\n")
    assert "no process of the command called a graph of torch.compile" in done.stdout
    assert "does it run Python and call torch.compile?" in done.stdout


def test_a_wrong_backend_fails_as_it_would_alone(ait, tmp_path):
    script = "import torch; torch.compile(torch.nn.ReLU(), backend='nonsense')(torch.ones(1))"
    alone = run(tmp_path, script)
    done = record(ait, tmp_path, script)
    assert done.returncode == alone.returncode == 1
    assert alone.stderr.splitlines()[-1] in done.stderr


def test_options_without_effect_are_named(ait, tmp_path):
    done = record(ait, tmp_path, "print(1)", "-ids", "2", "-opname", "linear", "--type", "tensor", "model")
    for option in ("-ids", "-opname", "--type model"):
        assert f"{option} has no effect with --probe fx" in done.stderr
