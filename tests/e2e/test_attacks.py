"""Every hostile file of tests/attacks, given to the built program: one clear line, cheaply, and nothing is run."""

import csv
import json
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import error_line

ATTACKS = pathlib.Path(__file__).resolve().parents[1] / "attacks"
MARKER = "ait_attack_was_run"  # what the live attacks would leave behind
MAX_CPU_SECONDS = 1.0  # processor time: the wall clock would also measure the neighbours
MAX_MEMORY_KIB = 200 * 1024
PATIENCE_SECONDS = 30

# A fresh, small process starts the program: the peak memory of a child counts that of the process it was forked
# from, and a test runner can be larger than the limit.
LAUNCHER = """
import json, resource, subprocess, sys
process = subprocess.run(sys.argv[1:], capture_output=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "status": process.returncode,
    "stdout": process.stdout.decode(errors="replace"),
    "stderr": process.stderr.decode(errors="replace"),
    "cpu_seconds": usage.ru_utime + usage.ru_stime,
    "memory_kib": usage.ru_maxrss,
}))
"""

# What a careless reader does, to prove that the live attacks are more than harmless bytes.
CARELESS_READER = """
import pickle, sys, zipfile
path = sys.argv[1]
with open(path, "rb") as file:
    if zipfile.is_zipfile(path):
        file = zipfile.ZipFile(path).open("archive/data.pkl")
    elif file.read(6) == b"\\x93NUMPY":
        file.seek(10 + int.from_bytes(file.read(4)[2:], "little"))
    else:
        file.seek(0)
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, identity):
            return None
        def find_class(self, module, name):
            stand_in = module.startswith(("torch", "collections"))
            return (lambda *arguments: {}) if stand_in else super().find_class(module, name)
    try:
        while True:
            Unpickler(file).load()
    except Exception:
        pass
"""


DESCRIBED = "tensor has no data"
"""What reading the data of a tensor fails with that its file only describes."""


def manifest():
    """The attacks on readers of tensors; those on rows and plans are replayed by tests/attacks/attacks_test.cpp."""
    with open(ATTACKS / "manifest.tsv", newline="") as file:
        attacks = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [attack for attack in attacks if not attack["file"].startswith(("rows/", "plan/", "part/"))]


def named(attacks):
    return [pytest.param(attack, id=attack["file"]) for attack in attacks]


@pytest.fixture
def show(program, tmp_path):
    """`ait show` on an attack, with what it cost."""

    def run(attack):
        options = [] if attack["options"] == "-" else shlex.split(attack["options"])
        command = [program, "show", ATTACKS / attack["file"], *options]
        launched = subprocess.run(
            [sys.executable, "-I", "-S", "-c", LAUNCHER, *map(str, command)],
            cwd=tmp_path,
            capture_output=True,
            check=True,
            timeout=PATIENCE_SECONDS,
        )
        return json.loads(launched.stdout)

    return run


def is_described(attack):
    """Its data cannot be loaded, but type and shape are there to be shown."""
    return attack["words"].startswith("tensor has no data")


@pytest.mark.parametrize("attack", named(a for a in manifest() if is_described(a)))
def test_a_tensor_without_data_is_shown_cheaply(show, tmp_path, attack):
    process = show(attack)
    assert process["status"] == 0 and process["stderr"] == "", process
    assert "not kept: the file holds" in process["stdout"]
    assert all(character.isprintable() for character in process["stdout"].replace("\n", ""))
    assert process["cpu_seconds"] < MAX_CPU_SECONDS and process["memory_kib"] < MAX_MEMORY_KIB
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("attack", named(a for a in manifest() if not is_described(a)))
def test_an_attack_fails_clearly_and_cheaply(show, tmp_path, attack):
    process = show(attack)
    lines = process["stderr"].splitlines()
    path = str(ATTACKS / attack["file"])
    if attack["words"].startswith(DESCRIBED):  # what the file says in place of the data is shown
        assert process["status"] == 0 and lines == [], process
        assert "not kept: the file holds" in process["stdout"]
    else:
        assert process["status"] == (2 if attack["outcome"] == "error" else 0), process
        # One for each tensor that cannot be read.
        assert lines and (len(lines) == 1 or attack["outcome"] == "listed"), process["stderr"]
        beginning = "ait: error: " if attack["outcome"] == "error" else "ait: warning: "
        assert all(line.startswith(beginning) for line in lines)
        if attack["code"] != "Usage" or attack["options"] == "-":
            assert path in lines[0]
        assert attack["words"] in lines[0].replace(path, "")
        assert process["stdout"] == "" if attack["outcome"] == "error" else "unreadable" in process["stdout"]
    assert all(character.isprintable() for character in process["stderr"] + process["stdout"] if character != "\n")
    assert process["cpu_seconds"] < MAX_CPU_SECONDS
    assert process["memory_kib"] < MAX_MEMORY_KIB
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("attack", named(a for a in manifest() if a["live"] == "yes"))
def test_a_live_attack_would_run_its_command_elsewhere(tmp_path, attack):
    command = [sys.executable, "-I", "-S", "-c", CARELESS_READER, ATTACKS / attack["file"]]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
    assert (tmp_path / MARKER).exists()


def test_a_hostile_plan_or_part_is_refused_in_one_line(ait, tmp_path):
    for path in sorted((ATTACKS / "plan").iterdir()):
        assert path.name in error_line(ait("llm", "compare", "--from-plan", path, "--part", "2/2", "-o", "out"))
    (tmp_path / "parts").mkdir()
    shutil.copy(ATTACKS.parents[1] / "fuzz/corpus/fuzz_plan/seed_full", tmp_path / "parts/plan.ait")
    for path in sorted((ATTACKS / "part").iterdir()):
        shutil.copy(path, tmp_path / "parts/part_1_of_1.part")
        assert "part_1_of_1.part" in error_line(ait("llm", "compare", "--merge", "parts"))


def test_a_store_of_rows_is_no_file_of_tensors(ait):
    for path in sorted((ATTACKS / "rows").iterdir()):
        assert "not a tensor file that ait knows" in error_line(ait("show", path))
