"""The `.rows` file beside each report, read by a reader of its own and held against csv and JSON of the same run."""

import csv
import json
import math

import numpy as np
import pytest
from rows_file import METRICS, read_rows

COSINES = {"cosine_similarity", "worst_row_cosine", "estimated_cosine"}


def data_id(row):
    out = row["name"] + ("/" + row["tensor"] if row["tensor"] else "") + ("@" + row["rank"] if row["rank"] else "")
    if row["first_column"] is not None:
        out += f":{row['first_column']}"
    return out + (":" + row["member"] if row["member"] not in ("", out) else "")


# Texts of transforms, what is made of all rows together, and what follows from other columns.
UNTOLD = {
    "golden_transform",
    "my_transform",
    "verdict",
    "verdict_error",
    "verdict_expected",
    "verdict_reason",
    "my_headroom_fp16",
    "my_headroom_bf16",
    "my_headroom_fp8",
    "my_saturated",
    "my_flushed_to_zero",
}


def of_side(side):
    """Columns of one side, without the prefix golden_ or my_."""
    records, statistics = side["records"], side["statistics"]
    is_there = records and not side["lacks_member"]
    paths = [record["path"] + (":" + record["member"] if record["member"] else "") for record in records]
    first = records[0] if records else {"operation": "", "type": "", "rank": ""}
    ranks = [first["rank"]] + [record["rank"] for record in records if record["rank"] != first["rank"]]
    out = {
        "data_path": ";".join(paths) if is_there else "",
        "dtype": "torch." + side["dtype"] if side["dtype"] else None,
        "shape": side["shape"] if side["dtype"] else None,
        "operation": first["operation"],
        "op_type": first["type"],
        "rank": ";".join(ranks),
    }
    known = statistics if statistics and statistics["elements"] > 0 else None
    for column, key in [("max_value", "max"), ("min_value", "min"), ("mean_value", "mean"), ("l2norm", "l2norm")]:
        out[column] = known[key] if known else None
    if side["kept"] != "bytes":
        known = None
    out["nan"] = known["nan"] if known else None
    out["inf"] = known["positive_inf"] + known["negative_inf"] if known else None
    return out


def columns_of(row):
    """What the report's columns have to say, of the facts of a row. Texts of transforms have tests of their own."""
    out = {"token_id": row["token"], "data_id": data_id(row), "cmp_fail_reason": row["reason"]}
    for prefix in ("golden", "my"):
        out.update({f"{prefix}_{name}": value for name, value in of_side(row[prefix]).items()})
    comparison = row["comparison"]
    known = comparison or {}
    for name in ("zero_golden_mismatch", "non_finite_agree", "differing_elements", "elements", "identical"):
        out[name] = known.get(name)
    if known and (known["withheld"] or known["compared"] == 0):
        known = {}
    for name in [*METRICS, "worst_index", "worst_golden", "worst_my"]:
        out[name] = known.get(name)
    for name in ("worst_row", "worst_row_cosine", "kl_divergence_per_row_mean", "kl_divergence_per_row_max"):
        out[name] = (known.get("rows") or {}).get(name)
    estimate = row["estimate"] or {"distance": [None] * 3, "cosine": [None]}
    out["distance_at_least"] = row["distance_at_least"]
    out["estimated_distance"], _, out["estimated_distance_most"] = estimate["distance"]
    out["estimated_cosine"] = estimate["cosine"][0]
    out["pairing"] = row["certainty"] or ""
    out["pairing_reason"] = row["certainty_reason"]
    return out


def same_number(text, value, is_cosine):
    number = float(text)
    if math.isnan(value) or math.isinf(value):
        return str(number) == str(value)
    if is_cosine:
        return abs(number - value) <= 0.5000001e-10
    return np.float32(number) == np.float32(value)


def check_csv_cell(name, cell, value):
    if value is None or isinstance(value, (bool, str, list)):
        expected = "" if value is None else value if isinstance(value, str) else str(value)
        assert cell.removeprefix("'") == expected or cell == expected, name
    elif isinstance(value, int):
        assert cell == str(value), name
    else:
        assert same_number(cell, value, name in COSINES), (name, cell, value)


