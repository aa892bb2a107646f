"""`ait llm dump --probe torch`: scripts that know nothing of being recorded."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
from conftest import error_line
from dump_run import TIMEOUT_SECONDS, dump_command
from test_dump_hard import Mount
from torch_script import (
    TorchDump,
    assert_counts_are_true,
    assert_same,
    dump,
    environment,
    recorded,
    what_happens,
    write_script,
)

FAST_KILLS = 8
SLOW_KILLS = 100

LLAMA = """
import torch, transformers
torch.manual_seed(7)
config = transformers.LlamaConfig(
    vocab_size=37, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=32)
model = transformers.LlamaForCausalLM(config).eval()
words = model.generate(torch.tensor([[1, 5, 9]]), max_new_tokens=4, do_sample=False, pad_token_id=0)
print("words", words.tolist())
"""

STEPS = """
import torch
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.LSTM(5, 3), torch.nn.Identity())
for step in range(4):
    out = model(torch.randn(2, 4))
print("sum", out[0].sum().item())
"""


def test_generate_of_a_script_that_knows_nothing(tmp_path):
    expected, printed = what_happens(tmp_path, LLAMA)
    run = dump(tmp_path, LLAMA, "-er", "0,1,3,3")
    assert printed and run.process.stdout.startswith(printed)
    assert_same(recorded(run.folder), {key: tensor for key, tensor in expected.items() if key[0] in (0, 1, 3)})
    assert {key[1] for key in expected} >= {"root", "root.model.layers.1.self_attn.q_proj", "root.lm_head"}
    counts = assert_counts_are_true(run)
    assert counts["lost"] == counts["failed"] == 0
    assert run.manifest["complete"] is True
    (note,) = run.manifest["notes"]  # what no file can hold is said
    assert "DynamicCache is not looked into" in note
    modules = json.loads((run.folder / "manifest.json").read_text())["rounds"]
    seen, called = (sum(each[key] for each in modules.values()) for key in ("expected", "seen"))
    assert run.summary("modules") == f"{called} of {seen} were called in the rounds recorded"


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What STEPS does, and what it prints."""
    return what_happens(tmp_path_factory.mktemp("seen"), STEPS)


def test_manifest_and_summary_of_a_recorded_script(tmp_path, seen):
    """In an environment with a Python path and a talkative sitecustomize of its own."""
    own = tmp_path / "own"
    own.mkdir()
    write_script(own, "print('good morning')\n", "sitecustomize.py")
    write_script(own, "print('mine')\n", "mine.py")
    path = os.pathsep.join(filter(None, [str(own), os.environ.get("PYTHONPATH")]))
    run = dump(
        tmp_path,
        "import mine\n" + STEPS,
        "-er",
        "0,1,3,3",
        out="two words/ä",
        umask=0,
        env=environment(PYTHONPATH=path),
    )
    expected, printed = seen
    assert run.process.stdout.startswith(f"good morning\nmine\n{printed}\n")
    assert_same(recorded(run.folder), {key: tensor for key, tensor in expected.items() if key[0] in (0, 1, 3)})

    manifest = run.manifest
    assert manifest["complete"] is True and manifest["incomplete_because"] == manifest["notes"] == []
    assert manifest["options"]["probe"] == "torch"
    assert manifest["options"]["execute_range"] == "0,1,3,3"
    assert manifest["command"] == [sys.executable, str(tmp_path / "script.py")]
    (process,) = manifest["processes"]
    assert run.folder.name == f"cpu_{process['pid']}"
    assert (process["ended_in_order"], process["still_running"]) == (True, False)
    assert process["tensors"] == manifest["tensors"] == assert_counts_are_true(run)
    written = {kind: paths for kind, paths in manifest["written_files"].items() if paths}
    assert written == {"torch_tensors": [f"torch_tensors/{run.folder.name}"]}
    # A folder that travels names no place of the machine it was made on, but for the command.
    del manifest["command"]
    assert str(tmp_path) not in json.dumps(manifest)

    counts = manifest["tensors"]
    assert run.summary("tensors").startswith(f"{counts['written']}, ")
    assert run.summary("modules") == "15 of 15 were called in the rounds recorded"
    assert run.summary("processes") == f"1 (pid {process['pid']})"
    assert run.summary("command").startswith("ended with status 0 after ")
    assert run.summary("capture") == "complete"
    assert run.summary("output") == str(run.root)
    assert run.next == f"ait llm compare -gp '{run.root}' -mp MY"
    assert run.process.stderr == f"ait_llm: recording Sequential in {run.folder}\n"
    for file in run.root.rglob("*"):
        assert oct(file.stat().st_mode & 0o777) == ("0o750" if file.is_dir() else "0o640"), file


