"""`ait llm compare` on dumps of TorchAir of which `ait llm convert --to-stats` has left statistics."""

import csv
import pathlib
import re

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("google.protobuf")

from ge_run import GraphRun, block, ge_operations, inputs_like, write_fx, write_ge

KINDS = ["min_max", "stat"]
ENDS = {"min_max": ("_min_max.npy", "_min_max.npz"), "stat": ("_stat.csv",)}
REASONS = {
    "min_max": "only minimum and maximum are compared.",
    "stat": "holds statistics only: max, min, mean and norm are given.",
}


@pytest.fixture(scope="module")
def ranks():
    """A graph on each of two ranks, executed twice."""
    return [[GraphRun(block, inputs_like(rank + 1, 2, 5), seed=rank)] for rank in range(2)]


@pytest.fixture
def convert(ait):
    def run_it(folder, kind):
        done = ait("llm", "convert", "--to-stats", folder, "--info", kind, "--delete-source")
        assert done.returncode == 0 and "not converted" not in done.stdout, done.stderr
        left = [path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".txt"]
        assert left and all(name.endswith(ENDS[kind]) for name in left)
        return folder

    return run_it


@pytest.fixture
def compared(ait, tmp_path):
    """Rows of a comparison, and what it said."""

    def run_it(golden, mine, out):
        done = ait("llm", "compare", "-gp", golden, "-mp", mine, "-o", out, "--extended")
        assert done.returncode == 0, done.stderr
        (path,) = pathlib.Path(tmp_path / out).glob("*.csv")
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file)), done

    return run_it


def is_pair(row):
    return row["golden_data_path"] and row["my_data_path"]


def distance(row):
    """What the row says at least of how far apart the data are; nothing where it does not know."""
    if row["max_absolute_error"]:
        return float(row["max_absolute_error"])
    found = re.search(r"distance is at least ([^ ]+)\.(?: |$)", row["cmp_fail_reason"])
    return float(found[1]) if found else None


def pairs_of(rows):
    return sorted(
        (row["token_id"], row["data_id"], row["golden_operation"], row["golden_rank"]) for row in rows if is_pair(row)
    )


def plant(ranks):
    """An error in what one matrix product of the second rank gives in the last execution."""
    operation = next(o for o in ge_operations(ranks[1][0].tokens[1]) if o.node is not None and o.node.name == "mm_5")
    right = operation.results[0].numpy()
    wrong = right.copy()
    wrong[0, 3] = right.max() + 50

    def change(_name, array):
        return wrong if array.shape == wrong.shape and np.array_equal(array, right) else array

    return operation, change


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("converted", ["golden", "mine", "both"])
def test_ge_against_fx(convert, compared, tmp_path, ranks, kind, converted):
    operation, change = plant(ranks)
    golden = write_fx(ranks, tmp_path / "fx")
    mine = write_ge(ranks, tmp_path / "ge", fused=False, change=change, copies=False)
    whole, _ = compared(golden, mine, "whole")
    for folder in {"golden": [golden], "mine": [mine], "both": [golden, mine]}[converted]:
        convert(folder, kind)
    rows, done = compared(golden, mine, "converted")
    assert done.stderr.count("was converted to statistics") == (2 if converted == "both" else 1)
    assert pairs_of(rows) == pairs_of(whole)
    pairs = [row for row in rows if is_pair(row)]
    assert len(pairs) > 100 and all(REASONS[kind] in row["cmp_fail_reason"] for row in pairs)
    name = f"{operation.name}/output_0@1"
    assert [(row["token_id"], row["data_id"]) for row in pairs if distance(row)] == [("1", name)]
    assert name in done.stdout.split("\n")[1] and done.stdout.startswith("Fault: token 1, ")


@pytest.mark.parametrize("kind", KINDS)
def test_fx_against_fx(convert, compared, tmp_path, ranks, kind):
    golden = write_fx(ranks, tmp_path / "golden")

    def change(key, array):
        return array * 3 if key.startswith("mm_5-") else array

    mine = convert(write_fx(ranks, tmp_path / "mine", change=change), kind)
    rows, _ = compared(golden, mine, "out")
    pairs = [row for row in rows if is_pair(row)]
    assert all(REASONS[kind] in row["cmp_fail_reason"] for row in pairs)
    assert {row["data_id"].split("@")[0] for row in pairs if distance(row)} == {"mm_5/output_0"}
    assert sum(bool(distance(row)) for row in pairs) == 4  # two ranks, two tokens


@pytest.mark.parametrize("kind", KINDS)
def test_fused_against_unfused(convert, compared, tmp_path, ranks, kind):
    golden = write_ge(ranks, tmp_path / "golden", fused=False)
    mine = write_ge(ranks, tmp_path / "mine", change=lambda n, a: a * 2 if n.startswith("Mul_5TanhMul_6Add_2/") else a)
    whole, _ = compared(golden, mine, "whole")
    rows, _ = compared(convert(golden, kind), convert(mine, kind), "converted")
    assert pairs_of(rows) == pairs_of(whole)
    wrong = {row["data_id"].split("@")[0] for row in rows if is_pair(row) and distance(row)}
    assert wrong == {"Mul_5TanhMul_6Add_2/output_0"}


def test_numbers_of_the_fuller_form_are_those_of_the_data(ait, convert, tmp_path, ranks):
    golden, mine = write_fx(ranks, tmp_path / "golden"), write_fx(ranks, tmp_path / "mine")
    convert(mine, "stat")
    done = ait("llm", "compare", "-gp", golden, "-mp", mine, "-o", "out", "--stats")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "out").glob("*.csv")
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if is_pair(row)]
    assert len(rows) > 100
    for row in rows:
        for column, text in row.items():
            if column.endswith("_stat_relative_error"):
                assert float(text) < 1e-6, (row["data_id"], column)


def test_a_run_of_which_a_part_was_converted(convert, compared, tmp_path, ranks):
    """As a converter leaves it that was ended while the dump went on."""
    golden, mine = write_fx(ranks, tmp_path / "fx"), write_ge(ranks, tmp_path / "ge", fused=False)
    (folder,) = (mine / "worldsize2_global_rank0").glob("*/0/graph_1/1/1")
    convert(folder, "min_max")
    rows, _ = compared(golden, mine, "out")
    pairs = [row for row in rows if is_pair(row)]
    short = {(row["my_rank"], row["token_id"]) for row in pairs if REASONS["min_max"] in row["cmp_fail_reason"]}
    assert short == {("0", "1")}
    assert all(distance(row) == 0 for row in pairs)


def test_different_statistics_are_not_held_against_each_other(convert, compared, tmp_path, ranks):
    golden = convert(write_fx(ranks, tmp_path / "golden"), "min_max")
    mine = convert(write_fx(ranks, tmp_path / "mine"), "stat")
    rows, _ = compared(golden, mine, "out")
    for row in rows:
        assert "the two sides hold different kinds of statistics" in row["cmp_fail_reason"]
        assert row["max_absolute_error"] == ""


def test_large_integers_are_exact(ait, convert, compared, tmp_path):
    """Slices end at the largest integer there is."""
    for name in ("golden", "mine"):
        folder = tmp_path / name / "worldsize1_global_rank0/graph_1/0"
        folder.mkdir(parents=True)
        array = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min + 1])
        np.save(folder / "slice_1-aten.slice.Tensor.OUTPUT.0.20240125031118787351.npy", array)
    ((row,), _) = compared(tmp_path / "golden", convert(tmp_path / "mine", "min_max"), "out")
    assert row["max_absolute_error"] in ("0", "0.0")
    assert row["cmp_fail_reason"] == REASONS["min_max"]
