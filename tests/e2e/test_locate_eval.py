"""A sample of `make eval`: faults that must be found, healthy runs that must not be accused."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from conftest import PROGRAM

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

SAMPLE = [
    "fault:transposed/0",
    "fault:rope-pairing/1",
    "fault:missing-residual/0",
    "fault:scale/0",
    "fault:epsilon/0",
    "fault:one-row/1",
    "fault:overflow/0",
    "fault:engine-epsilon/1",
    "healthy:fp32-bf16/1",
    "healthy:40-layers/1",
    "healthy:eager-sdpa/0",
    "healthy:near-ties/0",
    "healthy:w8a8/0",
]


def evaluate(*words, program=PROGRAM):
    command = [sys.executable, REPOSITORY / "eval" / "run.py", "--workers", "1", *words]
    environment = {**os.environ, "AIT_BIN": str(program)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)


def verdicts(process):
    """{case: verdict} from lines such as `wrong operation fault:scale/0: found …`."""
    lines = [line for line in process.stdout.splitlines() if "fault:" in line or "healthy:" in line]
    return {line[16:].split(": ", 1)[0]: line[:15].strip() for line in lines}


def test_faults_are_found_and_healthy_runs_are_not_accused(program):
    process = evaluate(*(word for case in SAMPLE for word in ("--case", case)))
    found = verdicts(process)
    assert list(found) == SAMPLE, process.stdout + process.stderr
    # A cause may be missed: the whole suite counts how often.
    wrong = {case: verdict for case, verdict in found.items() if verdict not in ("right", "wrong cause")}
    assert not wrong, process.stdout


def test_a_tool_that_always_accuses_the_same_operation_fails(tmp_path):
    finding = {"verdict": "fault", "operation": "a", "data_id": "a/output", "causes": []}
    suspicion = {**finding, "verdict": "suspicious"}
    stand_in = tmp_path / "ait"
    stand_in.write_text(f"#!/bin/sh\necho '{json.dumps({'findings': [suspicion, finding]})}'\n")
    stand_in.chmod(0o755)
    process = evaluate("--case", "fault:scale/0", "--case", "healthy:fp32-bf16/1", program=stand_in)
    assert verdicts(process) == {"fault:scale/0": "wrong operation", "healthy:fp32-bf16/1": "accused"}, process.stdout
    assert process.returncode == 1
    assert "right operation in 0.0% of 1, promised 95%" in process.stdout
    assert "not accused in 0.0% of 1, promised 95%" in process.stdout