def test_a_script_that_also_records_by_itself_is_counted_without_its_own_files(tmp_path, seen):
    own = """
from ait_llm import DumpConfig, register_hook
register_hook(model, DumpConfig(dump_path="own"))
"""
    expected, _ = seen
    run = dump(tmp_path, STEPS.replace("for step", own + "for step"))
    assert_same(recorded(run.folder), {key: tensor for key, tensor in expected.items() if key[0] == 0})
    assert list((tmp_path / "own/ait_dump/torch_tensors").iterdir())
    assert_counts_are_true(run)
    assert run.manifest["complete"] is True and run.manifest["notes"] == []


def test_a_compiled_model_of_which_little_is_seen_is_not_complete(tmp_path):
    script = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(5, 3)))
model[1] = torch.compile(model[1], backend=lambda graph, inputs: graph.forward)
model(torch.ones(2, 4))
"""
    run = dump(tmp_path, script)
    assert run.manifest["complete"] is False
    assert any("torch.compile" in why for why in run.manifest["incomplete_because"])
    assert run.summary("capture") == "not complete"


def test_options_that_hold_for_torch_and_those_that_do_not(tmp_path, seen):
    words = ["--json", "-er", "1,2", "-opname", "TANH,", "lst", "-stp", "1", "-device", "3", "--type", "tensor", "op"]
    idle = ["-sd", "-ids", "2", "-child", "no", "-time", "2", "-tiling"]
    run = dump(tmp_path, STEPS, *words, *idle)
    expected, printed = seen
    wanted = {
        key: tensor
        for key, tensor in expected.items()
        if key[0] in (1, 2) and key[1] in ("root.1", "root.2") and key[2].startswith("output")
    }
    assert len(wanted) == 2 * (1 + 3)
    assert_same(recorded(run.folder), wanted)  # models on the CPU are recorded whatever -device says
    assert json.loads(run.process.stdout) == run.manifest
    assert printed in run.process.stderr
    options = run.manifest["options"]
    assert (options["operation_name"], options["save_tensor_part"], options["device_id"]) == ("tanh,lst", 1, 3)
    config = json.loads((run.folder / "manifest.json").read_text())["config"]
    assert (config["tensor_part"], config["device_id"]) == (1, 3)
    warnings = [line for line in run.process.stderr.splitlines() if line.startswith("ait: warning: ")]
    names = ["-sd", "-ids", "-child", "-time", "-tiling", "--type op"]
    assert warnings == [f"ait: warning: {name} has no effect with --probe torch" for name in names]


def test_a_seed_makes_a_script_deterministic(tmp_path):
    script = """
