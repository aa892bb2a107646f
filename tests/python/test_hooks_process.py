"""What is on disk when a recorded process forks, fails, fills the disk, or is killed."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from hook_models import Model, X
from torch_oracle import Watcher, assert_recorded, recorded

MODEL = """
import os, sys, torch
from ait_llm import DumpConfig, register_hook
class Steps(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Identity() for _ in range(3)])
        self.size = size
    def forward(self, step):
        x = torch.full((self.size,), float(step))
        for layer in self.layers:
            x = layer(x)
        return x
"""


def run_python(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", MODEL + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def folder_in(path):
    (folder,) = Path(path).glob("ait_dump/torch_tensors/*")
    return folder


def manifest_in(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_everything_is_written_when_the_script_ends_with_an_exception(tmp_path):
    process = run_python(
        """
model = Steps(10_000)
register_hook(model, DumpConfig(sys.argv[1], list(range(20))))
for step in range(20): model(step)
raise SystemExit(3)
""",
        tmp_path,
    )
    assert process.returncode == 3
    assert process.stderr == f"ait_llm: recording Steps in {folder_in(tmp_path)}\n"
    assert process.stdout == ""
    found = recorded(folder_in(tmp_path))
    assert len(found) == 20 and all(len(calls) == 4 for calls in found.values())
    manifest = manifest_in(folder_in(tmp_path))
    assert manifest["state"] == "complete" and manifest["tensors"]["written"] == 20 * 7
    assert not list(tmp_path.rglob("*.tmp"))


def run_in_child(model, value):
    for _ in range(2):
        model(X + value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make folders of another user")
def test_nothing_is_written_into_a_folder_of_another_user(tmp_path, caplog):
    planted = tmp_path / "ait_dump"
    planted.mkdir()
    os.chown(planted, 65534, 65534)
    model = Model()
    expected = model(X)
    with register_hook(model, DumpConfig(str(tmp_path))):
        assert torch.equal(model(X), expected)
    assert list(planted.iterdir()) == []
    assert "belongs to user 65534" in caplog.text


def test_forked_processes_have_folders_and_rounds_of_their_own(tmp_path):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1])) as handle, Watcher(model) as watcher:
        model(X)
        children = []
        for value in (1, 2):
            children.append(multiprocessing.get_context("fork").Process(target=run_in_child, args=(model, value)))
            children[-1].start()
        for child in children:
            child.join(60)
            assert child.exitcode == 0
        model(X)
    assert_recorded(handle.folder, watcher.calls, rounds=[0, 1])
    for value, child in zip((1, 2), children):
        folder = tmp_path / "ait_dump" / "torch_tensors" / f"cpu_{child.pid}"
        found = recorded(folder)
        assert set(found) == {0, 1}
        assert torch.equal(found[1]["root"]["input_0.pth"], X + value)
        manifest = manifest_in(folder)
        assert (manifest["state"], manifest["pid"], manifest["root_calls"]) == ("complete", child.pid, 2)
        assert (folder / "model_tree.json").exists()


# CPython 3.11 itself can hang in os.fork() while another thread runs (in _PyThreadState_DeleteExcept).
@pytest.mark.slow
def test_a_fork_while_another_thread_records_harms_neither(tmp_path):
    model, other = Model(), Model()
    stop = threading.Event()
    with (
        register_hook(model, DumpConfig(str(tmp_path / "busy"), list(range(100_000)))) as handle,
        register_hook(other, DumpConfig(str(tmp_path / "forked"))),
    ):
        thread = threading.Thread(target=lambda: [model(X) for _ in iter(stop.is_set, True)])
        thread.start()
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                other(X)
                os._exit(0 if torch.equal(other(X), other(X)) else 1)
            assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        thread.join()
    rounds = json.loads(Path(handle.folder, "manifest.json").read_text())
    assert rounds["tensors"]["written"] == rounds["tensors"]["submitted"] == rounds["root_calls"] * 18


FAILING = """
model = Steps(10_000)
handle = register_hook(model, DumpConfig(sys.argv[1], list(range(50))))
if len(sys.argv) > 2: os.rename(sys.argv[1], sys.argv[1] + ".away"); open(sys.argv[1], "w").close()
outputs = [float(model(step).sum()) for step in range(50)]
assert outputs == [10_000.0 * step for step in range(50)]
print("went on")
"""


def test_a_folder_that_vanishes_is_one_warning_and_the_script_goes_on(tmp_path):
    process = run_python(FAILING, tmp_path / "dump", "away")
    assert process.returncode == 0 and process.stdout == "went on\n"
    _, first, last = process.stderr.splitlines()
    assert "Not a directory" in first and "from here on failures are only counted" in first
    assert "files could not be written" in last


@pytest.mark.parametrize("kind", ["a file", "no permission"])
def test_a_folder_that_cannot_be_made_is_one_warning_and_the_script_goes_on(kind, tmp_path):
    target = tmp_path / "dump"
    target.mkdir()
    if kind == "a file":
        (target / "ait_dump").write_text("in the way")
    else:
        target.chmod(0o500)
        if os.geteuid() == 0:
            pytest.skip("root may write anywhere")
    process = run_python(FAILING, target)
    assert process.returncode == 0 and process.stdout == "went on\n"
    (line,) = process.stderr.splitlines()
    assert line.startswith("ait_llm: nothing will be recorded: ")


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_whole_files_and_the_script_goes_on(small_disk):
    process = run_python(FAILING, small_disk)
    assert process.returncode == 0 and process.stdout == "went on\n"
    assert "No space left on device" in process.stderr
    assert len(process.stderr.splitlines()) == 3
    folder = folder_in(small_disk)
    files = list(folder.glob("*/*/*.pth"))
    assert 0 < len(files) < 50 * 7
    for path in files:
        tensor = torch.load(path, weights_only=True)
        assert tensor.shape in ((10_000,), ()) and float(tensor.min()) == float(path.parts[-3])
    manifest = manifest_in(folder)
    assert manifest["tensors"]["submitted"] == 50 * 7
    assert manifest["state"] in ("recording", "incomplete")  # there may have been no room for the last one
    if manifest["state"] == "incomplete":
        assert manifest["tensors"]["written"] == len(files)
        assert manifest["tensors"]["failed"] == manifest["tensors"]["submitted"] - len(files)
        assert "No space left on device" in manifest["tensors"]["first_failure"]
        failed = f"{manifest['tensors']['failed']} of {50 * 7} tensors could not be written; the first: "
        assert manifest["incomplete_because"][0].startswith(failed)


def test_the_manifest_is_there_from_the_start(tmp_path):
    for number in range(20):  # a process may be killed at once
        with register_hook(Model(), DumpConfig(str(tmp_path / str(number)), dump_weight=True)) as handle:
            assert manifest_in(Path(handle.folder))["state"] == "recording"
            assert Path(handle.folder, "model_tree.json").exists()


def test_a_manifest_says_that_tensors_could_not_be_written(tmp_path):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1], dump_statistics_mode=2)) as handle:
        Path(handle.folder, "1").write_text("in the way")
        model(X)
        model(X)
    manifest = manifest_in(Path(handle.folder))
    assert manifest["state"] == "incomplete"
    of_tensors, of_others = manifest["incomplete_because"]
    assert of_tensors.startswith(f"18 of 36 tensors could not be written; the first: {handle.folder}/1/root")
    assert "Not a directory" in of_tensors and of_others.startswith("1 of 4 other files could not be written; ")
    assert len(recorded(handle.folder)[0]) == 8


def test_a_manifest_says_that_ait_itself_could_not_go_on(tmp_path, monkeypatch):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        monkeypatch.setattr(handle._session, "_end_call", lambda *_: 1 // 0)
        model(X)
    manifest = manifest_in(Path(handle.folder))
    assert manifest["state"] == "incomplete"
    (sentence,) = manifest["incomplete_because"]
    assert sentence.startswith("8 times ait itself could not go on; the first, at root.blocks.0.fc: ZeroDivisionError")


KILLED = """
import random, signal, time
random.seed(1)
torch.set_num_threads(1)
for index in range(15):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        model = Steps(1000)
        register_hook(model, DumpConfig(sys.argv[1], list(range(100_000)), dump_statistics_mode=2))
        step = 0
        while True:
            model(step)
            step += 1
            if step == 20: os.write(writing, b"x")
    if index % 3: os.read(reading, 1)  # however busy the machine is; the others may still be registering
    time.sleep(random.uniform(0.02, 0.4))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
