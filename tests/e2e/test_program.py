"""What all commands share: help, statuses, output that fails, signals."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import numpy as np
import pytest
from conftest import error_line

COMMANDS = [
    *(
        [],
        ["llm"],
        ["llm", "compare"],
        ["llm", "dump"],
        ["llm", "errcheck"],
        ["llm", "convert"],
        ["show"],
        ["demo"],
        ["doctor"],
    ),
    *(["api"], ["api", "dump"], ["api", "check"], ["api", "overflow"]),
]
NOBODY = 65534


def test_version(ait):
    process = ait("--version")
    assert process.returncode == 0
    assert process.stdout.startswith("ait ")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_goes_to_stdout(ait, command):
    process = ait(*command, "--help")
    assert process.returncode == 0
    assert process.stderr == ""
    for heading in ("Usage: ait", "Examples:", "Exit status:"):
        assert heading in process.stdout
    assert max(map(len, process.stdout.splitlines())) <= 100


@pytest.mark.parametrize("command", [[], ["llm"]], ids=["none", "llm"])
def test_a_missing_command_is_asked_for(ait, command):
    process = ait(*command)
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.startswith("ait: error: say what to do")
    assert "compare" in process.stderr


def test_msit_is_the_same_program(program, tmp_path):
    (tmp_path / "msit").symlink_to(program)
    process = subprocess.run([tmp_path / "msit", "llm", "compare", "--help"], capture_output=True, text=True)
    assert "Usage: msit llm compare" in process.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["llm", "nonsense"],
        ["llm", "compare"],
        ["llm", "compare", "-gp", "golden.npy"],
        ["llm", "compare", "-gp", "golden.npy", "-mp", "actual.npy", "--nonsense"],
        ["llm", "compare", "-gp", "golden.npy", "-mp", "actual.npy", "--threads", "x"],
        ["llm", "compare", "-gp", "golden.npy", "-mp", "actual.npy", "--metric-compat", "x"],
        ["llm", "compare", "-gp", "golden.npy", "-mp", "actual.npy", "--fail-on", "x"],
        ["llm", "compare", "-gp", "golden.npy", "-mp", "actual.npy", "-l", "x"],
        ["show"],
        ["show", "golden.npy", "--values", "-1"],
        ["doctor", "extra"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_with_a_hint(ait, pair, arguments):
    assert "--help`" in error_line(ait(*arguments))


@pytest.mark.parametrize(
    "golden, my, words",
    [
        ("missing.npy", "actual.npy", "missing.npy: no such file"),
        ("golden.npy", "missing.npy", "missing.npy: no such file"),
        ("folder", "actual.npy", "folder"),
        ("golden.npy", "folder", "folder"),
        ("folder", "folder", "nothing to compare"),
        ("golden.npy", "text.npy", "text.npy"),
        ("golden.npy", "empty.npy", "empty"),
        ("golden.npy", "cut.npy", "cut.npy"),
        ("golden.npy", "fifo", "is a FIFO where a file is expected"),
    ],
)
def test_what_cannot_be_compared_is_one_line(compare, pair, tmp_path, golden, my, words):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.npy").write_text("this is no tensor\n")
    (tmp_path / "empty.npy").touch()
    (tmp_path / "cut.npy").write_bytes((tmp_path / "golden.npy").read_bytes()[:-1])
    os.mkfifo(tmp_path / "fifo")
    process = compare("-o", "out", golden=golden, my=my)
    assert words in error_line(process)
    assert process.stdout == ""
    assert not (tmp_path / "out").exists()


@pytest.fixture
def unprivileged(program):
    """Runs the program as a user whom file modes bind, in a folder of its own."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ait_e2e_"))
    folder.chmod(0o755)
    prefix = []
    command = program
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root without setpriv")
        prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        command = shutil.copy(program, folder / "ait")  # its own folder may be closed to nobody

    def run(*arguments):
        return subprocess.run([*prefix, command, *arguments], cwd=folder, capture_output=True, text=True)

    run.folder = folder
    yield run
    for path in folder.iterdir():
        path.chmod(0o700)
    shutil.rmtree(folder)


