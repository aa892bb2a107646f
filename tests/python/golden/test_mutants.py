"""Every operation with a golden catches at least three wrong kernels, and the documents name them."""

import importlib
import pathlib

import pytest

pytest.importorskip("torch")

from golden_oracle import golden
from mutants import MUTANTS, tried

HERE = pathlib.Path(__file__).resolve().parent
for path in sorted(HERE.glob("test_*.py")):
    if path.stem != "test_mutants":
        importlib.import_module(path.stem)

# Operations of which no three wrong kernels can be caught, and why.
EXCEPTIONS = {"SendOperation": "it has no output"}


@pytest.mark.parametrize("operation", sorted(MUTANTS))
def test_wrong_kernels_are_caught(operation):
    trial = tried(operation)
    assert len(set(trial.caught_names)) == len(trial.caught_names) >= 3


def test_every_operation_has_wrong_kernels():
    assert set(MUTANTS) | set(EXCEPTIONS) == set(golden.operations())
    assert not set(MUTANTS) & set(EXCEPTIONS)
