"""What other runs and processes leave behind: background processes, pids used again, folders of killed launchers."""

import json
import os
import signal
import subprocess
import time

from atb_host import Host
from dump_run import TIMEOUT_SECONDS, dump_command, host_program, record


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


def test_a_pid_that_an_earlier_run_had_is_noted(tmp_path):
    first = record(tmp_path, host=Host(layers=1))
    assert first.manifest["notes"] == []
    for pid in range(first.pid, first.pid + 3000):
        (tmp_path / f"out/ait_dump/tensors/0_{pid}").mkdir(exist_ok=True)
    second = record(tmp_path, host=Host(layers=1))
    (note,) = second.manifest["notes"]
    assert f"an earlier run had a process {second.pid} too" in note
    assert note in second.process.stdout


def test_a_killed_launcher_leaves_whole_files_and_the_next_run_works(tmp_path):
    command = dump_command([host_program(), "--rounds", "200", "--pause-ms", "20"], "-er", "0,999", out="out")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        host_pid = int(process.stdout.readline().split()[1])
        time.sleep(0.2)
        process.kill()
        os.kill(host_pid, signal.SIGKILL)
    assert not (tmp_path / "out/ait_dump/manifest.json").exists()
    run = record(tmp_path, host=Host(layers=1))
    assert run.manifest["complete"] is True
