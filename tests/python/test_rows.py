"""compare_runs, compare on paths, and open_rows: the rows of `ait llm compare`, one after the other."""

import os
from pathlib import Path

import ait_llm
import numpy as np
import pytest
import torch
from ait_llm import _native
from kinds_of_runs import checkpoints, command, dumps, folders, mapping, statistics

METRICS = [
    "cosine_similarity",
    "max_relative_error",
    "mean_relative_error",
    "max_absolute_error",
    "mean_absolute_error",
    "kl_divergence",
    "relative_euclidean_distance",
]


RUNS = [folders, checkpoints, mapping, dumps, statistics]


@pytest.fixture(scope="module", params=RUNS, ids=lambda make: make.__name__)
def runs(request, tmp_path_factory):
    """Golden path and mine; not to be written to."""
    torch.manual_seed(0)
    return request.param(tmp_path_factory.mktemp(request.param.__name__))


def csv_text(column, value):
    """As the csv spells a value."""
    if value is None:
        return ""
    if isinstance(value, float):
        if "cosine" in column:
            text = f"{value:.10f}".rstrip("0")
            return text + "0" if text.endswith(".") else text
        return _native.number_text(value)
    return str(value)


def texts(rows, extended):
    return [{name: csv_text(name, value) for name, value in row.as_dict(extended).items()} for row in rows]


def without_verdicts(rows):
    return [{name: text for name, text in row.items() if not name.startswith("verdict")} for row in rows]


def facts(thing):
    """Everything that an object of the extension says of itself."""
    if isinstance(thing, list):
        return [facts(each) for each in thing]
    if type(thing).__module__ != "ait_llm._native":
        return repr(thing)  # NaN equals NaN
    names = [name for name in dir(thing) if not name.startswith("_") and not callable(getattr(thing, name))]
    return {name: facts(getattr(thing, name)) for name in names}


def test_rows_are_those_of_the_commands_report(runs):
    found = ait_llm.compare_runs(*runs)
    assert texts(found, extended=False) == command(*runs)[0]


def test_extended_rows_are_those_of_the_commands_report(runs):
    found = ait_llm.compare_runs(*runs, rows=True)
    wanted, _, _ = command(*runs, "--extended")
    # A verdict is made of all rows of a token; who takes them one by one gets none.
    assert without_verdicts(texts(found, extended=True)) == without_verdicts(wanted)
    assert len(wanted[0]) > len(next(iter(ait_llm.compare_runs(*runs))).as_dict())


@pytest.mark.parametrize("compat", ["msit", "ait"])
def test_the_old_tools_definitions_are_those_of_the_command(runs, compat):
    found = ait_llm.compare_runs(*runs, metric_compat=compat)
    assert texts(found, extended=False) == command(*runs, "--metric-compat", compat)[0]


def test_the_store_of_a_report_has_the_same_rows(runs):
    live = list(ait_llm.compare_runs(*runs, rows=True))
    store = ait_llm.open_rows(command(*runs, "--extended")[2])
    assert len(store) == len(live) and store.is_complete
    assert [facts(row) for row in store] == [facts(row) for row in live]


def test_rows_are_the_same_for_any_number_of_threads_and_each_time(runs):
    found = ait_llm.compare_runs(*runs, threads=1)
    once = [facts(row) for row in found]
    assert [facts(row) for row in found] == once
    assert [facts(row) for row in ait_llm.compare_runs(*runs, threads=8)] == once


def test_compare_takes_what_the_command_takes(runs):
    found = ait_llm.compare(*runs)
    assert isinstance(found, ait_llm.Rows)
    assert [facts(row) for row in found] == [facts(row) for row in ait_llm.compare_runs(*runs)]


def test_metrics_of_a_row_are_those_of_its_comparison_or_none(runs):
    measured = 0
    for row in ait_llm.compare_runs(*runs):
        values = [getattr(row, name) for name in METRICS]
        assert [row.as_dict()[name] for name in METRICS] == values
        if None in values:
            assert values == [None] * len(METRICS)
            assert row.reason
        else:
            measured += 1
            assert [getattr(row.comparison, name) for name in METRICS] == values
    assert measured > 0 or "statistics" in str(runs[0])


