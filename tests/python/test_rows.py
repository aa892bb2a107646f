"""compare_runs, compare on paths, and open_rows: the rows of `ait llm compare`, one after the other."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import ait_llm
import numpy as np
import pytest
import torch
from ait_llm import DumpConfig, _native, register_hook
from ait_llm.dump.manual_dump import dump_data, flush
from hook_models import Model, X

PROGRAM = Path(sys.executable).with_name("ait")
METRICS = [
    "cosine_similarity",
    "max_relative_error",
    "mean_relative_error",
    "max_absolute_error",
    "mean_absolute_error",
    "kl_divergence",
    "relative_euclidean_distance",
]


# Runs of every kind, and what the command says of them.


def folders(root):
    """Several formats; a fault, a NaN, a missing, an extra and a corrupt file, and files of several tensors."""
    generator = np.random.default_rng(0)
    for side in ("golden", "my"):
        (root / side / "sub").mkdir(parents=True)
    for i in range(8):
        golden = generator.standard_normal((4, 64)).astype(np.float32)
        actual = golden * np.float32(1.5) if i == 3 else golden.copy()
        actual[0, 0] = np.nan if i == 5 else actual[0, 0]
        ait_llm.save(root / f"golden/t{i}.npy", golden)
        ait_llm.save(root / f"my/t{i}.{'pth' if i % 2 else 'bin'}", actual.astype(np.float16) if i == 6 else actual)
    (root / "golden/t7.npy").unlink()
    (root / "my/t4.bin").unlink()
    (root / "golden/broken.npy").write_bytes(b"\x93NUMPY\x01\x00")
    ait_llm.save(root / "my/broken.npy", np.arange(3))
    ait_llm.save(root / "golden/sub/many.safetensors", {"a": np.arange(4), "b": np.ones(3), "only_golden": np.ones(1)})
    ait_llm.save(root / "my/sub/many.safetensors", {"a": np.arange(4) + 1, "b": np.ones((1, 3))})
    return root / "golden", root / "my"


def checkpoints(root):
    weights = {f"model.layers.{i}.weight": torch.randn(8, 16) for i in range(12)}
    ait_llm.save(root / "model.safetensors", weights)
    weights["model.layers.2.weight"] = weights["model.layers.2.weight"] * 2
    del weights["model.layers.11.weight"]
    torch.save({**weights, "lm_head": torch.zeros(3)}, root / "state.pth")
    return root / "model.safetensors", root / "state.pth"


def mapping(root):
    for token in range(2):
        for data in (1, 10, 2):
            values = torch.arange(6.0).reshape(2, 3) * data + token
            if (token, data) != (1, 2):
                ait_llm.save(root / f"{token}_{data}.bin", values + (data == 10))
            dump_data(token, data, values, str(root / f"{token}_{data}.bin"), str(root))
    flush()
    (golden,) = root.glob("ait_dump/*")
    return golden, None


def recorded(root, side, scale=1.0, **config):
    torch.manual_seed(7)
    model = Model()
    with torch.no_grad():
        model.blocks[1].fc.weight *= scale
    with register_hook(model, DumpConfig(str(root / side), token_range=[0, 1], **config)):
        for _ in range(2):
            model(X)
    return root / side


def dumps(root):
    return recorded(root, "golden"), recorded(root, "my", scale=1.5)


def statistics(root):
    return recorded(root, "golden"), recorded(root, "my", scale=1.5, dump_statistics_mode=1)


RUNS = [folders, checkpoints, mapping, dumps, statistics]


@pytest.fixture(scope="module", params=RUNS, ids=lambda make: make.__name__)
def runs(request, tmp_path_factory):
    """Golden path and mine; not to be written to."""
    torch.manual_seed(0)
    return request.param(tmp_path_factory.mktemp(request.param.__name__))


def command(golden, actual, *options):
    """The csv of `ait llm compare` as dicts of text, its --json, and the path of its row store."""
    out = Path(golden).parent / f"out{len(list(Path(golden).parent.iterdir()))}"
    paths = ["-gp", golden, *(["-mp", actual] if actual else [])]
    done = subprocess.run(
        [PROGRAM, "llm", "compare", *paths, "-o", out, "--json", *options], capture_output=True, text=True, check=True
    )
    (report,) = out.glob("*.csv")
    with open(report, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file)), json.loads(done.stdout), report.with_suffix(".rows")


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
    assert texts(found, extended=True) == wanted
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
    assert texts(found, extended=True) == command(golden, my, "-mf", tmp_path / "types.json", "--extended")[0]
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


# Laziness: so many pairs, made of two files, that nobody waits for the last.


def repeated(root, pairs, elements=3):
    """A mapping that names two files again and again."""
    ait_llm.save(root / "golden.npy", np.linspace(1, 2, elements, dtype=np.float32))
    ait_llm.save(root / "my.npy", np.linspace(1, 3, elements, dtype=np.float32))
    entry = [str(root / "golden.npy"), str(root / "my.npy")]
    (root / "golden_tensor").mkdir()
    metadata = {str(i): {"0": entry} for i in range(pairs)}
    (root / "golden_tensor/metadata.json").write_text(json.dumps(metadata))
    return root


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Far too much to be measured to the end."""
    return repeated(tmp_path_factory.mktemp("many"), pairs=100_000, elements=2_000_000)