def check_json_value(name, found, value):
    if isinstance(value, float) and not math.isfinite(value):
        assert found == str(value), name
    else:
        assert found == value, name  # every digit


def check(folder, document, extended=True):
    """The csv, the rows and the JSON of a run; the rows are returned."""
    (report,) = folder.glob("*.csv")
    with report.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    rows = read_rows(report.with_suffix(".rows"))
    assert len(rows) == len(lines) > 0
    expected = [columns_of(row) for row in rows]
    for line, columns in zip(lines, expected):
        untold = {name for name in line if name not in columns}
        assert untold == (UNTOLD if extended else set())
        for name, cell in line.items():
            if name in columns:
                check_csv_cell(name, cell, columns[name])
    for line, row in zip(lines, rows):
        for side in ("golden", "my") if extended else ():
            transform = row[side]["transform"]
            is_plain = not transform["taken"] and not transform["heads_first"] and transform["join"] == "none"
            assert (line[f"{side}_transform"] == "") == is_plain
    shown = document.get("rows", document.get("worst"))
    by_name = {(columns["token_id"], columns["data_id"]): columns for columns in expected}
    for found in shown:
        columns = by_name[found["token_id"], found["data_id"]]
        for name, value in found.items():
            if name in columns:
                check_json_value(name, value, columns[name])
    if "summary" in document:
        summary = document["summary"]
        measured = [row["comparison"] for row in rows if row["comparison"]]
        assert summary["rows"] == len(rows)
        assert summary["identical"] == sum(each["identical"] for each in measured)
    return rows


def compare(ait, *arguments, out):
    process = ait("llm", "compare", *arguments, "-o", out, "--json")
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.mark.parametrize("extended", [True, False], ids=["extended", "plain"])
def test_a_single_pair_has_its_row(ait, pair, tmp_path, extended):
    more = ["--extended"] if extended else []
    document = compare(ait, "-gp", "golden.npy", "-mp", "actual.npy", *more, out="out")
    (row,) = check(tmp_path / "out", document, extended)
    golden, actual = (array.astype(np.float64) for array in pair)
    assert row["comparison"]["relative_euclidean_distance"] == pytest.approx(
        np.linalg.norm(actual - golden) / np.linalg.norm(golden), rel=1e-12
    )
    assert row["my"]["statistics"]["l2norm"] == pytest.approx(np.linalg.norm(actual), rel=1e-12)
    assert row["golden"]["records"][0]["path"] == "golden.npy"
    assert (row["comparison"]["rows"] is None) == (not extended)


def test_folders_with_every_kind_of_row(ait, tmp_path):
    """More than a block of rows: measured, identical, not finite, empty, of other shapes, damaged, alone, several."""
    random = np.random.default_rng(3)
    for side in ("golden", "my"):
        (tmp_path / side).mkdir()
    for i in range(300):
        array = random.standard_normal((3, 5)).astype([np.float32, np.float16, np.float64][i % 3])
        np.save(tmp_path / f"golden/layer_{i}.npy", array)
        np.save(tmp_path / f"my/layer_{i}.npy", array if i % 4 == 0 else array * 1.01)
    odd = {
        "nan": [1, np.nan],
        "inf": [1, np.inf],
        "empty": [],
        "zero": [0, 0],
        "all_nan": [np.nan, np.nan],
        "complex": [1 + 2j, 3j],
        "größer": [1e38, 1],
        "tiny": [1e-300, 1],
        "=formula": [1, 2],
    }
    for name, values in odd.items():
        np.save(tmp_path / f"golden/{name}.npy", np.array(values))
        np.save(tmp_path / f"my/{name}.npy", np.array([*values[:1], *(value + 1 for value in values[1:])]))
    np.save(tmp_path / "golden/shape.npy", np.ones(3))
    np.save(tmp_path / "my/shape.npy", np.ones(4))
    np.save(tmp_path / "golden/flat.npy", np.ones((2, 3)))
    np.save(tmp_path / "my/flat.npy", np.ones((3, 2)))
    np.save(tmp_path / "golden/alone.npy", np.ones(3))
    np.save(tmp_path / "my/lonely.npy", np.ones(3))
    (tmp_path / "golden/damaged.npy").write_bytes(b"\x93NUMPY\1\0")
    np.save(tmp_path / "my/damaged.npy", np.ones(3))
    np.savez(tmp_path / "golden/several.npz", a=np.ones(3), b=np.ones(2), golden_only=np.ones(1))
    np.savez(tmp_path / "my/several.npz", a=np.ones(3), b=np.zeros(2), my_only=np.ones(1))
    document = compare(ait, "-gp", "golden", "-mp", "my", "--extended", out="out")
    rows = check(tmp_path / "out", document)
    assert len(rows) > 300
    members = {row["member"]: row for row in rows if row["name"].startswith("several")}
    assert set(members) == {"a", "b", "golden_only", "my_only"}
    assert members["golden_only"]["my"]["lacks_member"] and not members["golden_only"]["golden"]["lacks_member"]
    (complex_row,) = [row for row in rows if row["name"].startswith("complex")]
    assert complex_row["golden"]["dtype"] == "complex128" and complex_row["comparison"]["elements"] == 4