# What a row says.


def by_id(rows):
    return {row.data_id: row for row in rows}


def test_a_row_says_who_was_compared_and_what_was_found(tmp_path):
    golden, my = folders(tmp_path)
    rows = by_id(ait_llm.compare_runs(golden, my))
    row = rows["t3.npy"]
    assert (row.token, row.phase, row.certainty, row.reason) == ("0", None, "certain", "")
    assert (row.subject.name, row.subject.tensor, row.subject.member, row.subject.rank) == ("t3.npy", "", "", "")
    assert (row.subject.first_column, row.subject.layer) == (None, None)
    assert str(row.subject) == row.data_id == "t3.npy"
    assert row.golden.paths == [str(golden / "t3.npy")] and row.actual.paths == [str(my / "t3.pth")]
    assert (row.golden.dtype, row.golden.shape, row.golden.kept) == ("float32", (4, 64), "bytes")
    assert row.golden.statistics.elements == 256
    assert row.mean_relative_error == pytest.approx(0.5, rel=1e-6)
    assert not row.golden.is_missing and row.distance_at_least is None

    lone = rows["t4.npy"]
    assert (lone.reason, lone.certainty, lone.comparison) == ("no counterpart in my-path.", None, None)
    assert lone.actual.is_missing and lone.actual.records == [] and lone.actual.dtype is None
    assert lone.actual.shape is None and lone.actual.statistics is None
    assert lone.golden.statistics.elements == 256, "the side that is there keeps its values"

    part = rows["sub/many.safetensors:b"]
    assert (part.subject.name, part.subject.member) == ("sub/many.safetensors", "b")
    assert [record.member for record in part.golden.records] == ["b"]
    assert rows["sub/many.safetensors:only_golden"].actual.is_missing


def test_a_row_of_a_dump_says_where_it_comes_from(tmp_path):
    golden, my = dumps(tmp_path)
    rows = ait_llm.compare_runs(golden, my)
    row = next(row for row in rows if row.golden.operation == "root.blocks.1.fc" and row.token == "1")
    assert (row.golden.type, row.actual.type) == ("Linear", "Linear")
    assert row.golden.ranks == row.actual.ranks == [row.golden.records[0].rank]
    assert row.subject.layer == 1 and row.certainty == "certain"
    (record,) = row.golden.records
    assert (record.operation, record.type, record.round) == ("root.blocks.1.fc", "Linear", "1")
    assert record.is_input == ("input" in Path(record.path).name)
    assert not record.is_kernel and record.call == 0
    assert Path(record.path).is_file()


def test_statistics_bound_the_distance_from_below(tmp_path):
    rows = list(ait_llm.compare_runs(*statistics(tmp_path)))
    bounded = [row for row in rows if row.distance_at_least is not None]
    assert bounded and all(row.actual.kept == "statistics" and row.golden.kept == "bytes" for row in bounded)
    assert all("statistics only" in row.reason for row in bounded)


def test_texts_show_what_matters(tmp_path):
    rows = ait_llm.compare_runs(*folders(tmp_path))
    assert repr(rows) == f"Rows(two folders, by file name: {len(rows)} pairs)"
    found = by_id(rows)
    assert repr(found["t0.npy"]) == (
        "Row(token='0', data_id='t0.npy', cosine_similarity=1.0, relative_euclidean_distance=0.0)"
    )
    assert repr(found["t4.npy"]) == "Row(token='0', data_id='t4.npy', reason='no counterpart in my-path.')"
    assert repr(found["t0.npy"].subject) == "Subject('t0.npy')"
    assert repr(found["t0.npy"].golden) == f"RowSide('{tmp_path}/golden/t0.npy', dtype=float32, shape=[4, 64])"
    assert repr(found["t4.npy"].actual) == "RowSide(missing)"
    assert repr(found["t0.npy"].golden.records) == f"[Record(path='{tmp_path}/golden/t0.npy')]"


