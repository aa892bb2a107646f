"""What other runs and processes leave behind: background processes, pids used again, folders of killed launchers."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from atb_host import Asked, Host, Recording, differences, read_tree
from conftest import PROGRAM
from dump_run import TIMEOUT_SECONDS, assert_recorded, dump_command, host_program, record


def background(tmp_path, *host_words, script_end=""):
    """A command that ends before the host does, which it has started in the background; the manifest."""
    words = " ".join(map(str, [host_program(), *host_words]))
    (tmp_path / "run.sh").write_text(f"{words} >host.txt 2>&1 &\n{script_end}\n")
    process = subprocess.run(
        dump_command("sh run.sh", "-er", "0,99", out="out"), cwd=tmp_path, capture_output=True, text=True,
        timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process, json.loads((tmp_path / "out/ait_dump/manifest.json").read_text())


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_process_that_outlives_the_command_a_little_is_waited_for(tmp_path):
    _, manifest = background(tmp_path, "--rounds", "4", "--pause-ms", "200")
    assert manifest["complete"] is True
    written = [path for path in files_below(tmp_path / "out/ait_dump/tensors") if path.suffix == ".bin"]
    assert manifest["tensors"]["written"] == len(written) > 0
    assert manifest["seconds"] < 1, "the command's own time"
    assert not list((tmp_path / "out/ait_dump").glob(".run_*"))


def test_a_process_that_goes_on_is_named_and_not_disturbed(tmp_path):
    process, manifest = background(tmp_path, "--rounds", "400", "--pause-ms", "50", script_end="sleep 0.5")
    pid = int((tmp_path / "host.txt").read_text().split()[1])
    try:
        os.kill(pid, 0)
        assert manifest["complete"] is False
        assert [(one["pid"], one["still_running"]) for one in manifest["processes"]] == [(pid, True)]
        assert f"process {pid} outlived the command" in process.stdout
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_process_that_has_not_begun_is_named(tmp_path):
    (tmp_path / "run.sh").write_text("sleep 30 & echo $! >pid.txt\n")
    process = subprocess.run(
        dump_command("sh run.sh", out="out"), cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    pid = int((tmp_path / "pid.txt").read_text())
    os.kill(pid, signal.SIGKILL)
    assert f"process {pid} that it started still runs" in process.stdout


def assert_recorded_as(files, host, asked, pid, name):
    """Of all `files`, those below the process's own name are exactly what it recorded."""
    expected = {}
    for path, data in Recording(host, asked, pid).files().items():
        kind, owner, *rest = path.split("/")
        path = "/".join([kind, owner.replace(str(pid), name), *rest])
        expected[path] = data.replace(f"tensors/0_{pid}/".encode(), f"tensors/0_{name}/".encode())
    found = {path: data for path, data in files.items() if path.split("/")[1:2] in ([name], [f"0_{name}"])}
    wrong = differences(found, expected)
    assert not wrong, "\n".join(wrong[:10])


def test_a_pid_that_an_earlier_run_had_gets_folders_of_its_own(tmp_path):
    first = record(tmp_path, host=Host(layers=1))
    assert_recorded(first, Host(layers=1))
    for pid in range(first.pid + 1, first.pid + 3000):
        (tmp_path / f"out/ait_dump/tensors/0_{pid}").mkdir(exist_ok=True)
    words = ["--type", "tensor", "op", "kernel", "layer", "-tiling"]
    second = record(tmp_path, *words, host=Host(layers=1))
    asked = Asked(types=("tensor", "op", "kernel", "layer"), tiling=True)
    assert_recorded_as(second.files(), Host(layers=1), asked, second.pid, f"{second.pid}_1")
    assert list((tmp_path / f"out/ait_dump/tensors/0_{second.pid}").iterdir()) == []
    assert second.manifest["complete"] is True and second.manifest["notes"] == []
    (process,) = second.manifest["processes"]
    assert (process["pid"], process["name"]) == (second.pid, f"{second.pid}_1")
    assert not list((tmp_path / "out/ait_dump").glob(".*"))


def in_container(command):
    """With pids of its own, which are the same every time."""
    can = subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, text=True)
    if can.returncode != 0:
        pytest.skip(f"pids of one's own are not allowed here: {can.stderr.strip()}")
    return ["unshare", "-pf", "--mount-proc", *map(str, command)]