import torch
torch.nn.Linear(4, 4)(torch.ones(2, 4))
print("random", torch.rand(3).tolist(), hash("text"), torch.are_deterministic_algorithms_enabled())
"""
    runs = [dump(tmp_path, script, "-seed", "5", out=name) for name in ("one", "two")]
    one, two = (re.search("^random .* True$", run.process.stdout, re.M).group(0) for run in runs)
    assert one == two
    config = json.loads((runs[0].folder / "manifest.json").read_text())["config"]
    assert config["seed"] == 5


def test_what_is_refused(ait, tmp_path):
    for words, part in [(["--probe", "torch", "--dry-run"], "--dry-run"), (["--probe", "tensorflow"], "atb, torch")]:
        assert part in error_line(ait("llm", "dump", "--exec", "touch ran", "-o", "out", *words))
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_it_says_what_is_needed(ait, tmp_path):
    bare = {**os.environ, "AIT_PYTHON": "/bin/false", "PYTHONPATH": ""}
    process = ait("llm", "dump", "--probe", "torch", "--exec", "touch ran", "-o", "out", env=bare)
    if process.returncode == 0:
        pytest.skip("the package is installed beside the program")
    assert "ait_llm" in error_line(process) and "AIT_PYTHON" in process.stderr
    assert list(tmp_path.iterdir()) == []


def test_only_the_tree_in_a_folder_where_pids_come_again(tmp_path):
    """The folders of an earlier run stay what they are, and belong to it alone."""
    places = tmp_path / "out/ait_dump/torch_tensors"
    now = int(subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True).stdout)
    for pid in range(now, now + 3000):
        (places / f"cpu_{pid}").mkdir(parents=True)
        os.utime(places / f"cpu_{pid}", (1, 1))
    run = dump(tmp_path, STEPS, "--type", "model", "-opname", "x")
    (pid,) = run.pids
    assert run.manifest["written_files"]["torch_tensors"] == [f"torch_tensors/cpu_{pid}_1"]
    folder = places / f"cpu_{pid}_1"
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "model_tree.json"]
    tree = json.loads((folder / "model_tree.json").read_text())
    assert [child["type"] for child in tree["children"]] == ["Linear", "Tanh", "LSTM", "Identity"]
    assert run.manifest["complete"] is True and run.manifest["tensors"]["announced"] == 0
    assert run.next == f"see which modules there are: {folder}/model_tree.json"
    assert "holds an earlier dump" in run.process.stderr
    assert "-opname has no effect without --type tensor" in run.process.stderr


def test_variables_that_have_no_option_are_handed_on(tmp_path, seen):
    run = dump(tmp_path, STEPS, env=environment(AIT_TORCH_STATISTICS="1", AIT_TORCH_LAYER_NAME="root.1"))
    tables = [path.relative_to(run.folder).as_posix() for path in run.folder.rglob("*.csv")]
    assert tables == ["0/statistics.csv"]
    assert recorded(run.folder) == {} and run.manifest["complete"] is True
    assert run.next == f"look at the statistics.csv files in {run.folder}"
    assert "nan" not in (run.folder / tables[0]).read_text()


# Why nothing was recorded


def test_a_filter_that_matches_nothing(tmp_path):
    run = dump(tmp_path, STEPS, "-opname", "Conv")
    (reason,) = run.reasons
    assert "begins with conv (-opname)" in reason and "model_tree.json" in reason
    assert run.next == f"see which modules there are: {run.folder}/model_tree.json"
    assert "operations" not in run.process.stdout


def test_rounds_that_are_not_reached(tmp_path):
    run = dump(tmp_path, STEPS, "-er", "7,9")
    (reason,) = run.reasons
    assert reason == "no model was called in the rounds -er 7,9; the highest was round 3"
    assert recorded(run.folder) == {}


@pytest.mark.parametrize("imported", ["json", "torch"])
def test_a_script_that_calls_no_model(tmp_path, imported):
    run = dump(tmp_path, f"import {imported}\nprint('idle')\n")
    (reason,) = run.reasons
    assert "no process of the command called a torch module: does it run Python and import torch?" in reason
    assert (run.pids, run.summary("processes"), run.next) == ([], "0", "see what this machine has with: ait doctor")
    assert run.process.stdout.startswith("idle\n") and run.process.stderr == ""
    assert sorted(path.name for path in run.root.iterdir()) == ["manifest.json"]


def test_a_python_that_does_not_look_at_the_environment(tmp_path, seen):
    script = write_script(tmp_path, STEPS)
    run = dump(tmp_path, f"{sys.executable} -I {script}")
    (reason,) = run.reasons
    assert "-I, -E or -S" in reason
    assert run.process.stdout.startswith(seen[1])


# How scripts end


def test_a_script_that_raises_in_the_middle_of_a_model(tmp_path):
    code = """
    import torch
    class Breaks(torch.nn.Module):
        def forward(self, x):
            if x[0, 0] == 2: raise RuntimeError("it broke")
            return x
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(Breaks(), torch.nn.ReLU()))
    torch.nn.init.eye_(model[0].weight), torch.nn.init.zeros_(model[0].bias)
    for step in range(4): model(torch.full((1, 2), float(step)))
    """
    run = dump(tmp_path, code, "-er", "0,9", status=1)
    assert "RuntimeError: it broke" in run.process.stderr
    assert run.manifest["exit_status"] == 1 and run.manifest["complete"] is True
    assert_counts_are_true(run)
    found = recorded(run.folder)
    whole = {
        f"{name}/{side}"
        for name in ("root", "root.0", "root.1", "root.1.0", "root.1.1")
        for side in ("input_0.pth", "output.pth")
    }
    assert {f"{name}/{file}" for number, name, file in found if number == 1} == whole
    assert {f"{name}/{file}" for number, name, file in found if number == 2} == {
        "root/input_0.pth",
        "root.0/input_0.pth",
        "root.0/output.pth",
        "root.1/input_0.pth",
        "root.1.0/input_0.pth",
    }
    assert run.summary("command").startswith("ended with status 1 ")
    assert "-er asks for rounds up to 9, the command ended in round 2" in run.process.stdout


LEAVES = """
import os, sys, time, torch
size, pause, status = map(int, sys.argv[1:])
model = torch.nn.Sequential(*[torch.nn.Identity() for _ in range(21)])
for step in range(4): model(torch.zeros(size, size))
time.sleep(pause)
os._exit(status)
"""


def test_a_script_that_leaves_by_exit_when_all_is_written(tmp_path):
    script = write_script(tmp_path, LEAVES)
    run = dump(tmp_path, [sys.executable, script, 10, 1, 0])
    counts = assert_counts_are_true(run)
    assert (counts["written"], counts["lost"]) == (2 * 22, 0)
    (note,) = run.manifest["notes"]
    assert "did not end in order" in note and "all it had announced is there" in note
    assert run.manifest["complete"] is True


def test_a_script_that_leaves_by_exit_in_the_middle_of_writing(tmp_path):
    script = write_script(tmp_path, LEAVES)
    run = dump(tmp_path, [sys.executable, script, 400, 0, 5], "-er", "0,3", status=5)
    counts = assert_counts_are_true(run)
    assert counts["announced"] == 4 * 2 * 22
    assert run.reasons[0].startswith(f"process {run.pids[0]} did not end in order")
    if counts["lost"]:
        assert f"{counts['lost']} tensor" in run.reasons[0]
        assert run.summary("tensors").startswith(f"{counts['written']} of {counts['announced']} announced")


# Processes and threads


def inputs_of_roots(folder):
    return sorted(float(tensor[0, 0]) for key, tensor in recorded(folder).items() if key[1:] == ("root", "input_0.pth"))


def test_processes_that_a_script_starts(tmp_path):
    code = """
    import os, sys, torch
    import torch.multiprocessing as multiprocessing
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    def work(rank, first):
        for step in range(2): model(torch.full((1, 2), float(first + 10 * rank + step)))
    if __name__ == "__main__":
        work(0, 0)
        multiprocessing.start_processes(work, (100,), nprocs=2, start_method="fork")
        multiprocessing.start_processes(work, (200,), nprocs=2, start_method="spawn")
        child = os.fork()
        if child == 0: sys.exit(0)  # calls no model
        os.waitpid(child, 0)
    """
    run = dump(tmp_path, code, "-er", "0,9")
    assert sorted(map(inputs_of_roots, run.folders)) == [
        [float(first), float(first + 1)] for first in (0, 100, 110, 200, 210)
    ]
    assert [f"cpu_{pid}" for pid in run.pids] == [folder.name for folder in run.folders]
    assert all(process["ended_in_order"] for process in run.manifest["processes"])
    counts = assert_counts_are_true(run)
    assert counts["announced"] == counts["written"] == 5 * 2 * 6
    assert run.manifest["complete"] is True
    assert run.summary("processes").startswith("5 (pid ")


def test_threads_that_call_one_model(tmp_path):
    code = """
    import threading, torch
    model = torch.nn.Sequential(*[torch.nn.Linear(16, 16, bias=False) for _ in range(4)])
    for layer in model: torch.nn.init.eye_(layer.weight)
    together = threading.Barrier(4)
    def work(number):
        together.wait()
        for step in range(5): model(torch.full((16, 16), float(10 * number + step)))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """
    run = dump(tmp_path, code, "-er", "0,99")
    found = recorded(run.folder)
    rounds = {}
    for (number, _, _), tensor in found.items():
        rounds.setdefault(number, []).append(tensor)
    assert sorted(rounds) == list(range(20))
    for tensors in rounds.values():  # never those of another thread
        assert len(tensors) == 2 * 5
        assert all(torch.equal(tensor, tensors[0]) for tensor in tensors)
    expected = sorted(float(10 * number + step) for number in range(4) for step in range(5))
    assert sorted(float(tensors[0][0, 0]) for tensors in rounds.values()) == expected
    assert_counts_are_true(run)
    assert run.manifest["complete"] is True


def test_a_shell_script_that_starts_pythons(tmp_path, seen):
    """In other folders, in the background, and with other programs around them."""
    script = write_script(tmp_path, STEPS)
    (tmp_path / "run.sh").write_text(
        f"mkdir elsewhere; cd elsewhere; ls >/dev/null\n"
        f"{sys.executable} {script} >log.txt & {sys.executable} {script} | cat; wait\nexit 3\n"
    )
    run = dump(tmp_path, "sh run.sh", "-er", "2,2", status=3)
    expected = {key: tensor for key, tensor in seen[0].items() if key[0] == 2}
    assert len(run.folders) == 2
    for folder in run.folders:
        assert_same(recorded(folder), expected)
    assert [f"torch_tensors/cpu_{pid}" for pid in run.pids] == run.manifest["written_files"]["torch_tensors"]
    assert run.manifest["complete"] is True and run.manifest["exit_status"] == 3


def test_programs_that_are_only_called_like_python_run_once(tmp_path, seen):
    """Python is asked where ait_llm is; a script must not be. Behind env it is still the Python of the command."""
    script = write_script(tmp_path, STEPS)
    job = tmp_path / "python_job.sh"
    job.write_text(f"#!/bin/sh\necho ran >>times.txt\nexec env A=1 {sys.executable} {script}\n")
    job.chmod(0o755)
    run = dump(tmp_path, "./python_job.sh")
    assert (tmp_path / "times.txt").read_text() == "ran\n"
    assert len(run.pids) == 1 and run.process.stdout.startswith(seen[1])
    other = {**os.environ, "AIT_PYTHON": "/bin/false"}
    run = dump(tmp_path, f"env A=1 {sys.executable} -c 'print(5)'", out="env", env=other)
    assert run.process.stdout.startswith("5\n")


@pytest.mark.slow
def test_a_process_that_still_runs(tmp_path):
    (tmp_path / "run.sh").write_text("sleep 60 >/dev/null 2>&1 & echo $!\n")
    run = dump(tmp_path, "sh run.sh")
    pid = int(run.process.stdout.split()[0])
    os.kill(pid, signal.SIGKILL)
    (reason,) = run.reasons
    assert f"process {pid} that it started still runs" in reason


def test_more_models_than_are_recorded(tmp_path):
    run = dump(tmp_path, "import torch\nfor _ in range(70): torch.nn.Linear(2, 2)(torch.zeros(1, 2))\n")
    assert len(run.folders) == 64 == len(run.manifest["written_files"]["torch_tensors"])
    assert_counts_are_true(run)
    (reason,) = run.reasons
    assert "only the first 64 models of this process are recorded" in reason


@pytest.mark.slow
def test_each_rank_of_torchrun_has_its_folder(tmp_path):
    """By the program that stands beside Python: its first line names the Python that has the package."""
    torchrun = pathlib.Path(sys.executable).parent / "torchrun"
    if not torchrun.exists():
        pytest.skip("torch was installed without torchrun")
    script = write_script(
        tmp_path,
        """
        import os, torch
        torch.nn.Linear(2, 2)(torch.full((1, 2), float(os.environ["RANK"])))
    """,
    )
    other = {**os.environ, "AIT_PYTHON": "/bin/false"}
    run = dump(tmp_path, [torchrun, "--standalone", "--nproc_per_node", "2", script], env=other)
    ranks = {}
    for folder in run.folders:
        manifest = json.loads((folder / "manifest.json").read_text())
        assert (manifest["state"], manifest["world_size"]) == ("complete", 2)
        ranks[manifest["rank"]] = inputs_of_roots(folder)
    assert ranks == {0: [0.0], 1: [1.0]}
    assert len(run.pids) == 2  # the launcher itself calls no model
    assert run.manifest["complete"] is True


# Under pressure

ENDLESS = """
import itertools, os, torch
model = torch.nn.Sequential(*[torch.nn.Linear(48, 48, bias=False) for _ in range(3)], torch.nn.Identity())
for layer in model[:3]: torch.nn.init.eye_(layer.weight)
print("host", os.getpid(), flush=True)
for step in itertools.count(): model(torch.full((48, 48), float(step % 1000)))
"""


class KilledScripts:
    """The same script again and again, killed each time at another moment."""

    latest_kill_seconds = 0.3

    def __init__(self, tmp_path, seed):
        self.tmp_path = tmp_path
        self.random = random.Random(seed)
        self.script = write_script(tmp_path, ENDLESS)

    def run(self, name):
        command = dump_command([sys.executable, self.script], "--probe", "torch", "-er", "0,999999", out=name)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=self.tmp_path, env=environment(), **pipes) as process:
            line = process.stdout.readline()
            pid = int(line.split()[1])
            if self.random.random() < 0.5:  # the others may die before their first file, on a busy machine
                self.wait_for_a_file(self.tmp_path / name)
                time.sleep(self.random.uniform(0, self.latest_kill_seconds / 10))
            else:
                time.sleep(self.random.uniform(0, self.latest_kill_seconds))
            os.kill(pid, signal.SIGKILL)
            rest, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 128 + signal.SIGKILL
        done = subprocess.CompletedProcess(command, process.returncode, line + rest, errors)
        return pid, TorchDump(done, self.tmp_path / name / "ait_dump")

    @staticmethod
    def wait_for_a_file(folder):
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while next(folder.rglob("*.pth"), None) is None:
            assert time.monotonic() < deadline, "nothing is written"
            time.sleep(0.01)

    def check(self, pid, run):
        """Returns how many tensors were written and how many more had been announced."""
        counts = assert_counts_are_true(run)
        assert run.manifest["signal"] == signal.SIGKILL
        if not run.folders:  # it had not come to the first call
            assert run.pids in ([], [pid])
            return 0, 0
        (process,) = run.manifest["processes"]
        assert (process["pid"], process["ended_in_order"]) == (pid, False)
        assert run.reasons[0].startswith(f"process {pid} did not end in order")
        for (number, _, _), tensor in run.tensors[run.folder.name].items():
            assert torch.equal(tensor, torch.full((48, 48), float(number % 1000)))
        for path in run.folder.glob("*.json"):
            json.loads(path.read_text())
        return counts["written"], counts["lost"]

    def kill(self, times):
        """Returns how many of the kills came when something had been written, and how many while something was."""
        outcomes = [self.check(*self.run(f"out{number}")) for number in range(times)]
        return sum(written > 0 for written, _ in outcomes), sum(written > 0 and lost > 0 for written, lost in outcomes)


def test_a_killed_script_leaves_only_whole_files(tmp_path):
    after_writing, _ = KilledScripts(tmp_path, seed=1).kill(FAST_KILLS)
    assert after_writing > 0


@pytest.mark.slow
def test_a_hundred_killed_scripts_leave_only_whole_files(tmp_path):
    _, while_writing = KilledScripts(tmp_path, seed=2).kill(SLOW_KILLS)
    assert while_writing > SLOW_KILLS // 8


LARGE = """
import sys, torch
model = torch.nn.Sequential(*[torch.nn.Identity() for _ in range(6)])
out = model(torch.full((1024, 1024), 5.0))  # 4 MiB a tensor, 56 MiB in all
print("sum", out.sum().item())
"""


def test_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("AIT_TORCH_LINKS", "0")  # else the same bytes would need their room once
    with Mount(tmp_path / "small", "size=30m") as small:
        run = dump(tmp_path, LARGE, out=small)
        assert run.process.stdout.startswith(f"sum {5.0 * 1024 * 1024}\n")
        counts = assert_counts_are_true(run)
        assert counts["announced"] == 14 and counts["lost"] == 0 and 4 <= counts["written"] < 8
        for tensor in recorded(run.folder).values():
            assert torch.equal(tensor, torch.full((1024, 1024), 5.0))
        said = [line for line in run.process.stderr.splitlines() if os.strerror(28) in line]
        assert len(said) == 1, run.process.stderr
        (reason,) = run.reasons
        assert reason.startswith(f"{counts['failed']} tensors could not be stored") and os.strerror(28) in reason
        assert run.summary("tensors").startswith(f"{counts['written']} of 14 announced")


def test_a_disk_that_becomes_read_only(tmp_path):
    """After ait has looked at it: here the script itself remounts it."""
    with Mount(tmp_path / "disk", "size=8m") as disk:
        code = f"import subprocess\nsubprocess.run(['mount', '-o', 'remount,ro', {str(disk)!r}], check=True)\n" + STEPS
        run = dump(tmp_path, code, out=disk)
        assert run.process.stdout.startswith("sum ")
        (said,) = [line for line in run.process.stderr.splitlines() if "not recorded" in line]
        assert "dump_path must be a folder that can be written to" in said
        assert run.summary("capture") == "not complete"
        assert run.folders == []


def test_an_output_that_cannot_be_written(ait, tmp_path):
    with Mount(tmp_path / "disk", "size=1m,ro") as disk:
        words = ["--exec", f'{sys.executable} -c \'open("ran", "w")\'', "--probe", "torch", "-o", disk]
        line = error_line(ait("llm", "dump", *words, env=environment()))
        assert os.strerror(30) in line
        assert not (tmp_path / "ran").exists()


OWN_RECORDING = """
import torch
from ait_llm import DumpConfig, register_hook
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh())
with register_hook(model, DumpConfig({folder!r}, list(range(9)))) as handle:
    for step in range(9): model(torch.randn(2, 4))
