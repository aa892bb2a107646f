"""`ait llm convert`: files and folders in other formats, and dumps as statistics, held against numpy."""

import csv
import itertools
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("google.protobuf")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import ge_files

NAME = "Add.Add_2.44.6.1706596912161941"
KINDS = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
]


def array_of(kind, shape=(3, 5), seed=1):
    generator = np.random.default_rng(seed)
    if kind == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if kind.startswith("float"):
        return generator.normal(0, 50, shape).astype(kind)
    limits = np.iinfo(kind)
    return generator.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)


def extremes(array):
    """What the script of the documents keeps of a tensor."""
    return [array.min(), array.max()]


def same(mine, theirs):
    assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
    assert mine.tobytes() == theirs.tobytes() or np.array_equal(mine, theirs, equal_nan=True)


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


WRITTEN_FILES = 240


def written(folder):
    """Where the process below puts each array."""
    for i in range(WRITTEN_FILES):
        array = np.random.default_rng(i).normal(size=500 + 40 * i).astype(np.float32)
        name = f"{i}.npy" if i % 2 else f"Add.Add_{i}.1.2.{i:016d}"
        yield folder / str(i // 30) / name, array


WRITER = f"""
import io, pathlib, random, sys, time
sys.path[:0] = {[str(pathlib.Path(__file__).parent), str(pathlib.Path(ge_files.__file__).parent)]}
import ge_files, numpy as np
from test_convert import written
generator = random.Random(5)
for path, array in written(pathlib.Path(sys.argv[1])):
    content = io.BytesIO()
    np.save(content, array)
    content.seek(0)
    if path.suffix != ".npy":
        stored = [ge_files.as_stored(array)]
        content = io.BytesIO(ge_files.encode("Add", stored, stored))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        while piece := content.read(generator.randrange(1, 20000)):
            file.write(piece)
            file.flush()
            if generator.random() < 0.05:
                time.sleep(generator.random())
"""


class TestStatistics:
    @pytest.mark.parametrize("kind", KINDS)
    def test_npy(self, ait, tmp_path, kind):
        array = array_of(kind)
        np.save(tmp_path / "dump.npy", array)
        done = ait("llm", "convert", "--to-stats", tmp_path)
        assert done.returncode == 0 and done.stdout.startswith("1 files converted"), done.stderr
        np.save(tmp_path / "expected.npy", extremes(array))
        same(np.load(tmp_path / "dump_min_max.npy"), np.load(tmp_path / "expected.npy"))

    def test_orders_of_an_npy(self, ait, tmp_path):
        array = array_of("float32", (40, 50))
        np.save(tmp_path / "a.npy", np.asfortranarray(array))
        np.save(tmp_path / "b.npy", array.astype(">f4"))
        np.save(tmp_path / "c.npy", np.float32(2.5))
        assert ait("llm", "convert", "--to-stats", tmp_path).returncode == 0
        for name in "ab":
            assert np.load(tmp_path / f"{name}_min_max.npy").tolist() == extremes(array)
        assert np.load(tmp_path / "c_min_max.npy").tolist() == [2.5, 2.5]

    @pytest.mark.parametrize("first", KINDS)
    def test_types_of_a_ge_file_are_promoted_by_numpy(self, ait, tmp_path, first):
        arrays = {kind: array_of(kind) for kind in KINDS}
        for kind, array in arrays.items():
            inputs = [arrays[first], array]
            ge_files.write(tmp_path / f"Add.{kind}.1.2.3", kind, inputs, [inputs[1]])
            np.savez(tmp_path / f"{kind}_expected.npz", inputs=[extremes(i) for i in inputs], outputs=[extremes(array)])
        assert ait("llm", "convert", "--to-stats", tmp_path, "--delete-source").returncode == 0
        for kind in KINDS:
            mine, theirs = (
                np.load(tmp_path / name) for name in (f"Add.{kind}.1.2.3_min_max.npz", f"{kind}_expected.npz")
            )
            assert mine.files == theirs.files
            for name in mine.files:
                same(mine[name], theirs[name])

    def test_empty_nan_and_no_tensors(self, ait, tmp_path):
        empty, nan = np.zeros((0, 3), np.int32), np.array([1, np.nan, np.inf], np.float16)
        np.save(tmp_path / "empty.npy", empty)
        np.save(tmp_path / "nan.npy", nan)
        ge_files.write(tmp_path / NAME, "Add_2", [], [nan, np.zeros(0, np.float16)])
        assert ait("llm", "convert", "--to-stats", tmp_path).returncode == 0
        same(np.load(tmp_path / "empty_min_max.npy"), np.array([np.nan, np.nan]))
        same(np.load(tmp_path / "nan_min_max.npy"), np.array(extremes(nan)))
        with np.load(tmp_path / f"{NAME}_min_max.npz") as made:
            same(made["inputs"], np.array([]))
            same(made["outputs"], np.full((2, 2), np.nan, np.float16))

    def test_what_has_no_statistics_stays(self, ait, tmp_path):
        np.save(tmp_path / "object.npy", np.array(None, object), allow_pickle=True)
        np.save(tmp_path / "text.npy", np.array("memory_format"))
        np.save(tmp_path / "complex.npy", np.array([1j]))
        (tmp_path / "dynamo_original_graph_1_rank_0_pid_1_ts_2.txt").write_text("name: 'x'")
        (tmp_path / "mapping.csv").write_text("1,2\n")
        (tmp_path / "README").write_text("not a dump")
        before = files_in(tmp_path)
        done = ait("llm", "convert", "--to-stats", tmp_path, "--delete-source")
        assert done.returncode == 0 and "4 files were not converted" in done.stdout, done.stdout
        assert files_in(tmp_path) == before
        assert len(done.stderr.splitlines()) == 4

    def test_a_missing_folder(self, ait):
        done = ait("llm", "convert", "--to-stats", "missing")
        assert done.returncode == 2 and "missing" in done.stderr

    @pytest.mark.parametrize(
        "arguments", [["a", "--to-stats", "b"], ["--watch", "a", "b.npy"], [], ["a.npy"], ["a.npy", "b.txt"]], ids=str
    )
    def test_options_that_make_no_sense(self, ait, arguments):
        assert ait("llm", "convert", *arguments).returncode == 2


class TestWatching:
    @pytest.fixture
    def watch(self, program, tmp_path):
        started = []

        def start():
            command = [program, "llm", "convert", "--to-stats", tmp_path, "--watch", "--delete-source"]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            return started[-1]

        yield start
        for process in started:
            process.kill()
            process.communicate()

    def wait_for(self, condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.05)

    @pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "a file"])
    def test_it_ends(self, watch, tmp_path, how):
        process = watch()
        np.save(tmp_path / "x.npy", np.arange(3))
        self.wait_for((tmp_path / "x_min_max.npy").exists)
        if how == "a file":
            (tmp_path / ".ait_convert_stop").touch()
        else:
            process.send_signal(getattr(signal, how))
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 0 and output == "1 files converted to statistics, 1 originals deleted\n"

    def test_files_that_are_written_slowly(self, watch, tmp_path):
        content = ge_files.encode("Add_2", [ge_files.as_stored(np.arange(1000.0))], [])
        watch()
        with open(tmp_path / NAME, "wb") as file:
            for first in range(0, len(content), 1500):
                file.write(content[first : first + 1500])
                file.flush()
                time.sleep(0.3)
                assert first + 1500 >= len(content) or files_in(tmp_path) == [NAME]
        self.wait_for(lambda: files_in(tmp_path) == [f"{NAME}_min_max.npz"])
        assert np.load(tmp_path / f"{NAME}_min_max.npz")["inputs"].tolist() == [[0, 999]]

    def test_a_tree_that_another_process_is_writing(self, watch, tmp_path):
        """In pieces, into folders that come up, GE and FX: each file is converted once, when it is complete."""
        process = watch()
        subprocess.run([sys.executable, "-c", WRITER, tmp_path / "dump"], check=True, timeout=120)
        arrays = dict(written(tmp_path / "dump"))
        self.wait_for(lambda: not [path for path in arrays if path.exists()])
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
        assert output == f"{len(arrays)} files converted to statistics, {len(arrays)} originals deleted\n"
        assert errors == ""
        for path, array in arrays.items():
            if path.suffix == ".npy":
                assert np.load(path.with_name(f"{path.stem}_min_max.npy")).tolist() == extremes(array)
            else:
                with np.load(f"{path}_min_max.npz") as made:
                    assert made["inputs"].tolist() == made["outputs"].tolist() == [extremes(array)]
        assert len(files_in(tmp_path / "dump")) == len(arrays)

    def test_killed_at_any_point_it_loses_nothing(self, watch, tmp_path):
        generator = random.Random(7)
        arrays = {f"{i // 20}/x{i}": np.random.default_rng(i).normal(size=2000) for i in range(200)}
        names = iter(arrays)
        process = watch()
        while True:
            for name in itertools.islice(names, 20):
                (tmp_path / name).parent.mkdir(exist_ok=True)
                np.save(tmp_path / f"{name}.npy", arrays[name])
                last = name
            time.sleep(generator.random())
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.check(tmp_path, {name: arrays[name] for name in list(arrays)[: list(arrays).index(last) + 1]})
            if last == list(arrays)[-1]:
                break
            process = watch()
        watch()
        self.wait_for(lambda: not [name for name in arrays if (tmp_path / f"{name}.npy").exists()])
        for name, array in arrays.items():
            assert np.load(tmp_path / f"{name}_min_max.npy").tolist() == extremes(array)

    def check(self, folder, arrays):
        """Of each file that was written the original or whole statistics are there."""
        for name, array in arrays.items():
            statistics, original = folder / f"{name}_min_max.npy", folder / f"{name}.npy"
            if statistics.exists():
                assert np.load(statistics).tolist() == extremes(array)
            else:
                assert np.array_equal(np.load(original), array)


