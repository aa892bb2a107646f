"""Every operation with a golden catches at least three wrong kernels, and docs/opcheck_operators.md names them.

`python tests/python/golden/test_mutants.py` writes their tables into that page.
"""

import importlib
import pathlib
import re

import pytest

pytest.importorskip("torch")

from golden_oracle import golden
from mutants import MUTANTS, tried

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs/opcheck_operators.md"
for path in sorted(HERE.glob("test_*.py")):
    if path.stem != "test_mutants":
        importlib.import_module(path.stem)

# Operations of which no wrong kernels can be caught, and why.
EXCEPTIONS = {"SendOperation": "it has no output"}
HEADING = "## Wrong kernels\n"


def short(operation):
    return f"`{operation.removesuffix('Operation')}`"


def tables():
    """The last section of the page."""
    trials = [tried(operation) for operation in sorted(MUTANTS, key=short)]
    lines = [
        HEADING,
        "These are written in the tests of each operation, and its golden does not take them for sound.\n",
    ]
    lines += ["| operation | caught |", "|---|---|"]
    lines += [f"| {short(trial.operation)} | {'; '.join(trial.caught_names)} |" for trial in trials]
    lines += [f"| {short(operation)} | none: {why} |" for operation, why in EXCEPTIONS.items()]
    lines += ["\nThese are wrong, or may be, and no bound can tell:\n", "| operation | not caught |", "|---|---|"]
    lines += [f"| {short(each.operation)} | {'; '.join(each.missed_names)} |" for each in trials if each.missed_names]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("operation", sorted(MUTANTS))
def test_wrong_kernels_are_caught(operation):
    names = tried(operation).caught_names
    assert len(set(names)) == len(names) >= 3


def test_every_operation_has_wrong_kernels():
    assert set(MUTANTS) | set(EXCEPTIONS) == set(golden.operations())
    assert not set(MUTANTS) & set(EXCEPTIONS)


def test_the_page_names_the_wrong_kernels():
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index(HEADING) :] == tables(), "run this file as a program to write the tables"


def test_the_page_lists_every_operation_once():
    text = PAGE.read_text(encoding="utf-8").split(HEADING)[0]
    families, rest = text.split("## Operations without a golden\n")
    listed = re.findall(r"^\| `(\w+)` \|", families, re.MULTILINE)
    assert sorted(f"{name}Operation" for name in listed) == sorted(golden.operations())
    without = re.findall(r"`(\w+)`", rest)
    assert without and not {f"{name}Operation" for name in without} & set(golden.operations())


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.split(HEADING)[0] + tables(), encoding="utf-8")
