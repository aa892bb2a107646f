"""Rows are measured while they are asked for, and a stored run is read row by row."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import ait_llm
import numpy as np
import pytest
from kinds_of_runs import command, dumps

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
READ_AHEAD = 4  # threads of a run that ask the disk for files before their turn


def test_the_first_rows_come_before_the_rest_is_measured(many):
    rows = ait_llm.compare_runs(many, threads=1)
    before = threads()
    assert len(rows) == 100_000
    for number, row in enumerate(rows):
        assert row.subject.name == str(number) and row.max_absolute_error == 1.0
        assert 1 <= len(threads() - before) <= 1 + READ_AHEAD
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
    data = store.read_bytes()
    (tmp_path / "cut.rows").write_bytes(data[: data.index(b'{\n  "tool"') - 100])  # in the last block
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