def test_parts_of_a_row_outlive_it(tmp_path):
    side = next(iter(ait_llm.compare_runs(*checkpoints(tmp_path)))).actual
    assert side.dtype == "float32" and side.records[0].member == "lm_head"


def test_names_that_are_no_utf8_come_back_as_they_are(tmp_path):
    for side in (b"golden", b"my"):
        folder = os.fsencode(tmp_path) + b"/" + side
        os.mkdir(folder)
        try:
            ait_llm.save(folder + b"/\xff.npy", np.arange(3))
        except OSError:
            pytest.skip("this file system wants UTF-8")
    (row,) = ait_llm.compare_runs(os.fsencode(tmp_path) + b"/golden", os.fsencode(tmp_path) + b"/my")
    assert os.fsencode(row.golden.paths[0]).endswith(b"golden/\xff.npy")
    assert os.fsencode(row.as_dict()["data_id"]) == b"\xff.npy"
    assert "\\udcff.npy" in repr(row)


# What pairing found.


def test_pairing_says_what_the_command_says(tmp_path):
    golden, my = dumps(tmp_path)
    rows = ait_llm.compare_runs(golden, my)
    wanted = command(golden, my)[1]["pairing"]
    found = rows.pairing
    for side, name in ((found.golden, "golden"), (found.actual, "my")):
        assert wanted[name] == {
            "operations": side.operations,
            "paired": side.paired,
            "same_as_paired": side.copies,
            "unpaired": side.alone,
        }
        assert f"{side.paired} of {side.operations}" in repr(side)
    assert (found.certain, found.likely, found.method) == (wanted["certain"], wanted["likely"], wanted["method"])
    assert (found.golden_layers, found.actual_layers) == (wanted["golden_layers"], wanted["my_layers"])
    assert wanted["tokens"] == [
        {
            "token": each.token,
            "golden_folder": each.golden_round,
            "my_folder": each.actual_round,
            "phase": "prefill" if each.is_prefill else "decode",
        }
        for each in found.tokens
    ]
    assert len(wanted["tokens"]) == 2
    assert found.notes == wanted["notes"]
    assert (rows.kind, rows.problems) == ("dumps", [])


def test_what_could_not_be_read_is_a_problem_and_not_an_end(tmp_path):
    golden, _ = checkpoints(tmp_path)
    (tmp_path / "sharded").mkdir()
    (tmp_path / "sharded/a.safetensors").write_bytes(golden.read_bytes())
    (tmp_path / "sharded/b.safetensors").write_bytes(golden.read_bytes()[:50])
    rows = ait_llm.compare_runs(golden, tmp_path / "sharded")
    assert rows.kind == "checkpoints" and rows.pairing is None
    (problem,) = rows.problems
    assert isinstance(problem, ait_llm.CorruptError)
    assert problem.path == str(tmp_path / "sharded/b.safetensors") and problem.path in str(problem)
    assert all(row.comparison.identical for row in rows) and len(rows) == 12


@pytest.mark.parametrize("tokens", [{0: 1}, "0:1"], ids=repr)
def test_tokens_are_aligned_as_the_map_says(tmp_path, tokens):
    golden, my = dumps(tmp_path)
    found = ait_llm.compare(golden, my, token_map=tokens)
    assert [(each.golden_round, each.actual_round) for each in found.pairing.tokens] == [("0", "1")]
    assert "tokens are aligned as --token-map says" in found.pairing.notes
    assert texts(found, extended=False) == command(golden, my, "--token-map", "0:1")[0]


def test_types_are_paired_as_the_file_says(tmp_path):
    golden, my = dumps(tmp_path)
    (tmp_path / "types.json").write_text('{"Linear": "Linear"}')
    found = ait_llm.compare(golden, my, mapping_file=tmp_path / "types.json", rows=True)
    wanted = command(golden, my, "-mf", tmp_path / "types.json", "--extended")[0]
    assert without_verdicts(texts(found, extended=True)) == without_verdicts(wanted)
    with pytest.raises(ait_llm.NotFoundError):
        ait_llm.compare(golden, my, mapping_file=tmp_path / "nowhere.json")


