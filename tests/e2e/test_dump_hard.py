"""Recording under pressure: hosts that are killed, many threads and processes, disks that are full or read-only."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from atb_host import Asked, Host, Recording, differences, read_tree
from dump_run import (
    TIMEOUT_SECONDS,
    Run,
    assert_recorded,
    assert_tensors_counted,
    dump_command,
    host_program,
    record,
    run_to_the_end,
)

FAST_KILLS = 15
SLOW_KILLS = 200


def is_tensor(path):
    return path.startswith("tensors/") and path.endswith(".bin")


def temporary_files(folder):
    return [path for path in folder.rglob("*") if path.name.startswith(".")]


def assert_whole(run, recordings):
    """Every file on disk is one that was to be recorded, with all its bytes; returns the tensors."""
    expected = {}
    for recording in recordings:
        expected.update({f"tensors/{path}": make for path, make in recording.tensors.items()})
    files = run.files()
    assert set(files) <= set(expected)
    for path, data in files.items():
        assert data == expected[path](), path
    return {path: data for path, data in files.items() if is_tensor(path)}


def assert_counts_are_true(run, tensors):
    """What the manifest counts is what lies on the disk."""
    counts = run.manifest["tensors"]
    assert counts["written"] == len(tensors)
    assert counts["written_bytes"] == sum(map(len, tensors.values()))
    assert counts["announced"] >= counts["written"] + counts["failed"]


class KilledHosts:
    """The same host again and again, killed each time at another moment."""

    host = Host(layers=1, rounds=6, dims=(64, 65), old_statistics=True)
    asked = Asked(types=("tensor", "op", "kernel", "cpu_profiling", "model"), ranges=((0, 9),), tiling=True)

    def __init__(self, tmp_path, seed):
        self.tmp_path = tmp_path
        self.random = random.Random(seed)
        started = time.monotonic()
        run = self.run(None)
        self.seconds = time.monotonic() - started
        assert run.process.returncode == 0

    def run(self, delay):
        """Kills the host's process `delay` seconds after it has started; None: lets it end."""
        out = self.tmp_path / f"out{self.random.getrandbits(64):x}"
        words = ["--type", *self.asked.types, "-er", "0,9", "-tiling"]
        command = dump_command([host_program(self.random.choice([0, 1])), *self.host.words()], *words, out=out)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=self.tmp_path, **pipes) as process:
            first_line = process.stdout.readline()
            if delay is not None:
                time.sleep(delay)
                try:
                    os.kill(int(first_line.split()[1]), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            rest, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        return Run(subprocess.CompletedProcess(command, process.returncode, first_line + rest, errors), out)

    def check(self, run):
        assert run.process.returncode in (0, 128 + signal.SIGKILL), run.process.stderr
        assert temporary_files(run.out) == []
        recording = Recording(self.host, self.asked, run.pid)
        files = run.files()
        whole = recording.files()
        for path, data in files.items():
            kind, *_, name = path.split("/")
            if kind in ("tensors", "tiling", "layer"):
                assert data == whole[path], path
            elif kind == "model":
                assert json.loads(data) == recording.models[name.removesuffix(".json")], path
            elif kind == "cpu_profiling":
                self.check_statistics(data.decode(), recording.statistics_files()[name])
            else:
                # What was reported, up to some line.
                assert data.endswith(b"\n") and whole[path].startswith(data), path
        tensors = {path: data for path, data in files.items() if is_tensor(path)}
        assert_counts_are_true(run, tensors)
        return len(tensors), sum(map(is_tensor, whole))

    @staticmethod
    def check_statistics(text, whole):
        """Of the last operations the record of the execution may be missing."""
        for block in text.removesuffix("\n\n").split("\n\n"):
            lines = block.split("\n")
            assert len(lines) == 3 and lines[1].startswith("[execute] ")
            not_executed = lines[1] == "[execute] " and f"{lines[0]}\n" in whole and lines[2] in whole
            assert block + "\n\n" in whole or not_executed

    def kill(self, times):
        incomplete = 0
        for _ in range(times):
            run = self.run(self.random.uniform(0, self.seconds))
            present, possible = self.check(run)
            incomplete += 0 < present < possible
        return incomplete


def test_a_killed_host_leaves_only_whole_files(tmp_path):
    assert KilledHosts(tmp_path, seed=1).kill(FAST_KILLS) > 0, "no kill came while something was written"


@pytest.mark.slow
def test_two_hundred_killed_hosts_leave_only_whole_files(tmp_path):
    assert KilledHosts(tmp_path, seed=2).kill(SLOW_KILLS) > SLOW_KILLS // 10


@pytest.mark.parametrize("end, status", [("_exit", 3), ("quick_exit", 3), ("abort", 134), ("segv", 139), ("kill", 137)])
def test_an_abrupt_end_is_said_and_leaves_only_whole_files(tmp_path, end, status):
    host = Host(layers=1, dims=(300, 200))
    run = record(tmp_path, host=host, more=["--end", end, "--status", "3"], status=status)
    tensors = assert_whole(run, [Recording(host, Asked(), run.pid)])
    assert temporary_files(run.out) == []
    assert_counts_are_true(run, tensors)
    counts = run.manifest["tensors"]
    expected = sum(path.endswith(".bin") for path in Recording(host, Asked(), run.pid).tensors)
    assert counts["announced"] == expected
    assert run.manifest["complete"] is False
    assert f"process {run.pid} did not end in order" in run.process.stdout


def thread_recordings(run, host, asked, pid, device, suffixes):
    """What each thread recorded; the numbers of its operations, for which threads race, are taken from the folders."""
    found = {suffix: {} for suffix in suffixes}
    for path in (run.root / "tensors" / f"{device}_{pid}").glob("*/*"):
        number, kind, suffix = re.fullmatch(r"(\d+)_([A-Za-z]+?)([TC]\d*)", path.name).groups()
        found[suffix][int(number)] = kind
    recordings = [Recording(host, asked, pid, device, suffix, sorted(numbers)) for suffix, numbers in found.items()]
    numbers = sorted(number for numbers in found.values() for number in numbers)
    return recordings, numbers


def test_two_processes_with_eight_threads_each(tmp_path):
    host = Host(layers=1, rounds=3, dims=(33, 7))
    asked = Asked(types=("tensor", "op"), ranges=((0, 9),), time=2)
    words = ["--type", "tensor", "op", "-er", "0,9", "-time", "2"]
    run = record(tmp_path, *words, host=host, more=["--processes", "2", "--threads", "8"])
    assert len(run.devices) == 2
    expected, rows = {}, {}
    for pid, device in run.devices.items():
        recordings, numbers = thread_recordings(run, host, asked, pid, device, [f"T{i}" for i in range(8)])
        assert numbers == list(range(8 * 4))
        for recording in recordings:
            expected.update({path: data for path, data in recording.files().items() if path.startswith("tensors/")})
            for count, lines in recording.operation_rows.items():
                rows.setdefault((pid, count), []).extend(lines)
    files = run.files()
    tables = {path: files.pop(path).decode().splitlines() for path in list(files) if path.endswith(".csv")}
    wrong = differences(files, expected)
    assert not wrong, "\n".join(wrong[:10])
    assert_tensors_counted(run, expected, failed=0)

    # Rows of eight threads come in any order, and each comes once, whole, with the next number.
    def without_number(line):
        number, case, name, rest = line.split("|", 3)
        assert case == name + number
        return f"{name}|{rest}"

    assert set(tables) == {f"operation_io_tensors/{pid}/operation_tensors_{count}.csv" for pid, count in rows}
    for (pid, count), lines in rows.items():
        table = tables[f"operation_io_tensors/{pid}/operation_tensors_{count}.csv"][1:]
        assert [line.split("|")[0] for line in table] == [str(i + 1) for i in range(len(lines))]
        assert sorted(map(without_number, table)) == sorted(map(without_number, lines))


@pytest.mark.parametrize("threads", [1, 8])
def test_exit_from_another_thread_loses_nothing(tmp_path, threads):
    host = Host(layers=1, dims=(200, 300))
    more = ["--threads", threads, "--end", "thread-exit", "--status", "6"]
    run = record(tmp_path, host=host, more=map(str, more), status=6)
    suffixes = [f"T{i}" for i in range(threads)]
    recordings, _ = thread_recordings(run, host, Asked(), run.pid, 0, suffixes)
    expected = {}
    for recording in recordings:
        expected.update(recording.files())
    assert run.files() == expected
    assert run.manifest["complete"] is True


def test_children_forked_before_anything_is_recorded(tmp_path):
    host = Host(layers=1)
    run = record(tmp_path, host=host, more=["--processes", "4"])
    expected = {}
    for pid, device in run.devices.items():
        expected.update(Recording(host, Asked(), pid, device).files())
    assert len(run.devices) == 4
    assert run.files() == expected
    assert_tensors_counted(run, expected)


def test_children_that_leave_by_exit_lose_nothing(ait, tmp_path):
    """As the workers of Python's multiprocessing do: no handler of ours is called."""
    script = tmp_path / "workers.py"
    script.write_text(
        """
import ctypes, os, sys
probe = ctypes.CDLL(None)
name = "_ZN3atb5Probe10SaveTensorERKSsS2_S2_PKvmS2_"
save = getattr(probe, name)
# A std::string of the old ABI is one pointer to its characters, before which its length stands.
keep = []
def old_string(text):
    data = ctypes.create_string_buffer(len(text).to_bytes(8, "little") + bytes(16) + text + bytes(1))
    keep.append(data)
    pointer = ctypes.c_void_p(ctypes.addressof(data) + 24)
    keep.append(pointer)
    return ctypes.byref(pointer)
payload = bytes(range(256)) * 64
for _ in range(2):
    if os.fork() == 0:
        for index in range(50):
            path = f"0_{os.getpid()}/0/{index}_Operation/after/outtensor0.bin".encode()
            save(old_string(b"2"), old_string(b"4"), old_string(b"16384"), payload,
                 ctypes.c_uint64(len(payload)), old_string(path))
        os._exit(0)
for _ in range(2):
    os.wait()
"""
    )
    out = tmp_path / "out"
    process = ait("llm", "dump", "--exec", f"{sys.executable} {script}", "-o", out, "--json")
    assert process.returncode == 0, process.stderr
    manifest = json.loads(process.stdout)
    assert manifest["tensors"]["announced"] == manifest["tensors"]["written"] == 100
    assert manifest["complete"] is True
    assert len(list(out.rglob("outtensor0.bin"))) == 100


def test_tensors_that_later_ones_replace_are_counted_once(tmp_path):
    run = record(tmp_path, "-er", "0,9", host=Host(layers=1, executions=2))
    counts = run.manifest["tensors"]
    assert counts["written"] == sum(path.endswith(".bin") for path in run.files())
    assert counts["announced"] > counts["written"]
    assert counts["lost"] == 0
    assert "over earlier ones of the same name" in " ".join(run.manifest["notes"])
    assert run.manifest["complete"] is True


@pytest.mark.parametrize("removed, part", [("outtensor0.bin", "tensors"), ("op_param.json", "other files")])
def test_files_that_are_gone_are_not_taken_for_replaced_ones(tmp_path, removed, part):
    script = tmp_path / "run.sh"
    script.write_text(f"{host_program()} --layers 1\nfind out -name {removed} -delete\n")
    run = Run(run_to_the_end(dump_command("sh run.sh", out="out"), cwd=tmp_path), tmp_path / "out")
    manifest = run.manifest
    assert manifest["complete"] is False
    assert any("removed or moved" in why and part in why for why in manifest["incomplete_because"])
    assert manifest["tensors"]["written"] == sum(map(is_tensor, run.files()))
    counts = manifest["tensors" if removed.endswith(".bin") else "files"]
    assert counts["lost"] == counts["announced"] - counts["written"] > 0


def test_tables_that_are_gone_are_missed(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text(f"{host_program()} --layers 1\nrm -r out/ait_dump/operation_io_tensors\n")
    run = Run(run_to_the_end(dump_command("sh run.sh", "--type", "op", out="out"), cwd=tmp_path), tmp_path / "out")
    assert run.manifest["complete"] is False
    assert "removed or moved" in " ".join(run.manifest["incomplete_because"])


def test_few_files_may_be_open(tmp_path):
    command = dump_command([host_program(), *Host(layers=1).words()], "-er", "0,9", out="out")
    limited = ["sh", "-c", 'ulimit -n 8; exec "$@"', "sh", *map(str, command)]
    run = Run(run_to_the_end(limited, cwd=tmp_path), tmp_path / "out")
    assert_recorded(run, Host(layers=1), Asked(ranges=((0, 9),)))
    assert run.manifest["complete"] is True
    assert run.manifest["tensors"]["written"] == sum(map(is_tensor, run.files()))


def test_children_forked_in_the_middle_of_recording(tmp_path):
    """What the parent had queued is written once, by the parent; children go on with their own."""
    host = Host(layers=1, rounds=4, dims=(256, 257))
    asked = Asked(ranges=((0, 9),))
    run = record(tmp_path, "-er", "0,9", host=host, more=["--processes", "3", "--fork", "after"])
    expected = {}
    for pid, device in run.devices.items():
        first_round = 0 if pid == run.pid else 1
        expected.update(Recording(host, asked, pid, device, first_round=first_round).files())
    assert len(run.devices) == 3
    wrong = differences(run.files(), expected)
    assert not wrong, "\n".join(wrong[:10])
    assert_tensors_counted(run, expected)


def test_children_forked_while_threads_record(tmp_path):
    host = Host(layers=1, rounds=4, dims=(64, 65))
    asked = Asked(ranges=((0, 9),))
    more = ["--processes", "4", "--threads", "4", "--fork", "during"]
    run = record(tmp_path, "-er", "0,9", host=host, more=more)
    expected = {}
    for pid, device in run.devices.items():
        suffixes = [f"T{i}" for i in range(4)] if pid == run.pid else ["C"]
        recordings, _ = thread_recordings(run, host, asked, pid, device, suffixes)
        for recording in recordings:
            expected.update(recording.files())
    assert len(run.devices) == 4
    wrong = differences(run.files(), expected)
    assert not wrong, "\n".join(wrong[:10])


def test_a_program_that_replaces_itself(tmp_path):
    assert_recorded(record(tmp_path, more=["--exec"]))


class Mount:
    """A small file system of its own, or a skipped test where mounting is not allowed."""

    def __init__(self, folder, options):
        self.folder = folder
        folder.mkdir()
        if os.geteuid() != 0:
            pytest.skip("only root can mount a file system")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")

    def __enter__(self):
        return self.folder

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)


def test_a_full_disk(tmp_path):
    host = Host(layers=1, rounds=2, dims=(1024, 1024))  # 2 MiB a tensor, more than 100 MiB in all
    with Mount(tmp_path / "small", "size=64m") as small:
        run = record(tmp_path, host=host, out=small)
        assert run.process.stderr.count("ait probe:") == 1
        assert os.strerror(28) in run.process.stderr
        tensors = assert_whole(run, [Recording(host, Asked(), run.pid)])
        assert temporary_files(run.out) == []
        assert_counts_are_true(run, tensors)
        counts = run.manifest["tensors"]
        assert counts["failed"] > 0
        assert counts["announced"] == counts["written"] + counts["failed"]
        assert sum(map(len, tensors.values())) > 40 << 20
        assert run.manifest["complete"] is False
        assert f"{counts['failed']} tensors" in run.process.stdout


def test_a_disk_that_is_full_from_the_start(tmp_path):
    with Mount(tmp_path / "small", "size=256k") as small:
        (small / "filler").write_bytes(bytes((256 << 10) - 4096))
        with (small / "rest").open("wb", buffering=0) as rest:
            try:
                while rest.write(bytes(512)):
                    pass
            except OSError:
                pass
        run = record(tmp_path, "--json", host=Host(layers=1), out=small)
        because = json.loads(run.process.stdout)["incomplete_because"]
        assert os.strerror(28) in " ".join(because)
        assert "libatb" not in " ".join(because)


def test_a_process_that_may_write_nothing_is_known_all_the_same(tmp_path):
    (tmp_path / "run.sh").write_text(f"ulimit -f 0\nexec {host_program()} --layers 1\n")
    run = Run(run_to_the_end(dump_command("sh run.sh", out="out"), cwd=tmp_path), tmp_path / "out")
    assert run.process.returncode == 0
    (why,) = run.manifest["incomplete_because"]
    assert f"process {run.pid} called the probe" in why and "File too large" in why


def test_a_disk_that_becomes_read_only(tmp_path):
    """After the launcher has looked at it: here the command itself remounts it."""
    with Mount(tmp_path / "disk", "size=8m") as disk:
        script = tmp_path / "run.sh"
        script.write_text(f"mount -o remount,ro {disk} && {host_program()} --rounds 1\n")
        command = dump_command(f"sh {script}", "--type", "tensor", "op", "cpu_profiling", out=disk)
        process = run_to_the_end(command, cwd=tmp_path)
        assert process.returncode == 0, process.stderr
        assert "ends" in process.stdout
        assert process.stderr.count("ait probe: cannot") == 1
        assert os.strerror(30) in process.stderr
        assert not any(is_tensor(path) for path in read_tree(disk / "ait_dump"))
        assert f"{disk}/ait_dump cannot be written to: {os.strerror(30)}" in process.stdout
        assert "libatb" not in process.stdout


def test_an_output_that_cannot_be_written(ait, tmp_path):
    with Mount(tmp_path / "disk", "size=1m,ro") as disk:
        process = ait("llm", "dump", "--exec", "touch ran", "-o", disk)
        assert process.returncode == 2
        assert os.strerror(30) in process.stderr
        assert not (tmp_path / "ran").exists()