"""


def test_a_killed_process_leaves_no_torn_file(tmp_path):
    process = run_python(KILLED, tmp_path)
    assert process.returncode == 0, process.stderr
    total = 0
    for folder in tmp_path.glob("ait_dump/torch_tensors/*"):
        for path in folder.glob("*/*/*.pth"):
            assert torch.load(path, weights_only=True).tolist() == [float(path.parts[-3])] * 1000
            total += 1
        for path in folder.glob("*/statistics.csv"):
            assert path.read_bytes().endswith(b"\r\n")
        if (folder / "manifest.json").exists():
            assert manifest_in(folder)["state"] == "recording"
            json.loads((folder / "model_tree.json").read_text())
    assert total > 100  # or nothing was tested


@pytest.mark.slow
def test_a_large_capture_needs_little_memory(tmp_path):
    """20 GB through the hooks, with a disk that is slower than they are."""
    process = run_python(
        """
import resource, shutil, threading
class Large(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Identity() for _ in range(10)])
    def forward(self, x):
        for layer in self.layers: x = layer(x)
        return x
x = torch.zeros(12_500_000)
model = Large()
model(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with register_hook(model, DumpConfig(sys.argv[1], list(range(20)))) as handle:
    for step in range(20):
        model(x)
        handle.flush()
        shutil.rmtree(os.path.join(handle.folder, str(step)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, handle._session._sink.manifest.root_calls)
""",
        tmp_path,
    )
    assert process.returncode == 0, process.stderr
    grown_kib, rounds = map(int, process.stdout.split())
    assert rounds == 20
    assert grown_kib < 1 << 20
