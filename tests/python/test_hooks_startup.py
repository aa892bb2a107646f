"""Recording a script that knows nothing of it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ait_llm
import pytest
import torch
from ait_llm import startup
from torch_oracle import recorded

SCRIPT = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
x = torch.ones(2, 4)
outputs = [model(x + step) for step in range(4)]
torch.nn.CrossEntropyLoss()(outputs[0], torch.tensor([0, 1]))
torch.save(outputs, sys.argv[1])
print("done")
"""


def run(tmp_path, code=SCRIPT, *arguments, python=(sys.executable,), more_path=(), **variables):
    script = tmp_path / "script.py"
    script.write_text(code)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("AIT_TORCH")}
    environ["PYTHONPATH"] = os.pathsep.join([startup.FOLDER, *map(str, more_path)])
    environ.update({f"AIT_TORCH_{key}": str(value) for key, value in variables.items()})
    return subprocess.run(
        [*python, str(script), *map(str, arguments or [tmp_path / "out.pt"])],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )


def folders_in(path):
    return sorted(Path(path).glob("ait_dump/torch_tensors/*"))


def test_a_script_is_recorded_without_a_change_and_gives_the_same_results(tmp_path):
    plain = run(tmp_path)
    assert (plain.returncode, plain.stdout, plain.stderr) == (0, "done\n", "")
    expected = torch.load(tmp_path / "out.pt")
    process = run(tmp_path, DUMP_PATH=tmp_path / "dump", TOKEN_RANGE="0,1,3,3")
    assert (process.returncode, process.stdout) == (0, "done\n")
    (folder,) = folders_in(tmp_path / "dump")  # the loss is no model
    assert process.stderr == f"ait_llm: recording Sequential in {folder}\n"
    assert all(torch.equal(*pair) for pair in zip(torch.load(tmp_path / "out.pt"), expected))
    found = recorded(folder)
    assert set(found) == {0, 1, 3}
    for number, calls in found.items():
        assert set(calls) == {"root", "root.0", "root.1", "root.1.0", "root.1.1"}
        assert torch.equal(calls["root"]["output.pth"], expected[number])
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["state"] == "complete" and manifest["root_calls"] == 4


def test_every_option_has_its_variable(tmp_path):
    process = run(
        tmp_path,
        DUMP_PATH=tmp_path / "dump",
        TOKEN_RANGE="2,3",
        MODULE_LIST="lin,nothing",
        TENSOR_PART=1,
        LAYER_NAME="root.1*",
        STATISTICS=2,
        WEIGHTS=1,
        DEVICE_ID=3,
        SEED=5,
        MODE="module,api",
        STATISTICS_PER_MODULE=1,
        SKETCH=1,
    )
    assert process.returncode == 0, process.stderr
    (folder,) = folders_in(tmp_path / "dump")
    found = recorded(folder)
    assert {number: set(calls) for number, calls in found.items()} == {
        number: {"root.1.0", "root.1.0.linear", "root.1.1.relu"} for number in (2, 3)
    }
    assert all(set(files) == {"output.pth"} for calls in found.values() for files in calls.values())
    header, first = (folder / "2" / "root.1.0" / "statistics.csv").read_text().splitlines()[:2]
    assert header.endswith(",File,Sketch") and ",output,1:" in first
    assert {path.name for path in (folder / "weights").iterdir()} == {"root.1.0.weight.pth", "root.1.0.bias.pth"}


@pytest.mark.parametrize(
    "variables, words",
    [
        ({"TOKEN_RANGE": "1"}, "AIT_TORCH_TOKEN_RANGE must be pairs"),
        ({"TENSOR_PART": "x"}, "AIT_TORCH_TENSOR_PART must be"),
        ({"STATISTICS": "7"}, "dump_statistics_mode must be"),
    ],
)
def test_a_wrong_variable_is_one_line_and_the_script_runs(tmp_path, variables, words):
    process = run(tmp_path, DUMP_PATH=tmp_path / "dump", **variables)
    assert (process.returncode, process.stdout) == (0, "done\n")
    line = process.stderr.splitlines()[-1]
    assert line.startswith("ait: torch models of this process are not recorded: ") and words in line
    assert not (tmp_path / "dump").exists()


def test_a_script_without_torch_is_not_touched(tmp_path):
    code = "import sys, json; print(sorted(name for name in sys.modules if 'ait' in name or 'torch' in name))"
    process = run(tmp_path, code, DUMP_PATH=tmp_path / "dump")
    assert (process.stdout, process.stderr) == ("[]\n", "")
    assert not (tmp_path / "dump").exists()