# Which of the two results compare gives, and what it refuses.


def test_two_files_of_one_tensor_are_measured_as_ever(tmp_path):
    ait_llm.save(tmp_path / "a.npy", np.arange(3.0))
    ait_llm.save(tmp_path / "b.safetensors", {"only": np.arange(3.0)})
    for golden, actual in [("a.npy", "a.npy"), ("a.npy", "b.safetensors"), ("b.safetensors", "b.safetensors")]:
        result = ait_llm.compare(
            tmp_path / golden, str(tmp_path / actual), thresholds=[0.1], relative="plain", rows=True
        )
        assert isinstance(result, ait_llm.Comparison)
        assert result.identical and result.passes == [3] and result.row.rows == 1


def test_a_path_and_an_array_are_two_tensors(tmp_path):
    _, my = checkpoints(tmp_path)
    with pytest.raises(ait_llm.AitError, match="holds 12 tensors"):
        ait_llm.compare(my, np.zeros(3))
    with pytest.raises(ait_llm.AitError, match="folder"):
        ait_llm.compare(tmp_path, np.zeros(3))
    with pytest.raises(TypeError):
        ait_llm.compare(np.zeros(3))


@pytest.mark.parametrize(
    "option",
    [
        {"kl": False},
        {"relative": "plain"},
        {"epsilon": 0.1},
        {"thresholds": [0.1]},
        {"non_finite": "withhold"},
        {"mask_absolute": True},
    ],
    ids=repr,
)
def test_options_of_two_tensors_are_refused_for_runs(tmp_path, option):
    with pytest.raises(ait_llm.AitError, match=f"^{next(iter(option))}: for two tensors"):
        ait_llm.compare(*checkpoints(tmp_path), **option)


@pytest.mark.parametrize("option", [{"token_map": "0:1"}, {"metric_compat": "msit"}], ids=repr)
def test_options_of_runs_are_refused_for_two_tensors(tmp_path, option):
    ait_llm.save(tmp_path / "a.npy", np.arange(3.0))
    for golden in (tmp_path / "a.npy", np.arange(3.0)):
        with pytest.raises(ait_llm.AitError, match=f"^{next(iter(option))}: for runs"):
            ait_llm.compare(golden, tmp_path / "a.npy", **option)


def test_what_cannot_be_paired_is_an_error_at_once(tmp_path):
    golden, my = folders(tmp_path)
    with pytest.raises(FileNotFoundError) as missing:
        ait_llm.compare_runs(golden, tmp_path / "nowhere")
    assert missing.value.path == str(tmp_path / "nowhere")
    with pytest.raises(ait_llm.AitError, match="second path"):
        ait_llm.compare_runs(golden)
    with pytest.raises(ait_llm.AitError, match="is a folder"):
        ait_llm.compare_runs(golden, my / "t0.bin")
    with pytest.raises(ait_llm.AitError, match="give them to compare"):
        ait_llm.compare_runs(golden / "t0.npy", my / "t0.bin")
    with pytest.raises(ait_llm.AitError, match="metric_compat"):
        ait_llm.compare_runs(golden, my, metric_compat="odd")
    with pytest.raises(ait_llm.AitError, match="token-map"):
        ait_llm.compare_runs(golden, my, token_map="odd")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ait_llm.AitError, match="nothing to compare"):
        ait_llm.compare_runs(tmp_path / "empty", tmp_path / "empty")


def test_my_files_of_a_mapping_may_have_moved(tmp_path):
    golden, _ = mapping(tmp_path)
    (tmp_path / "moved").mkdir()
    for file in tmp_path.glob("*.bin"):
        file.rename(tmp_path / "moved" / file.name)
    found = ait_llm.compare_runs(golden, tmp_path / "moved")
    assert found.kind == "mapping"
    assert [row.comparison is not None for row in found] == [
        (row.token, row.subject.name) != ("1", "2") for row in found
    ]
