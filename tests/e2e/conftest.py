"""Fixtures for running the built program as a person would."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

# Tests leave nothing in the cache of whoever runs them; those of the cache name one of their own.
os.environ.setdefault("AIT_CACHE", "0")

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("AIT_BIN", REPOSITORY / "build" / "bin" / "ait")).resolve()


def atb_bin(array, dtype_code):
    """A file as the acceleration library dumps it."""
    dims = ",".join(str(size) for size in array.shape)
    header = (
        f"$Version=1.0\n$Object.Count=1\n$Object.Length={array.nbytes}\nformat=2\n"
        f"dtype={dtype_code}\ndims={dims}\n$Object.data=0,{array.nbytes}\n$End=1\n"
    )
    return header.encode() + array.tobytes()


def sample_pair():
    """Two small tensors with one planted difference, the same on every machine."""
    golden = (np.arange(24, dtype=np.float32) / 8 - 1.5).reshape(2, 3, 4)
    actual = golden.copy()
    actual[1, 0, 2] += 0.5
    return golden, actual


@pytest.fixture(scope="session")
def program():
    if not PROGRAM.exists():
        pytest.exit(f"{PROGRAM} is not built; run `make build` or set AIT_BIN", returncode=2)
    return PROGRAM


@pytest.fixture
def ait(program, tmp_path):
    """Runs the program in the test's own folder and returns the finished process."""

    def run(*arguments, **options):
        options.setdefault("cwd", tmp_path)
        options.setdefault("timeout", 60)
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, **options)

    return run


@pytest.fixture
def pair(tmp_path):
    """golden.npy and actual.npy in the test's folder; returns both arrays."""
    golden, actual = sample_pair()
    np.save(tmp_path / "golden.npy", golden)
    np.save(tmp_path / "actual.npy", actual)
    return golden, actual


@pytest.fixture
def compare(ait):
    """`ait llm compare -gp golden.npy -mp actual.npy` with more arguments."""

    def run(*arguments, golden="golden.npy", my="actual.npy", **options):
        return ait("llm", "compare", "-gp", golden, "-mp", my, *arguments, **options)

    return run


def error_line(process):
    """The one line of a refused run; the line itself is returned."""
    assert process.returncode == 2, process.stderr
    lines = process.stderr.splitlines()
    assert len(lines) == 1, process.stderr
    assert lines[0].startswith("ait: error: ")
    return lines[0]