def test_a_report_and_its_rows_go_by_one_name(ait, pair, tmp_path):
    compare(ait, "-gp", "golden.npy", "-mp", "actual.npy", out="out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert [name.rsplit(".", 1)[1] for name in names] == ["csv", "rows"]
    assert names[0].rsplit(".", 1)[0] == names[1].rsplit(".", 1)[0]
    assert oct((tmp_path / "out" / names[1]).stat().st_mode & 0o777) == "0o640"


@pytest.mark.parametrize(
    "library", [dict(), dict(ranks=2), dict(fused_qkv=True, fused_gate_up=True)], ids=["plain", "shards", "fused"]
)
def test_dumps_have_operations_layers_ranks_and_transforms(ait, tmp_path, library):
    pytest.importorskip("transformers")
    from pairing import Case

    case = Case(tmp_path, steps=1, **library)
    document = compare(ait, "-gp", case.golden, "-mp", case.mine, "--extended", out=case.folder / "out")
    rows = check(case.folder / "out", document)
    paired = [row for row in rows if row["golden"]["records"] and row["my"]["records"]]
    assert {row["phase"] for row in rows} == {"prefill", "decode"}
    assert {row["layer"] for row in paired} == {None, 0, 1}
    assert all(row["certainty"] for row in paired)
    for row in paired:
        record = row["my"]["records"][0]
        assert row["name"] == record["operation"] and record["direction"] == "output" and record["moment"] == "after"
        assert (row["layer"] is None) == ("layer" not in row["name"].lower())
    if library.get("ranks"):
        assert any(row["my"]["transform"]["join"] == "sum" and len(row["my"]["records"]) == 2 for row in rows)
        assert {row["rank"] for row in rows} >= {"", "0", "1"}
    if library.get("fused_qkv"):
        parts = [row for row in rows if row["first_column"]]
        assert parts and all(row["my"]["transform"]["taken"] > 0 for row in parts)


def test_rows_are_the_same_for_any_number_of_threads(ait, tmp_path):
    for side in ("golden", "my"):
        (tmp_path / side).mkdir()
        for i in range(40):
            np.save(tmp_path / side / f"{i}.npy", np.arange(100, dtype=np.float32) * (1 if side == "golden" else 1 + i))
    stores = set()
    for threads in (1, 2, 8):
        compare(ait, "-gp", "golden", "-mp", "my", "--threads", threads, out=f"out{threads}")
        (path,) = (tmp_path / f"out{threads}").glob("*.rows")
        rows, note, _ = path.read_bytes().partition(b'{\n  "tool"')  # which says when and by which command
        assert note
        stores.add(rows[:-12])  # its tag, length and checksum
    assert len(stores) == 1
