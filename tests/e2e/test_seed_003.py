"""The commands of the documents on TorchAir, as they are written there, on dumps made by the tests."""

import csv
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("google.protobuf")

from ge_run import GraphRun, ge_files, inputs_like, two_blocks, write_fx, write_ge

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run():
    return GraphRun(two_blocks, inputs_like(1, 2, 4))


@pytest.fixture
def shell(program, tmp_path):
    """Runs a line of a document; both names of the program are on the path."""
    (tmp_path / "bin").mkdir()
    for name in ("ait", "msit"):
        (tmp_path / "bin" / name).symlink_to(program)

    def run_line(line, **variables):
        env = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", **variables}
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done

    return run_line


def check_report(folder):
    """One csv, in which all tensors of both tokens that have a partner are the same."""
    (path,) = folder.glob("*_cmp_report_*.csv")
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    pairs = [row for row in rows if row["golden_data_path"] and row["my_data_path"]]
    assert {row["token_id"] for row in pairs} == {"0", "1"}
    assert len(pairs) > 100
    assert all(row["cosine_similarity"] == "1.0" and row["max_absolute_error"] == "0.0" for row in pairs)


class TestGeAgainstFx:
    """003, 1.3"""

    def test_above_7_1_0(self, shell, tmp_path, run):
        write_ge([[run]], tmp_path / "dump/msit_ge_dump", "A")
        write_fx([[run]], tmp_path / "dump/msit_fx_dump", "A")
        shell(
            "msit llm compare --my-path ${dump_path}/msit_ge_dump --golden-path ${dump_path}/msit_fx_dump",
            dump_path="dump",
        )
        check_report(tmp_path)

    def test_at_7_1_0(self, shell, tmp_path, run):
        write_ge([[run]], tmp_path / "dump/msit_ge_dump", "B")
        write_fx([[run]], tmp_path / "dump/msit_fx_dump/data_dump", "B")
        shell(
            "msit llm compare --my-path ${dump_path}/msit_ge_dump --golden-path ${dump_path}/msit_fx_dump/data_dump",
            dump_path="dump",
        )
        check_report(tmp_path)

    def test_below_7_1_0(self, shell, tmp_path, run):
        write_ge([[run]], tmp_path / "dump/msit_ge_dump", "B")
        write_fx([[run]], tmp_path / "data_dump", "B")
        shell("msit llm compare --my-path ${dump_path}/msit_ge_dump --golden-path data_dump", dump_path="dump")
        check_report(tmp_path)

    def test_output(self, shell, tmp_path, run):
        write_ge([[run]], tmp_path / "dump/msit_ge_dump", "A")
        write_fx([[run]], tmp_path / "dump/msit_fx_dump", "A")
        shell("msit llm compare --my-path dump/msit_ge_dump --golden-path dump/msit_fx_dump --output results/here")
        check_report(tmp_path / "results/here")


class TestFusedAgainstUnfused:
    """003, 2.3"""

    def test_compare(self, shell, tmp_path, run):
        write_ge([[run]], tmp_path / "dump/msit_ge_dump", "A")
        write_ge([[run]], tmp_path / "dump_fusion_off/msit_ge_dump", "A", fused=False)
        shell("msit llm compare --my-path dump/msit_ge_dump --golden-path dump_fusion_off/msit_ge_dump")
        check_report(tmp_path)


class TestStatisticsScript:
    """003, 4: the script of the appendix, unmodified, in the background of a dump."""

    @pytest.fixture
    def converted(self, tmp_path):
        """Runs the script on a folder until it has passed it once, and ends it."""
        script = tmp_path / "convert.py"
        script.write_bytes((REPOSITORY / "tests/data/seed_003/convert.py.txt").read_bytes())

        def run_script(folder):
            path = os.pathsep.join([str(REPOSITORY / "python/compat"), *filter(None, sys.path)])
            process = subprocess.Popen(
                [sys.executable, "-u", "convert.py", folder.name],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": path},
                stdout=subprocess.PIPE,
                text=True,
            )
            lines = []
            for line in process.stdout:  # ends when the script does
                if line == "Wmsiting...\n":
                    break
                lines.append(line)
            process.send_signal(signal.SIGKILL)
            process.wait()
            return lines

        return run_script

    def test_ge(self, converted, tmp_path):
        folder = tmp_path / "msit_ge_dump"
        name = "20240125031118/0/graph_1/1/0/Add.Add_2.44.6.1706596912161941"
        inputs = [np.array([3, -1, 2], np.float16), np.arange(40, dtype=np.float16).reshape(5, 8)]
        ge_files.write(folder / name, "Add_2", [inputs[0], ge_files.to_nz(inputs[1])], [np.array([7], np.int32)])
        (folder / "dynamo_original_graph_1_rank_0_pid_1_ts_2.txt").write_text("name: 'x'")
        assert len(converted(folder)) == 1
        with np.load(folder / f"{name}_min_max.npz") as statistics:
            assert statistics["inputs"].tolist() == [[-1, 3], [0, 39]]
            assert statistics["outputs"].tolist() == [[7, 7]]
        assert len([path for path in folder.rglob("*") if path.is_file()]) == 2

    @pytest.mark.parametrize(("name", "layout"), [("msit_fx_dump", "A"), ("data_dump", "B")])
    def test_fx(self, converted, tmp_path, run, name, layout):
        folder = tmp_path / name
        write_fx([[run]], folder, layout)
        arrays = {path: np.load(path) for path in folder.rglob("*.npy")}
        assert len(converted(folder)) == len(arrays) > 100
        for path, array in arrays.items():
            assert np.load(f"{str(path)[:-4]}_min_max.npy").tolist() == [array.min(), array.max()]
        assert len(list(folder.rglob("*.npy"))) == len(arrays)


class TestVersionOne:
    """001, 2.1 and 2.2"""

    def test_ge_against_fx(self, shell, tmp_path, run):
        write_ge([[run]], tmp_path / "dump/dump_20241114_113410", "B")
        write_fx([[run]], tmp_path / "gm_20241114113500123456_dump", "D")
        shell(
            "ait llm compare --my-path ${dump_path}/dump_${time_stamp} --golden-path gm_20241114113500123456_dump",
            dump_path="dump",
            time_stamp="20241114_113410",
        )
        check_report(tmp_path)

    def test_fused_against_unfused(self, shell, tmp_path, run):
        write_ge([[run]], tmp_path / "dump/dump_20241114_113410", "B")
        write_ge([[run]], tmp_path / "dump/dump_20241114_120000", "B", fused=False)
        shell("ait llm compare --my-path dump/dump_20241114_113410 --golden-path dump/dump_20241114_120000")
        check_report(tmp_path)
