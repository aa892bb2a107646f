"""`ait llm errcheck`: the report of overflows, and what stays where there are none."""

import json
import os

import pytest
from atb_host import read_tree
from conftest import PROGRAM, error_line
from dump_run import host_program, run_to_the_end

LINEAR = "LinearOperation_2_2_0"
ATTENTION = "SelfAttentionOperation_3_1"


def errcheck(tmp_path, *words, more=(), status=0, out="out", abi=1, **options):
    command = " ".join(map(str, [host_program(abi), *more]))
    place = [] if out is None else ["-o", out]
    program = [PROGRAM, "llm", "errcheck", "--exec", command, *place, *words]
    process = run_to_the_end(program, cwd=tmp_path, **options)
    assert process.returncode == status, process.stdout + process.stderr
    return process


def pid_of(process):
    return process.stdout.split()[1]


def overflows(*places):
    return [word for place in places for word in ("--overflow", place)]


@pytest.mark.parametrize("abi", [0, 1])
@pytest.mark.parametrize("words", [[], ["--type", "overflow"]], ids=["default", "overflow"])
def test_each_overflow_is_a_line(tmp_path, words, abi):
    places = [f"{LINEAR}:0:0", f"{ATTENTION}:0:1", "DecodeLayer_4:0:0", "ElewiseOperation_4_3:1:0"]
    more = ["--rounds", "3", *overflows(*places)]
    process = errcheck(tmp_path, *words, more=more, abi=abi)
    # A graph has no kernels, and is not reported; the third round is the second of the decode layers.
    assert read_tree(tmp_path) == {
        f"out/ait_overflow_res_{pid_of(process)}.txt": (
            f"Overflow detected! Operator name: {LINEAR}:MatMulKernel\n"
            f"Overflow detected! Operator name: {ATTENTION}:UnpadKernel\n"
            "Overflow detected! Operator name: ElewiseOperation_4_3:AddF16Kernel\n"
        ).encode()
    }
    for name in (LINEAR, ATTENTION, f"ait_overflow_res_{pid_of(process)}.txt"):
        assert name in process.stdout
    assert oct((tmp_path / f"out/ait_overflow_res_{pid_of(process)}.txt").stat().st_mode & 0o777) == "0o640"


def test_without_overflow_there_is_no_file(tmp_path):
    process = errcheck(tmp_path)
    assert "No overflow" in process.stdout
    assert list(tmp_path.iterdir()) == [], "a folder that stays empty is not left behind"


def test_an_output_folder_that_was_there_stays(tmp_path):
    (tmp_path / "out").mkdir()
    errcheck(tmp_path)
    assert (tmp_path / "out").is_dir() and read_tree(tmp_path) == {}


def test_without_exit_the_command_goes_on(tmp_path):
    more = overflows(f"{LINEAR}:0:0", f"{ATTENTION}:0:0")
    process = errcheck(tmp_path, more=more)
    (report,) = (tmp_path / "out").iterdir()
    assert report.read_text().count("\n") == 2
    assert "ends" in process.stdout


def test_exit_stops_the_command_at_the_first(tmp_path):
    more = overflows(f"{LINEAR}:0:0", f"{ATTENTION}:0:0")
    process = errcheck(tmp_path, "--exit", more=more, status=4)
    line = f"Overflow detected! Operator name: {LINEAR}:MatMulKernel\n".encode()
    assert read_tree(tmp_path) == {f"out/ait_overflow_res_{pid_of(process)}.txt": line}


def test_exit_changes_nothing_without_overflow(tmp_path):
    errcheck(tmp_path, "--exit")
    assert read_tree(tmp_path) == {}


def test_the_current_folder_is_the_default(tmp_path):
    process = errcheck(tmp_path, more=overflows(f"{LINEAR}:0:0"), out=None)
    assert [path.name for path in tmp_path.iterdir()] == [f"ait_overflow_res_{pid_of(process)}.txt"]


def test_each_process_has_its_own_report(tmp_path):
    process = errcheck(tmp_path, more=["--processes", "3", *overflows(f"{LINEAR}:0:0")])
    pids = [line.split()[1] for line in process.stdout.splitlines() if " device " in line]
    line = f"Overflow detected! Operator name: {LINEAR}:MatMulKernel\n".encode()
    assert read_tree(tmp_path / "out") == {f"ait_overflow_res_{pid}.txt": line for pid in pids}
    assert len(pids) == 3


def test_the_status_is_the_commands(tmp_path):
    errcheck(tmp_path, more=["--status", "9"], status=9)
    errcheck(tmp_path, more=["--end", "abort", *overflows(f"{LINEAR}:0:0")], status=134)
    (report,) = (tmp_path / "out").iterdir()
    assert report.read_text().endswith("MatMulKernel\n")


def test_nothing_is_recorded_meanwhile(tmp_path):
    """Settings of a dump that happen to be in the environment have no effect."""
    foreign = {"ATB_DUMP_TYPE": "tensor|op|layer", "ATB_SAVE_TENSOR": "1", "ATB_SAVE_TENSOR_RANGE": "0,9"}
    errcheck(tmp_path, env={**os.environ, **foreign, "ATB_OUTPUT_DIR": f"{tmp_path}/"})
    assert read_tree(tmp_path) == {}


def test_the_documented_variables(tmp_path):
    process = run_to_the_end([PROGRAM, "llm", "errcheck", "--exec", "env", "-o", "out", "--exit"], cwd=tmp_path)
    lines = process.stdout.splitlines()
    for line in ("ATB_CHECK_TYPE=1", f"ATB_OUTPUT_DIR={tmp_path}/out", "ATB_EXIT=1"):
        assert line in lines
    assert not any(line.startswith(("ATB_DUMP_TYPE=", "ATB_SAVE_")) for line in lines)


def test_a_command_without_the_library_proves_nothing(ait):
    process = ait("llm", "errcheck", "--exec", "true")
    assert process.returncode == 0
    assert "No overflow" not in process.stdout
    assert "libatb" in process.stdout


@pytest.mark.parametrize(
    "words",
    [[], ["--exec", " "], ["--exec", "true", "--type", "memory"], ["--exec", "a > b"], ["--exec", "true", "-l", "x"]],
    ids=" ".join,
)
def test_wrong_usage(ait, words):
    error_line(ait("llm", "errcheck", *words))


def test_json(tmp_path):
    process = errcheck(tmp_path, "--json", more=overflows(f"{LINEAR}:0:0"))
    document = json.loads(process.stdout)
    assert document["overflows"] == 1
    (result,) = document["results"]
    assert result["operators"] == [{"name": f"{LINEAR}:MatMulKernel", "overflows": 1}]