def test_processes_with_equal_pids_do_not_disturb_each_other(tmp_path):
    host, asked = (
        Host(layers=1, rounds=6, old_statistics=True),
        Asked(types=("tensor", "op", "layer"), ranges=((0, 9),)),
    )
    words = ["--type", *asked.types, "cpu_profiling", "-er", "0,9"]
    command = dump_command([host_program(), *host.words(), "--pause-ms", "50"], *words, out="out")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": tmp_path}
    processes = [subprocess.Popen(in_container(command), **pipes) for _ in range(3)]
    texts = [process.communicate(timeout=TIMEOUT_SECONDS)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], texts
    pids = {re.search(r"^host (\d+) device", text, re.M)[1] for text in texts}
    assert len(pids) == 1, "the pids were to be the same"
    (pid,) = pids
    for text in texts:
        assert re.search("^capture +complete$", text, re.M), text
    files = read_tree(tmp_path / "out/ait_dump")
    for name in (pid, f"{pid}_1", f"{pid}_2"):
        assert_recorded_as(files, host, asked, int(pid), name)
    times = [data.decode() for path, data in files.items() if path.startswith("cpu_profiling/")]
    expected = Recording(host, asked, int(pid)).statistics_files().values()
    assert sorted(times) == sorted(list(expected) * 3)
    assert not list((tmp_path / "out/ait_dump").glob(".*"))


def test_a_shorter_run_does_not_show_rounds_of_a_longer_one(tmp_path):
    def run(rounds):
        command = dump_command([host_program(), *Host(layers=1, rounds=rounds).words()], "-er", "0,9", out="out")
        done = subprocess.run(in_container(command), cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return re.search(r"^host (\d+) device", done.stdout, re.M)[1]

    pid = run(6)
    assert run(3) == pid
    tensors = tmp_path / "out/ait_dump/tensors"
    rounds = {path.name: len(list(path.iterdir())) for path in tensors.iterdir()}
    assert rounds == {f"0_{pid}": 5, f"0_{pid}_1": 2}
    compared = subprocess.run(
        [PROGRAM, "llm", "compare", "-gp", "out", "-mp", "out"], cwd=tmp_path, capture_output=True, text=True
    )
    assert f"is not used: 0_{pid}_1 is a later run" in compared.stderr


def test_two_processes_with_one_pid_in_the_same_command(tmp_path):
    host = Host(layers=1, rounds=3)
    one = " ".join(in_container([host_program(), *host.words(), "--pause-ms", "50"]))
    (tmp_path / "run.sh").write_text(f"{one} & {one} & wait\n")
    words = ["--type", "tensor", "layer", "-er", "0,9"]
    process = subprocess.run(
        dump_command("sh run.sh", *words, out="out"), cwd=tmp_path, capture_output=True, text=True,
        timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    (pid,) = set(re.findall(r"^host (\d+) device", process.stdout, re.M))
    files = read_tree(tmp_path / "out/ait_dump")
    asked = Asked(types=("tensor", "layer"), ranges=((0, 9),))
    for name in (pid, f"{pid}_1"):
        assert_recorded_as(files, host, asked, int(pid), name)
    manifest = json.loads(files["manifest.json"])
    assert manifest["complete"] is True
    assert [each["name"] for each in manifest["processes"]] == [pid, f"{pid}_1"]


def test_a_killed_launcher_leaves_whole_files_and_the_next_run_works(tmp_path):
    command = dump_command([host_program(), "--rounds", "200", "--pause-ms", "20"], "-er", "0,999", out="out")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        host_pid = int(process.stdout.readline().split()[1])
        time.sleep(0.2)
        process.kill()
        os.kill(host_pid, signal.SIGKILL)
    assert not (tmp_path / "out/ait_dump/manifest.json").exists()
    assert list((tmp_path / "out/ait_dump").glob(".run_*")), "the launcher was to be killed in the middle"
    run = record(tmp_path, host=Host(layers=1))
    assert run.manifest["complete"] is True
    assert not list((tmp_path / "out/ait_dump").glob(".*")), "the next run clears what a dead one has left"


def test_a_run_does_not_clear_what_a_live_one_uses(tmp_path):
    slow = dump_command([host_program(), "--rounds", "40", "--pause-ms", "30"], "-er", "0,99", out="out")
    with subprocess.Popen(slow, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        (scratch,) = (tmp_path / "out/ait_dump").glob(".run_*")
        assert record(tmp_path, host=Host(layers=1)).manifest["complete"] is True
        assert scratch.is_dir() and process.poll() is None
        text, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert re.search("^capture +complete$", text, re.M), text
    assert not list((tmp_path / "out/ait_dump").glob(".*"))