def test_another_sitecustomize_runs_as_ever(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text(
        "import builtins, sys\nbuiltins.other = (__name__, __file__)\n"
        "assert sys.modules['sitecustomize'].__file__ == __file__\n"
    )
    code = f"import sys, sitecustomize, torch; print(other, sitecustomize.__file__, {startup.FOLDER!r} in sys.path)"
    process = run(tmp_path, code, more_path=[other], DUMP_PATH=tmp_path / "dump")
    path = str(other / "sitecustomize.py")
    assert process.stdout == f"{('sitecustomize', path)} {path} False\n", process.stderr


def test_torch_looks_the_same_to_the_script(tmp_path):
    code = """
import importlib.util, inspect, torch
spec = importlib.util.find_spec("torch")
print(type(spec.loader).__name__, "exec_module" in vars(spec.loader), type(torch.__loader__).__name__,
      len(inspect.getsource(torch)) > 1000, torch.nn.Module.__call__.__name__)
"""
    with_ait = run(tmp_path, code, DUMP_PATH=tmp_path / "dump").stdout
    assert with_ait == run(tmp_path, code).stdout != ""


def test_each_process_of_a_launch_has_a_folder_of_its_own(tmp_path):
    code = """
import os, sys, torch
import torch.multiprocessing as multiprocessing
def work(rank, value):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
    torch.nn.Linear(2, 2)(torch.full((1, 2), float(rank)))
if __name__ == "__main__":
    torch.nn.Linear(2, 2)(torch.full((1, 2), 9.0))
    multiprocessing.start_processes(work, (0,), nprocs=2, start_method=sys.argv[1])
"""
    for method in ("spawn", "fork"):
        process = run(tmp_path, code, method, DUMP_PATH=tmp_path / method)
        assert process.returncode == 0, process.stderr
        found = {}
        for folder in folders_in(tmp_path / method):
            manifest = json.loads((folder / "manifest.json").read_text())
            assert manifest["state"] == "complete" and folder.name == f"cpu_{manifest['pid']}"
            found[manifest["rank"]] = float(recorded(folder)[0]["root"]["input_0.pth"][0, 0])
        assert found == {None: 9.0, 0: 0.0, 1: 1.0}


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="needs torch.distributed")
def test_each_rank_of_torchrun_has_a_folder_of_its_own(tmp_path):
    code = """
import os, torch
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.nn.Linear(2, 2)(torch.full((1, 2), float(rank)))
torch.distributed.destroy_process_group()
"""
    python = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    process = run(tmp_path, code, python=python, DUMP_PATH=tmp_path / "dump")
    assert process.returncode == 0, process.stderr
    found = {}
    for folder in folders_in(tmp_path / "dump"):
        manifest = json.loads((folder / "manifest.json").read_text())
        assert (manifest["state"], manifest["world_size"]) == ("complete", 2)
        found[manifest["rank"]] = float(recorded(folder)[0]["root"]["input_0.pth"][0, 0])
    assert found == {0: 0.0, 1: 1.0}


def test_a_model_that_is_first_called_in_part_takes_over(tmp_path):
    code = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
model[0](torch.zeros(1, 4))
model(torch.ones(1, 4))
model[0](torch.ones(1, 4))
"""
    process = run(tmp_path, code, DUMP_PATH=tmp_path / "dump")
    whole, part = folders_in(tmp_path / "dump")
    assert part.name == f"{whole.name}_1"
    assert set(recorded(whole)[0]) == {"root", "root.0", "root.1", "root.0#1"}
    assert set(recorded(part)[0]) == {"root"}
    manifest = json.loads((part / "manifest.json").read_text())
    assert (manifest["root"], manifest["replaced_by"]) == ("Linear", "Sequential")
    assert process.returncode == 0


def test_modules_made_for_every_call_do_not_fill_the_disk(tmp_path):
    code = """
import torch
for step in range(200): torch.nn.Linear(2, 2)(torch.zeros(1, 2))
print("done")
"""
    process = run(tmp_path, code, DUMP_PATH=tmp_path / "dump")
    assert process.stdout == "done\n"
    assert len(folders_in(tmp_path / "dump")) == 64
    assert process.stderr.count("only the first 64 models") == 1


@pytest.mark.skipif(not hasattr(torch, "compiler"), reason="needs torch.compile")
def test_a_script_that_compiles_its_model_runs(tmp_path):
    code = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
@torch.compile(backend="eager", fullgraph=True)
def step(x): return model(x) + 1
x = torch.ones(1, 4)
assert torch.equal(step(x), model(x) + 1)
assert torch.equal(torch.compile(model, backend="eager", fullgraph=True)(x), model(x))
print("done")
"""
    process = run(tmp_path, code, DUMP_PATH=tmp_path / "dump")
    assert process.stdout == "done\n", process.stderr


def test_a_python_that_cannot_load_the_extension_runs_the_script_and_says_so(tmp_path):
    """The package as another Python sees it: without an extension that it can load."""
    package = tmp_path / "elsewhere" / "ait_llm"
    shutil.copytree(Path(ait_llm.__file__).parent, package, ignore=shutil.ignore_patterns("_native.*", "__pycache__"))
    (package / "_native.cpython-33m-x86_64-linux-gnu.so").write_bytes(b"")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("print('torch')")
    environ = {
        **os.environ,
        "PYTHONPATH": f"{package / 'startup'}:{tmp_path}",
        "AIT_TORCH_DUMP_PATH": str(tmp_path / "dump"),
    }
    process = subprocess.run(
        [sys.executable, "-S", "-c", "import sitecustomize, torch; print('done')"],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert (process.returncode, process.stdout) == (0, "torch\ndone\n")
    (line,) = process.stderr.splitlines()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert line.startswith("ait: torch models of this process are not recorded: ") and f"Python {version}" in line


def test_the_scripts_own_packages_are_found_as_ever(tmp_path):
    """Nothing of the environment that ait_llm is installed in may get in."""
    code = """
import sys, torch
torch.nn.Linear(2, 2)(torch.zeros(1, 2))
print([entry for entry in sys.path if "ait_llm" in entry], sys.path)
"""
    with_ait = run(tmp_path, code, DUMP_PATH=tmp_path / "dump").stdout
    without = run(tmp_path, code).stdout
    assert with_ait == without and with_ait.startswith("[]")
