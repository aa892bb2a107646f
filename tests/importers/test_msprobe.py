"""The same model recorded by msprobe and by us."""

import pathlib
import re
import subprocess
import sys

import pytest
import record_msprobe
import torch
from ait_llm import DumpConfig, register_hook

RECORD = pathlib.Path(record_msprobe.__file__)


@pytest.fixture(scope="module")
def msprobe(tmp_path_factory):
    """Records each kind of dump once, in a process of its own: msprobe changes torch for good."""
    known = {}

    def record(level="L0", task="tensor", summary="statistics", faulty=""):
        key = (level, task, summary, faulty)
        if key not in known:
            folder = tmp_path_factory.mktemp("msprobe") / "dump"
            command = [sys.executable, RECORD, folder, *key]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
            known[key] = folder
        return known[key]

    return record


def ours(folder, faulty=False, **options):
    model = record_msprobe.make_model(faulty)
    with register_hook(model, DumpConfig(str(folder), token_range=[0, 1, 2], **options)):
        record_msprobe.generate(model)
    return folder / "ait_dump"


def identical_of(process):
    found = re.search(r"(\d+) pairs: (\d+) identical, (\d+) differ, (\d+) could not be compared", process.stdout)
    assert found, process.stdout + process.stderr
    return tuple(map(int, found.groups()))


def test_everything_pairs_and_is_identical(msprobe, tmp_path, compare):
    process = compare("-o", "out", golden=ours(tmp_path / "ours"), my=msprobe())
    pairs, identical, _, _ = identical_of(process)
    assert pairs == identical > 100, process.stdout
    assert "my side: 31 of 31 operations paired" in process.stdout and "0 only in my side" in process.stdout


def test_functions_do_not_hide_the_modules(msprobe, tmp_path, compare):
    process = compare("-o", "out", golden=ours(tmp_path / "ours"), my=msprobe("mix"))
    assert "Fault" not in process.stdout and "Broken" not in process.stdout, process.stdout
    pairs, identical, _, _ = identical_of(process)
    assert pairs == identical > 100, process.stdout


def test_a_planted_fault_is_found_the_same_way(msprobe, tmp_path, compare):
    golden = ours(tmp_path / "golden")
    first = compare("-o", "out", golden=golden, my=ours(tmp_path / "faulty", True)).stdout.splitlines()[:2]
    second = compare("-o", "out", golden=golden, my=msprobe(faulty="1")).stdout.splitlines()[:2]
    assert "root.model.layers.1.mlp.up_proj" in first[0] and first == second


@pytest.mark.parametrize("mode", [0, 1])
def test_statistics_agree_with_tensors_and_statistics_of_ours(msprobe, tmp_path, compare, mode):
    process = compare(
        "-o", "out", golden=ours(tmp_path / "ours", dump_statistics_mode=mode), my=msprobe(task="statistics")
    )
    assert "No fault" in process.stdout, process.stdout


def test_checksums_agree_with_tensors_of_ours(msprobe, tmp_path, compare):
    process = compare("-o", "out", golden=ours(tmp_path / "ours"), my=msprobe(task="statistics", summary="md5"))
    pairs, identical, _, _ = identical_of(process)
    assert pairs == identical > 90, process.stdout


def test_the_files_are_what_torch_loads(msprobe, tmp_path, ait):
    dump = msprobe()
    assert ait("llm", "convert", dump, "new", "--to", "dump").returncode == 0
    (data,) = dump.glob("step0/proc*/dump_tensor_data")
    (new,) = (tmp_path / "new" / "ait_dump" / "torch_tensors").iterdir()
    for round_ in range(3):
        theirs = torch.load(data / f"Module.model.layers.1.mlp.down_proj.Linear.forward.{round_}.output.0.pt")
        assert torch.equal(torch.load(new / str(round_) / "root.model.layers.1.mlp.down_proj" / "output.pth"), theirs)


@pytest.mark.parametrize("levels", [("L0", "mix"), ("mix", "L0"), ("mix", "mix")])
def test_functions_are_not_taken_for_modules(tmp_path, compare, levels):
    """The gradient of a function comes near that of its module; a module that is called twice is no experts'."""
    for side, level in zip(("golden", "my"), levels):
        command = [sys.executable, RECORD.with_name("record_toy.py"), tmp_path / side, level]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    process = compare("-o", "out", golden="golden", my="my")
    assert "Fault" not in process.stdout, process.stdout
    assert "L0" not in levels or "16 of 16 operations paired" in process.stdout, process.stdout
    pairs, identical, _, _ = identical_of(process)
    assert pairs == identical > 40, process.stdout
