"""`ait api check` and `ait api overflow`. What stands in the document is in test_seed_004.py."""

import csv
import signal
import subprocess
import sys
import time

import pytest

RECORDS = """
import sys, torch
from ait_llm.api_check import dump
dump.config.update_config(dump_path=sys.argv[1])
dump.set_dump_switch("ON")
torch.manual_seed(0)
x = torch.rand(40, 8, requires_grad=True)
weight = torch.rand(6, 8, requires_grad=True)
y = torch.nn.functional.linear(x, weight)
y = torch.relu(y - 2).mul(3)
torch.cat([y, y]).sum().backward()
dump.set_dump_switch("OFF")
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A recording under the names of the documents' commands."""
    folder = tmp_path_factory.mktemp("records")
    subprocess.run([sys.executable, "-c", RECORDS, folder], check=True, capture_output=True, timeout=300)
    for kind in ("forward", "backward"):
        next(folder.glob(f"{kind}_info_*.json")).rename(folder / f"{kind}_info_0.json")
    return folder


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def home():
    code = "import ait_compat.att_home; print(ait_compat.att_home.FOLDER)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("ait-compat is not installed")
    return done.stdout.strip()


def test_the_program_does_the_same(ait, records, tmp_path):
    arguments = ("-forward", records / "forward_info_0.json", "-backward", records / "backward_info_0.json")
    done = ait("api", "check", *arguments, "--device", "cpu", "-o", "out", "--fail-on", "rounding", timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(rows(tmp_path / "out" / "accuracy_checking_result.csv")) > 8
    again = ait("api", "check", *arguments, "-o", "out", timeout=300)
    assert again.returncode == 2 and "already exists, please remove it first" in again.stderr


def test_several_devices_give_the_same_reports_as_one(ait, records, tmp_path):
    arguments = ("-forward", records / "forward_info_0.json", "-backward", records / "backward_info_0.json")
    for devices, folder in (("cpu", "one"), ("cpu,cpu", "two")):
        assert ait("api", "check", *arguments, "--device", devices, "-o", folder, timeout=300).returncode == 0
    for name in ("accuracy_checking_result.csv", "accuracy_checking_details.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_run_that_was_cut_short_goes_on(ait, records, tmp_path):
    arguments = ("-forward", records / "forward_info_0.json", "-backward", records / "backward_info_0.json", "-o", ".")
    assert ait("api", "check", *arguments, timeout=300).returncode == 0
    result, details = tmp_path / "accuracy_checking_result.csv", tmp_path / "accuracy_checking_details.csv"
    whole = [path.read_bytes() for path in (result, details)]
    # Three calls are there, the details of a fourth, and half a line.
    lines = whole[0].split(b"\r\n")
    result.write_bytes(b"\r\n".join(lines[:4]) + b"\r\nTorch*")
    done = ait("api", "check", *arguments, "--resume", timeout=300)
    assert done.returncode == 0, done.stderr
    assert [path.read_bytes() for path in (result, details)] == whole


@pytest.mark.parametrize("arguments", [["-forward", "missing.json"], ["-forward", "bad.json"], []])
def test_what_cannot_be_read_is_one_line(ait, arguments, tmp_path):
    (tmp_path / "bad.json").write_text("[]")
    done = ait("api", "check", *arguments, timeout=300)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.csv"))


def test_an_unknown_device_is_refused(ait, records, tmp_path):
    done = ait("api", "check", "-forward", records / "forward_info_0.json", "--device", "tpu", timeout=300)
    assert done.returncode == 2 and "there is no device 'tpu'" in done.stderr
    assert not list(tmp_path.glob("*.csv"))


ODD = """
import os, signal, sys, time, torch
from ait_llm.api_check import check_command, checking
from ait_llm.api_check.devices import Device

class Odd(Device):
    def call(self, function, args, kwargs):
        if function is torch.relu:
            os.kill(os.getpid(), signal.SIGSEGV)
        if function is torch.cat:
            time.sleep(600)
        if function is torch.Tensor.mul:
            return super().call(function, args, kwargs) * 1.01
        return super().call(function, args, kwargs)

folder = sys.argv[1]
options = checking.Options(folder + "/forward_info_0.json", folder + "/backward_info_0.json", sys.argv[2],
                           save_error_data=True, error_data_path=sys.argv[2], time_limit_seconds=30.0)
run = checking.Run(options, lambda name: Odd())
run.run()
print(check_command.summary(run, "an odd device"))
"""


def test_calls_that_crash_or_hang_cost_themselves_and_failing_ones_are_kept(ait, records, tmp_path):
    done = subprocess.run([sys.executable, "-c", ODD, records, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = {row["API name"]: row for row in rows(tmp_path / "accuracy_checking_result.csv")}
    assert found["Torch*relu*0"]["Message"] == "the process that ran it was killed by signal 11 (SIGSEGV)"
    assert found["Torch*cat*0"]["Message"] == "it took longer than 30 s"
    assert found["Tensor*mul*0"]["Forward Test Success"] == found["Tensor*mul*0"]["Forward Within Rounding"] == "False"
    assert found["Functional*linear*0"]["Forward Within Rounding"] == "True"
    reproducer = tmp_path / "ut_error_data" / "Tensor.mul.0.json"
    assert f"ait api check -forward {reproducer}" in done.stdout
    # On a sound device the kept data pass.
    again = ait("api", "check", "-forward", reproducer, "--device", "cpu", "-o", "again", timeout=300)
    assert again.returncode == 0, again.stderr
    (row,) = rows(tmp_path / "again" / "accuracy_checking_result.csv")
    assert (row["API name"], row["Forward Within Rounding"]) == ("Tensor*mul*0", "True")


def test_an_interrupted_run_leaves_what_is_finished(records, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ODD, records, tmp_path], stderr=subprocess.PIPE)
    result = tmp_path / "accuracy_checking_result.csv"
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not (result.exists() and result.read_bytes().count(b"\r\n") > 2):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    found = result.read_bytes()
    assert found.endswith(b"\r\n") and found.count(b"\r\n") > 2


OVERFLOW = """
import torch, ait_llm
model = torch.nn.Linear(2, 2)
ait_llm.overflow.watch(model, overflow_nums=1)
torch.tensor([1.0, 200.0]).exp()
"""


def test_an_overflow_is_kept_and_told_apart(ait, tmp_path):
    done = subprocess.run([sys.executable, "-c", OVERFLOW], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 1 and "ValueError: [overflow 1 times]: dump file is saved in" in done.stderr
    (forward,) = tmp_path.glob("forward_info_*.json")
    told = ait("api", "overflow", "-forward", forward, "--device", "cpu", timeout=300)
    assert told.returncode == 0, told.stderr
    assert "The Tensor_exp_0_forward overflow is a normal overflow." in told.stderr
    (row,) = rows(tmp_path / "overflow_check_result.csv")
    assert (row["Verdict"], row["CPU overflow"], row["Device overflow"]) == ("normal", "True", "True")
    script = f"{home()}/debug/accuracy_tools/api_accuracy_checker/run_ut/run_overflow_check.py"
    (tmp_path / "again").mkdir()
    again = subprocess.run(
        [sys.executable, script, "-forward", forward],
        capture_output=True,
        text=True,
        cwd=tmp_path / "again",
        timeout=300,
    )
    assert again.returncode == 0 and "is a normal overflow." in again.stderr


@pytest.mark.slow
def test_what_a_compiler_makes_is_checked(ait, records, tmp_path):
    arguments = ("-forward", records / "forward_info_0.json", "-backward", records / "backward_info_0.json")
    done = ait("api", "check", *arguments, "--device", "cpu", "--against", "inductor", timeout=1200)
    assert done.returncode == 0, done.stderr
    found = {row["API name"]: row for row in rows(tmp_path / "accuracy_checking_result.csv")}
    assert found["Functional*linear*0"]["Forward Within Rounding"] == "True"
    assert "what torch.compile makes" in done.stdout