def threads():
    return set(os.listdir("/proc/self/task"))


# Threads of tests that ran earlier may end at any moment, so these tests look for new ones only.
# With threads=1 the library's own pool of threads, which stays, does not come into it.


def test_the_first_rows_come_before_the_rest_is_measured(many):
    rows = ait_llm.compare_runs(many, threads=1)
    before = threads()
    assert len(rows) == 100_000
    for number, row in enumerate(rows):
        assert row.subject.name == str(number) and row.max_absolute_error == 1.0
        assert len(threads() - before) == 1
        if number == 3:
            break
    assert not threads() - before, "leaving the loop ends the run"


def test_an_exception_in_the_loop_ends_the_run(many):
    def first_bad(rows):
        for row in rows:
            raise LookupError(row.data_id)

    before = threads()
    with pytest.raises(LookupError, match="^0$"):
        first_bad(ait_llm.compare_runs(many, threads=1))
    assert not threads() - before


def test_dropping_the_iterator_ends_the_run_and_the_next_one_starts_anew(many):
    rows = ait_llm.compare_runs(many, threads=1)
    before = threads()
    for _ in range(2):
        iterator = iter(rows)
        assert [next(iterator).data_id for _ in range(2)] == ["0", "1"]
        del iterator
        assert not threads() - before
    iterator = iter(rows)
    del rows
    assert next(iterator).data_id == "0", "it does not need what it came from"


def test_an_exhausted_iterator_stays_so_and_leaves_no_thread(tmp_path):
    iterator = iter(ait_llm.compare_runs(repeated(tmp_path, pairs=2)))
    assert iter(iterator) is iterator
    assert len(list(iterator)) == 2
    assert list(iterator) == [] and next(iterator, None) is None


def test_loops_may_stand_inside_loops(tmp_path):
    rows = ait_llm.compare_runs(repeated(tmp_path, pairs=600))
    pairs = [(a.data_id, b.data_id) for a, b in zip(rows, rows)]
    assert pairs == [(str(i), str(i)) for i in range(600)]
    for row in rows:
        again = ait_llm.compare(row.golden.paths[0], row.actual.paths[0], threads=0)
        assert again.cosine_similarity == row.cosine_similarity


def test_rows_are_measured_only_a_little_ahead(tmp_path):
    rows = iter(ait_llm.compare_runs(repeated(tmp_path, pairs=20_000)))
    next(rows)
    time.sleep(0.5)  # a run that does not wait for the loop would be far ahead by now
    (tmp_path / "my.npy").unlink()
    measured = sum(row.comparison is not None for row in rows)
    assert measured < 1000


def test_memory_does_not_grow_with_the_rows(tmp_path):
    repeated(tmp_path, pairs=30_000)
    code = """
import ait_llm, sys
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
rows = ait_llm.compare_runs(sys.argv[1])
for number, row in enumerate(rows):
    if number == 3000:
        before = peak()
print(number + 1, peak() - before)
"""
    count, growth = run_python(code, tmp_path).stdout.split()
    assert int(count) == 30_000
    assert int(growth) < 8192  # KiB; the rows themselves would be more than 30 MiB