def test_a_file_without_permission_is_one_line(unprivileged):
    path = unprivileged.folder / "secret.npy"
    np.save(path, np.zeros(3))
    path.chmod(0)
    assert "Permission denied" in error_line(unprivileged("show", "secret.npy"))


def test_a_folder_without_permission_is_known_before_the_work(unprivileged):
    np.save(unprivileged.folder / "x.npy", np.zeros(3))
    closed = unprivileged.folder / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for output in ("closed", "closed/deeper"):
        process = unprivileged("llm", "compare", "-gp", "x.npy", "-mp", "x.npy", "-o", output)
        assert "cannot be written: Permission denied" in error_line(process)
        assert process.stdout == ""
    assert list(closed.iterdir()) == []


def test_an_output_that_is_a_file_is_refused(compare, pair):
    assert "is not a folder" in error_line(compare("-o", "golden.npy"))


def test_a_report_that_does_not_fit_is_not_left_half_written(program, pair, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    process = subprocess.run(
        [program, "llm", "compare", "-gp", "golden.npy", "-mp", "actual.npy", "-o", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    assert "cannot be written: File too large" in error_line(process)
    assert process.stdout.startswith("metric")  # what was measured is still told
    assert list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_leaves_no_report(program, pair, tmp_path):
    script = (
        "mkdir out && mount -t tmpfs -o size=4k none out && head -c 4096 /dev/zero > out/filler && "
        '"$0" llm compare -gp golden.npy -mp actual.npy -o out; echo "status $?"; ls -A out'
    )
    process = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, program], cwd=tmp_path, capture_output=True, text=True
    )
    if "status" not in process.stdout or "mount" in process.stderr or "unshare" in process.stderr:
        pytest.skip("no right to mount a small disk here")
    assert "No space left on device" in process.stderr
    assert process.stdout.endswith("status 2\nfiller\n")


@pytest.mark.parametrize("arguments", [["show", "golden.npy"], ["--help"], ["doctor", "--json"]], ids=" ".join)
def test_output_that_cannot_be_written_is_an_error(program, pair, tmp_path, arguments):
    with open("/dev/full", "w") as full:
        process = subprocess.run([program, *arguments], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert "standard output cannot be written: No space left on device" in error_line(process)


def test_a_reader_that_goes_away_is_no_error(program, pair, tmp_path):
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.run([program, "show", "golden.npy"], cwd=tmp_path, stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    assert process.returncode == 0
    assert process.stderr == b""


@pytest.fixture
def large_pair(tmp_path):
    """Two sparse files whose comparison takes long enough to be interrupted."""
    elements = 1 << 29
    for name in ("golden.npy", "actual.npy"):
        with open(tmp_path / name, "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (elements,)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + 4 * elements)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminate"])
def test_an_interrupted_comparison_leaves_nothing(program, large_pair, tmp_path, number):
    process = subprocess.Popen(
        [program, "llm", "compare", "-gp", "golden.npy", "-mp", "actual.npy", "-o", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out = tmp_path / "out"
    deadline = time.monotonic() + 30
    while not (out.exists() and any(out.iterdir())):
        assert process.poll() is None and time.monotonic() < deadline, "no work was begun"
        time.sleep(0.002)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert stdout == ""
    assert "stopped" in stderr
    assert list(out.iterdir()) == []


def test_no_colour_where_there_is_no_terminal(compare, pair):
    process = compare()
    assert "\033" not in process.stdout + process.stderr


def test_a_file_that_shrinks_while_it_is_read_is_one_clear_line(program, tmp_path):
    path = tmp_path / "shrinking.npy"
    elements = 2**29
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f2", "fortran_order": False, "shape": (elements,)})
        os.truncate(file.fileno(), file.tell() + 2 * elements)
    process = subprocess.Popen([program, "show", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while f"{path}" not in open(f"/proc/{process.pid}/maps").read():
        time.sleep(0.001)
    os.truncate(path, 4096)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert stderr == "ait: error: a file became shorter while it was read; is it still being written?\n"