class TestFormats:
    @pytest.mark.parametrize("target", ["x.npy", "x.npz", "x.bin", "x.safetensors"])
    def test_there_and_back(self, ait, tmp_path, target):
        array = array_of("float16")
        np.save(tmp_path / "from.npy", array)
        done = ait("llm", "convert", "from.npy", target)
        assert done.returncode == 0 and done.stdout == f"{target}\n", done.stderr
        done = ait("llm", "convert", target, "--to", "npy") if target != "x.npy" else done
        assert done.returncode == 0, done.stderr
        (back,) = tmp_path.glob("x*.npy")
        same(np.load(back), array)

    def test_npz_is_what_numpy_reads(self, ait, tmp_path):
        inputs = [array_of("float32"), array_of("int64", (4, 4))]
        ge_files.write(tmp_path / NAME, "Add_2", inputs, [np.float64(3)])
        assert ait("llm", "convert", NAME, "x.npz").returncode == 0
        with np.load(tmp_path / "x.npz") as loaded:
            assert loaded.files == ["input_0", "input_1", "output_0"]
            for name, array in zip(loaded.files, [*inputs, np.float64(3)]):
                same(loaded[name], np.asarray(array))

    def test_a_whole_dump(self, ait, tmp_path):
        folder = tmp_path / "dump" / "20240125031118/0/graph_1/1/0"
        ge_files.write(folder / NAME, "Add_2", [array_of("float32")], [array_of("float16")])
        (tmp_path / "dump" / "graph.txt").write_text("name: 'x'")
        done = ait("llm", "convert", "dump", "out", "--to", "npy")
        assert done.returncode == 0 and "1 files converted to 2 in out" in done.stdout, done.stderr
        made = tmp_path / "out" / "20240125031118/0/graph_1/1/0"
        same(np.load(made / f"{NAME}.input.0.npy"), array_of("float32"))
        same(np.load(made / f"{NAME}.output.0.npy"), array_of("float16"))

    def test_refused(self, ait, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(3))
        assert "is the file that is to be converted" in ait("llm", "convert", "x.npy", "./x.npy").stderr
        assert "lies inside" in ait("llm", "convert", ".", "out", "--to", "npz").stderr
        assert "is a folder" in ait("llm", "convert", ".", "--to", "npz").stderr


def rows_in(folder):
    """The rows of the only report, by what they are about."""
    (path,) = folder.glob("*.csv")
    with open(path, newline="", encoding="utf-8") as file:
        return {row["data_id"]: row for row in csv.DictReader(file)}


class TestComparing:
    """tests/e2e/test_compare_ge_statistics.py has more."""

    def test_fx_against_its_own_statistics(self, ait, tmp_path):
        for name in ("golden", "mine"):
            folder = tmp_path / name / "worldsize1_global_rank0/graph_1/0"
            folder.mkdir(parents=True)
            np.save(folder / "mm-aten.mm.default.OUTPUT.0.20240125031118787351.npy", array_of("float32"))
        assert ait("llm", "convert", "--to-stats", "mine").returncode == 0  # the data say more
        assert self.reason(ait, tmp_path / "before") == ""
        assert ait("llm", "convert", "--to-stats", "mine", "--delete-source").returncode == 0
        assert self.reason(ait, tmp_path / "after") == "only minimum and maximum are compared."

    def reason(self, ait, out):
        done = ait("llm", "compare", "-gp", "golden", "-mp", "mine", "-o", out)
        assert done.returncode == 0, done.stderr
        (row,) = rows_in(out).values()
        return row["cmp_fail_reason"]