"""


@pytest.mark.parametrize("folder", ["mine", "out"])
def test_what_a_script_records_itself_is_not_taken_for_missing(tmp_path, folder):
    """Elsewhere it is none of the launcher's business; in the launcher's own folder it belongs to the dump."""
    run = dump(tmp_path, OWN_RECORDING.format(folder=str(tmp_path / folder)), "-er", "0,1")
    assert run.manifest["complete"] is True and run.manifest["notes"] == []
    counts = assert_counts_are_true(run)
    own = [path.name for path in (tmp_path / folder).glob("ait_dump/torch_tensors/*")]
    if folder == "mine":
        assert counts["written"] == 2 * 6 and own == [run.folder.name]
        assert len(recorded(tmp_path / "mine" / "ait_dump" / "torch_tensors" / own[0])) == 9 * 6
    else:
        assert counts["written"] == (2 + 9) * 6 and len(own) == 2


COMPILED = """
import torch
own = lambda graph, inputs: graph.forward
torch.manual_seed(0)
class Model(torch.nn.Sequential):
    def forward(self, x): return self[2](self[1](self[0](x)))
model = Model(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
if {in_place}: model.compile(backend={backend})
else: model = torch.compile(model, backend={backend})
model(torch.ones(2, 4))
"""


@pytest.mark.skipif(not hasattr(torch, "compiler"), reason="needs torch.compile")
@pytest.mark.parametrize("in_place", [False, True])
def test_what_torch_compile_hides_is_missing(in_place, tmp_path):
    run = dump(tmp_path, COMPILED.format(backend="own", in_place=in_place))
    assert run.summary("modules") == "1 of 4 were called in the rounds recorded"
    assert run.summary("capture") == "not complete" and run.manifest["complete"] is False
    (reason,) = run.reasons
    assert reason.startswith(f"torch_tensors/{run.folder.name}: nothing is recorded of 3 modules: torch.compile has")
    assert "a backend of the script's own" in reason
    assert json.loads((run.folder / "manifest.json").read_text())["state"] == "incomplete"


@pytest.mark.skipif(not hasattr(torch, "compiler"), reason="needs torch.compile")
@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_model_is_recorded_inside(in_place, tmp_path):
    run = dump(tmp_path, COMPILED.format(backend="'eager'", in_place=in_place))
    assert run.summary("modules") == "4 of 4 were called in the rounds recorded"
    assert run.summary("capture") == "complete" and run.manifest["complete"] is True
    assert {place for _, place, _ in recorded(run.folder)} == {"root", "root.0", "root.1", "root.2"}
    assert_counts_are_true(run)


def test_modules_that_a_model_does_not_use_are_not_missing(tmp_path):
    code = """
    import torch
    class Chooses(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(8))
        def forward(self, x): return self.experts[3](x)
    Chooses()(torch.ones(1, 2))
    """
    run = dump(tmp_path, code)
    assert run.summary("modules") == "2 of 9 were called in the rounds recorded"
    assert run.summary("capture") == "complete" and run.manifest["complete"] is True
    assert json.loads((run.folder / "manifest.json").read_text())["state"] == "complete"
