"""Who was who in a parallel job: what manifests say of hosts and ranks, and what a comparison makes of it."""

import csv
import json
import os
import socket

import numpy as np
import pytest
from conftest import atb_bin
from dump_run import dump_command, host_program, record, run_to_the_end

LAUNCHERS = {
    "torchrun": ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    "mpich": ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    "slurm": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
}


def bare_environment():
    variables = {name for each in LAUNCHERS.values() for name in each}
    return {name: value for name, value in os.environ.items() if name not in variables}


def place(entry):
    return [entry[key] for key in ("host", "rank", "local_rank", "world_size")]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_rank_of_a_launcher_is_recorded(tmp_path, launcher):
    """`mpirun ait llm dump …`: every rank has a launcher of its own."""
    environment = bare_environment() | dict(zip(LAUNCHERS[launcher], ["13", "5", "16"]))
    manifest = record(tmp_path, env=environment).manifest
    expected = [socket.gethostname(), 13, 5, 16]
    assert place(manifest) == expected
    assert [place(process) for process in manifest["processes"]] == [expected]


def test_ranks_below_one_launcher_are_told_apart(tmp_path):
    """`ait llm dump --exec "torchrun …"`, inside a Slurm job."""
    command = "; ".join(f"RANK={rank} LOCAL_RANK={rank % 2} WORLD_SIZE=3 {host_program()}" for rank in range(3))
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\n{command}\n")
    environment = bare_environment() | dict(zip(LAUNCHERS["slurm"], ["0", "0", "1"]))
    done = run_to_the_end(dump_command(f"sh {script}", out="out"), cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "out/ait_dump/manifest.json").read_text())
    assert place(manifest)[1:] == [0, 0, 1]
    places = sorted(place(process)[1:] for process in manifest["processes"])
    assert places == [[0, 0, 3], [1, 1, 3], [2, 0, 3]]


def test_nobody_says_who_a_process_is(tmp_path):
    environment = bare_environment() | {"RANK": "first", "SLURM_PROCID": ""}
    manifest = record(tmp_path, env=environment).manifest
    assert place(manifest) == [socket.gethostname(), None, None, None]


def write_rank(root, folder, numbers):
    path = root / "tensors" / folder / "0/0_LinearOperation/after"
    path.mkdir(parents=True)
    (path / "outtensor0.bin").write_bytes(atb_bin(numbers.astype(np.float32), 0))


def test_processes_of_two_hosts_with_one_number_are_two_ranks(ait, tmp_path):
    """Both have device 0 and wrote to one folder: without the manifest, one would be taken for a later run."""
    draw = np.random.default_rng(0)
    numbers = draw.standard_normal((2, 4, 8))
    for side, factor in (("golden", 1), ("mine", 1.01)):
        root = tmp_path / side / "ait_dump"
        for folder, each in (("0_77", numbers[0]), ("0_77_1", numbers[1])):
            write_rank(root, folder, each * factor)
        for stem, host, name, rank in (("manifest", "a", "77", 0), ("manifest_20250102_030405", "b", "77_1", 1)):
            entry = {"name": name, "pid": 77, "host": host, "rank": rank, "local_rank": 0, "world_size": 2}
            (root / f"{stem}.json").write_text(json.dumps({"complete": True, "processes": [entry]}))
    done = ait("llm", "compare", "-gp", "golden", "-mp", "mine", "-o", "out")
    assert done.returncode == 0 and "later run" not in done.stderr, done.stderr
    (report,) = (tmp_path / "out").glob("*.csv")
    with report.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["data_id"].split("@")[1] for row in rows] == ["0", "1"]
    assert all(row["cmp_fail_reason"] == "" for row in rows)
