"""`ait llm dump --when` and `ait llm watch`: long runs of which a round goes wrong."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import PROGRAM, error_line
from dump_run import TIMEOUT_SECONDS
from torch_script import dump, environment, write_script

# Twenty rounds; in round 12 the second module gets what makes it return NaN.
STEPS = """
import sys, time, torch
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
x = torch.randn(2, 4)
for step in range(20):
    if step == 8:
        model[2].weight.data *= scale
    model(x * float("nan") if step == 12 and scale == 1 else x + 0.01 * step)
    time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    return dump(tmp_path_factory.mktemp("watched"), STEPS, "--when", "nan,spike=50", "--keep", "1")


def rounds_with(folder, pattern):
    return sorted({int(path.relative_to(folder).parts[0]) for path in folder.glob(pattern)})


def test_a_watched_script_keeps_the_tensors_around_a_nan(watched):
    folder = watched.folder
    assert rounds_with(folder, "[0-9]*/*/*.pth") == [11, 12, 13]
    assert rounds_with(folder, "[0-9]*/**/statistics.csv") == list(range(20))
    manifest = watched.manifest
    assert manifest["complete"] is True, manifest["incomplete_because"]
    assert (manifest["options"]["when"], manifest["options"]["keep"]) == ("nan,spike=50", 1)
    assert manifest["options"]["execute_range"] == "all"
    counts = manifest["tensors"]
    assert counts["written"] == len(list(folder.glob("*/*/*.pth"))) == 3 * 8
    assert counts["announced"] == counts["written"] + counts["removed"] == 20 * 8
    assert counts["lost"] == counts["failed"] == 0
    (note,) = manifest["notes"]
    assert note == (
        f"torch_tensors/{folder.name}: nan held in round 12 first: output of root.0, max is nan; tensors are kept of "
        "rounds 11 to 13, and statistics of all 20 rounds, as --when asks"
    )
    assert note in watched.process.stdout
    assert watched.summary("capture") == "complete"


def test_where_nothing_held_the_summary_says_so(tmp_path):
    run = dump(tmp_path, STEPS, "--when", "norm>1e30", "-er", "0,7")
    assert run.manifest["complete"] is True
    (note,) = run.manifest["notes"]
    assert "none of norm>1e30 held in 8 rounds; no tensors are kept, and statistics of all 8 rounds" in note
    assert run.next == f"ait llm watch --once {run.root}"
    assert rounds_with(run.folder, "[0-9]*/**/statistics.csv") == list(range(8))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--probe", "torch", "--when", "nan,huge"], "--when 'huge' is no condition: give a comma list of nan, inf"),
        (["--probe", "torch", "--when", "every=0"], "'every=0' is no condition, N must be a whole number"),
        (["--when", "nan"], "--when watches the modules of a Python script: it needs --probe torch"),
        (["--probe", "torch", "--keep", "3"], "--keep says how many rounds --when keeps: it needs --when"),
        (["--probe", "torch", "--when", "nan", "--keep", "-1"], "--keep '-1': invalid int value"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(ait, words, said):
    process = ait("llm", "dump", "--exec", "false", *words)
    assert process.returncode == 2 and said in error_line(process)


def test_watch_finds_the_round_and_the_module(ait, watched):
    process = ait("llm", "watch", watched.root, "--once", "--json")
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    first = found["first_of_history"]
    assert (first["round"], first["module"], first["tensor"], first["condition"]) == (12, "root.0", "output", "nan")
    assert (first["statistic"], first["value"]) == ("max", "nan")
    assert found["first_of_golden"] is found["golden"] is None
    assert [(each["rounds"], each["last_round"], each["state"]) for each in found["folders"]] == [(20, 19, "complete")]
    process = ait("llm", "watch", watched.root)
    lines = process.stdout.splitlines()
    assert lines[0] == "round 12, output of root.0: nan, max is nan"
    assert lines[-1] == f"First to leave its history: {lines[0]}."


def test_watch_finds_where_golden_is_left(ait, tmp_path, watched):
    write_script(tmp_path, STEPS)
    my = dump(tmp_path, f"{sys.executable} script.py 1.5", "--when", "every=100")
    process = ait("llm", "watch", my.root, "--golden", watched.root)
    assert process.returncode == 0, process.stderr
    first = re.search(r"^First to leave golden: (.*)$", process.stdout, re.M).group(1)
    assert re.match(r"round 8, output of root.2: leaves golden, it is at least 0\.\d+ away\.", first)
    assert f"Next: ait llm compare -gp {watched.root} -mp {my.root}\n" in process.stdout
    far = ait("llm", "watch", my.root, "--golden", watched.root, "--distance", "5", "--json")
    assert json.loads(far.stdout)["first_of_golden"]["condition"] == "nan"


def watch(tmp_path, *words):
    command = [PROGRAM, "llm", "watch", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)


def test_watch_follows_a_run_from_before_its_beginning_to_its_end(tmp_path):
    script = write_script(tmp_path, STEPS)
    watcher = watch(tmp_path, "out/ait_dump")
    time.sleep(0.2)
    run = dump(tmp_path, f"{sys.executable} {script} 1 0.1", "--when", "nan")
    output, errors = watcher.communicate(timeout=TIMEOUT_SECONDS)
    assert watcher.returncode == 0, errors
    assert "waiting for a recording" in errors
    assert "round 12, output of root.0: nan, max is nan\n" in output
    assert re.search(rf"^{run.folder.name} +20 rounds read up to 19, ended, complete$", output, re.M)


def test_watch_ends_with_a_summary_when_it_is_interrupted(tmp_path):
    script = write_script(tmp_path, STEPS)
    job = subprocess.Popen(
        [PROGRAM, "llm", "dump", "--exec", f"{sys.executable} {script} 1 30", "--probe", "torch", "--when", "nan"],
        env=environment(), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.monotonic() + TIMEOUT_SECONDS
        while not list(tmp_path.glob("ait_dump/torch_tensors/*/manifest.json")):
            assert time.monotonic() < end
            time.sleep(0.1)
        watcher = watch(tmp_path, "ait_dump")
        time.sleep(2.5)
        watcher.send_signal(signal.SIGINT)
        output, errors = watcher.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        job.terminate()
        job.wait()
    assert watcher.returncode == 0, errors
    assert "still recording" in output and "Nothing left its history." in output


def test_watch_says_what_is_wrong(ait, tmp_path, watched):
    for words, said in (
        (["nowhere", "--once"], "nowhere: there is no such folder"),
        ([tmp_path, "--once"], "holds no recording of a torch model"),
        ([watched.root, "--golden", tmp_path], "is not a dump of a torch model, which --golden must be"),
        ([watched.root, "--when", "nope"], "--when 'nope' is no condition"),
        ([watched.root, "--distance", "0"], "--distance '0' is no number above 0"),
        ([], "DIR"),
    ):
        process = ait("llm", "watch", *words)
        assert process.returncode == 2 and said in error_line(process)