def test_the_interpreter_is_free_while_a_row_is_waited_for(many):
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    watcher = threading.Thread(target=tick)
    watcher.start()
    rows = iter(ait_llm.compare_runs(many, threads=1))
    started = time.perf_counter()
    for _ in range(20):
        next(rows)
    ended = time.perf_counter()
    done.set()
    watcher.join()
    assert len([at for at in ticks if started < at < ended]) > 10


# Other processes and other ends.


def run_python(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        **options,
    )


def test_ctrl_c_ends_a_run_even_where_no_python_code_runs(many):
    code = """
import ait_llm, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
rows = ait_llm.compare_runs(sys.argv[1])
print("ready", flush=True)
try:
    list(rows)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code, many], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
        assert process.returncode == 0
    finally:
        process.kill()


def test_a_program_may_end_in_the_middle_of_a_run(many):
    code = "import ait_llm, sys; rows = iter(ait_llm.compare_runs(sys.argv[1])); print(next(rows).data_id)"
    done = run_python(code, many)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_forked_child_leaves_its_parents_run_alone(many):
    code = """
import ait_llm, os, sys
rows = iter(ait_llm.compare_runs(sys.argv[1]))
next(rows)
child = os.fork()
if child == 0:
    try:
        next(rows)
    except ait_llm.AitError as error:
        print(error, flush=True)
    del rows
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(next(rows).data_id)
"""
    first, second = run_python(code, many).stdout.splitlines()
    assert "after a fork" in first and second == "1"


def test_neither_torch_nor_numpy_is_needed(tmp_path):
    golden, my = dumps(tmp_path)
    code = """
import ait_llm, sys
rows = [row.as_dict(True) for row in ait_llm.compare(sys.argv[1], sys.argv[2])]
print(len(rows) > 10, "torch" in sys.modules, "numpy" in sys.modules)
"""
    assert run_python(code, golden, my).stdout == "True False False\n"


# Stored rows.


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The path of a store of a few blocks."""
    root = tmp_path_factory.mktemp("store")
    return command(repeated(root, pairs=1000), None)[2]


def test_stored_rows_are_found_by_number(store):
    rows = ait_llm.open_rows(str(store))
    assert repr(rows) == "RowStore(1000 rows)"
    assert len(rows) == 1000
    assert [rows[i].data_id for i in (0, 255, 256, 999, -1, -1000)] == ["0", "255", "256", "999", "999", "0"]
    assert [row.data_id for row in rows[500:510:3]] == ["500", "503", "506", "509"]
    assert [row.data_id for row in rows[-2:]] == ["998", "999"] and rows[1000:] == []
    assert [row.data_id for row in rows[3:0:-1]] == ["3", "2", "1"]
    assert [row.data_id for row in rows] == [str(i) for i in range(1000)]
    for index in (1000, -1001):
        with pytest.raises(IndexError):
            rows[index]
    with pytest.raises(TypeError):
        rows["0"]


def test_a_store_that_was_cut_off_gives_what_is_whole(store, tmp_path):
    (tmp_path / "cut.rows").write_bytes(store.read_bytes()[:-100])
    rows = ait_llm.open_rows(tmp_path / "cut.rows")
    assert not rows.is_complete and 0 < len(rows) < 1000 and "cut off" in repr(rows)
    assert [row.data_id for row in rows] == [str(i) for i in range(len(rows))]


def test_a_damaged_store_is_an_error_where_it_is_read(store, tmp_path):
    data = bytearray(store.read_bytes())
    data[40] ^= 0xFF
    (tmp_path / "bad.rows").write_bytes(data)
    with pytest.raises(ait_llm.CorruptError) as corrupt:
        ait_llm.open_rows(tmp_path / "bad.rows")[0]
    assert corrupt.value.path == str(tmp_path / "bad.rows")
    with pytest.raises(ait_llm.NotFoundError):
        ait_llm.open_rows(tmp_path / "nowhere.rows")
    with pytest.raises(ait_llm.AitError):
        ait_llm.open_rows(store.with_suffix(".csv"))
