"""`ait llm compare --plan`, `--from-plan --part`, `--merge`: what one process would have written, byte for byte."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import error_line
from parts import document_of, in_one, in_parts, merged, plain_folders, report_of, run_parts

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "attacks"))


@pytest.mark.parametrize("options", [("--extended",), ("--stats", "--metric-compat", "msit")])
def test_folders_in_sixteen_parts_are_as_in_one(ait, tmp_path, options):
    golden, mine = plain_folders(tmp_path)
    arguments = ["-gp", golden, "-mp", mine, *options]
    alone = in_one(ait, tmp_path, arguments)
    assert alone[0] == 0
    assert in_parts(ait, tmp_path, arguments, 16) == alone


def test_a_condition_of_the_plan_is_checked_by_the_merging(ait, tmp_path):
    golden, mine = plain_folders(tmp_path, pairs=60)
    arguments = ["-gp", golden, "-mp", mine, "--fail-on", "worst_row_cosine<0.5,nan"]
    alone = in_one(ait, tmp_path, arguments)
    assert alone[0] == 1 and alone[3]["fail_on_met"] == ["nan"]
    assert in_parts(ait, tmp_path, arguments, 3) == alone


@pytest.mark.parametrize("kind", ["faulty", "padded", "heads_first"])
def test_dumps_in_parts_have_the_same_findings(ait, tmp_path, kind):
    pytest.importorskip("transformers")
    import pairing_data

    case = getattr(pairing_data, kind)(random.Random(3), tmp_path)
    arguments = ["-gp", case.golden, "-mp", case.mine, "--extended"]
    alone = in_one(ait, tmp_path, arguments)
    assert alone[0] == 0 and alone[3]["summary"]["rows"] > 30
    assert kind != "faulty" or alone[3]["findings"]
    assert in_parts(ait, tmp_path, arguments, 5) == alone
    # And what looks at a store later sees the same.
    said = [ait("locate", folder, "--json") for folder in ("alone", "merged")]
    said = [json.loads(each.stdout) for each in said]
    assert [each.pop("store").split("/")[0] for each in said] == ["alone", "merged"] and said[0] == said[1]
    assert ait("report", "merged", "-o", "page.html").returncode == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_the_text_is_that_of_one_process(ait, tmp_path):
    golden, mine = plain_folders(tmp_path)
    alone = ait("llm", "compare", "-gp", golden, "-mp", mine, "-o", "alone")
    ait("llm", "compare", "-gp", golden, "-mp", mine, "--plan", "run.plan")
    run_parts(ait, "run.plan", 4, "parts")
    joined = ait("llm", "compare", "--merge", "parts", "-o", "merged")
    without_names = lambda text: re.sub(r"(alone|merged)/ait_cmp_report_\d+", "REPORT", text)
    assert without_names(joined.stdout) == without_names(alone.stdout) and joined.stdout != alone.stdout


def test_parts_are_balanced_by_bytes(ait, tmp_path):
    """One large pair among many small ones is a part of its own."""
    for side in ("golden", "mine"):
        (tmp_path / side).mkdir()
        for i in range(20):
            np.save(tmp_path / side / f"{i}.npy", np.zeros(16 if i != 10 else 4 << 20, np.float32))
    ait("llm", "compare", "-gp", "golden", "-mp", "mine", "--plan", "run.plan")
    pairs = []
    for part in range(1, 5):
        process = ait("llm", "compare", "--from-plan", "run.plan", "--part", f"{part}/4", "-o", "parts", "--json")
        pairs.append(json.loads(process.stdout)["pairs"])
    assert sum(pairs) == 20 and pairs == [11, 0, 0, 9]


def test_missing_parts_are_named_and_their_rows_say_so(ait, tmp_path):
    golden, mine = plain_folders(tmp_path)
    arguments = ["-gp", golden, "-mp", mine]
    whole = in_one(ait, tmp_path, arguments)
    in_parts(ait, tmp_path, arguments, 6)
    (tmp_path / "parts/part_2_of_6.part").unlink()
    (tmp_path / "parts/part_5_of_6.part").unlink()
    process = ait("llm", "compare", "--merge", "parts", "-o", "holes", "--json")
    assert process.returncode == 2
    lines = [line for line in process.stderr.splitlines() if "error" in line]
    assert len(lines) == 1 and "lacks 2 of 6 parts" in lines[0] and "2, 5" in lines[0]
    document = json.loads(process.stdout)
    assert document["partial"] is True and "_partial" in document["report"]
    rows = report_of(tmp_path / "holes").read_text().splitlines()
    holes = [row for row in rows if "is missing." in row]
    expected = whole[1].decode().splitlines()
    assert 50 < len(holes) < 150
    assert {row for row in rows if row not in holes} < set(expected)
    # What was missing can be compared later.
    run_parts(ait, "run.plan", 6, "parts", twice=0)
    assert merged(ait, tmp_path, out="later") == whole


def test_a_part_that_is_killed_leaves_nothing_that_is_taken_for_whole(program, ait, tmp_path):
    for side in ("golden", "mine"):
        (tmp_path / side).mkdir()
        np.save(tmp_path / f"{side}.npy", np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32))
        for i in range(400):
            os.link(tmp_path / f"{side}.npy", tmp_path / side / f"{i}.npy")
    ait("llm", "compare", "-gp", "golden", "-mp", "mine", "--plan", "run.plan")
    command = [program, "llm", "compare", "--from-plan", "run.plan", "--part", "1/1", "-o", "parts", "--threads", "1"]
    for number in (signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not list(tmp_path.glob(f"parts/.part_1_of_1.part.{process.pid}.*")):
            time.sleep(0.001)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        if process.returncode == 0:
            pytest.skip("this machine compares faster than it kills")
        assert not list((tmp_path / "parts").glob("*.part")), number
        if number == signal.SIGINT:
            assert process.returncode == 130 and "compare it again" in said
    assert "none of its parts" in error_line(ait("llm", "compare", "--merge", "parts", "-o", "out"))
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    assert ait("llm", "compare", "--merge", "parts", "-o", "out").returncode == 0


def test_a_plan_of_one_part_is_enough_for_that_part(ait, tmp_path):
    golden, mine = plain_folders(tmp_path)
    arguments = ["-gp", golden, "-mp", mine]
    alone = in_one(ait, tmp_path, arguments)
    ait("llm", "compare", *arguments, "--plan", "parts/plan.ait")
    for part in (3, 1, 2):
        cut = ait("llm", "compare", "--from-plan", "parts/plan.ait", "--part", f"{part}/3", "--cut", "cut", "--json")
        assert json.loads(cut.stdout)["pairs"] > 50, cut.stderr
        other = ait("llm", "compare", "--from-plan", "cut", "--part", f"{part % 3 + 1}/3", "-o", "elsewhere")
        assert f"holds part {part} of 3 alone" in error_line(other)
        done = ait("llm", "compare", "--from-plan", "cut", "--part", f"{part}/3", "-o", "elsewhere")
        assert done.returncode == 0, done.stderr
        shutil.move(tmp_path / f"elsewhere/part_{part}_of_3.part", tmp_path / "parts")
    assert merged(ait, tmp_path) == alone


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--plan", "p"], "--golden-path is required"),
        (["-gp", "g", "-mp", "m", "--part", "1/2"], "--part has no effect without --from-plan"),
        (["-gp", "g", "-mp", "m", "--plan", "p", "-o", "out"], "--output has no effect on --plan"),
        (["-gp", "g", "-mp", "m", "--plan", "p", "--noise", "n"], "ait locate --noise"),
        (["--from-plan", "p", "--part", "1/2"], "--from-plan needs -o DIR"),
        (["--from-plan", "p", "-o", "out"], "--part takes which part of how many"),
        (["--from-plan", "p", "-o", "out", "--part", "3/2"], "not '3/2'"),
        (["--from-plan", "p", "-o", "out", "--part", "0/2"], "not '0/2'"),
        (["--from-plan", "p", "-o", "out", "--part", "1/2x"], "not '1/2x'"),
        (["--from-plan", "p", "-o", "out", "--part", "1/2", "--extended"], "--extended is said where the plan is made"),
        (["--from-plan", "p", "-o", "out", "--part", "1/2", "--html", "x"], "give it with --merge"),
        (["--merge", "d", "--part", "1/2"], "--merge takes all parts"),
        (["--merge", "d", "--from-plan", "p"], "leave out one of the two"),
        (["--merge", "nowhere"], "holds no parts of a comparison"),
    ],
)
def test_options_that_do_not_go_together_are_refused(ait, arguments, words):
    assert words in error_line(ait("llm", "compare", *arguments))


def test_one_pair_needs_no_plan(ait, pair):
    assert "they are one pair" in error_line(
        ait("llm", "compare", "-gp", "golden.npy", "-mp", "actual.npy", "--plan", "p")
    )


def test_parts_of_two_plans_or_divisions_are_not_mixed(ait, tmp_path):
    golden, mine = plain_folders(tmp_path, pairs=20)
    ait("llm", "compare", "-gp", golden, "-mp", mine, "--plan", "one.plan")
    ait("llm", "compare", "-gp", mine, "-mp", golden, "--plan", "two.plan")
    run_parts(ait, "one.plan", 2, "parts", twice=0)
    other = ait("llm", "compare", "--from-plan", "two.plan", "--part", "1/2", "-o", "parts")
    assert "holds parts of another plan" in error_line(other)
    run_parts(ait, "two.plan", 2, "others", twice=0)
    shutil.copy(tmp_path / "others/part_1_of_2.part", tmp_path / "parts")
    assert "part of another plan" in error_line(ait("llm", "compare", "--merge", "parts"))
    run_parts(ait, "one.plan", 2, "parts", twice=0)
    run_parts(ait, "one.plan", 3, "parts", twice=0)
    assert "division by 2 and by 3" in error_line(ait("llm", "compare", "--merge", "parts"))


@pytest.mark.parametrize("options", [["--extended"], ["--fail-on", "nan"], []])
def test_parts_of_the_same_pairs_under_another_plan_are_not_mixed(ait, tmp_path, options):
    """Other settings, or files that were recorded anew in the same sizes."""
    golden, mine = plain_folders(tmp_path, pairs=20)
    ait("llm", "compare", "-gp", golden, "-mp", mine, "--plan", "one.plan")
    run_parts(ait, "one.plan", 2, "parts", twice=0)
    for path in mine.glob("*.npy"):
        path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")
    ait("llm", "compare", "-gp", golden, "-mp", mine, *options, "--plan", "two.plan")
    other = ait("llm", "compare", "--from-plan", "two.plan", "--part", "1/2", "-o", "parts")
    assert "holds parts of another plan" in error_line(other)
    run_parts(ait, "two.plan", 2, "others", twice=0)
    shutil.copy(tmp_path / "others/part_1_of_2.part", tmp_path / "parts")
    assert "part of another plan" in error_line(ait("llm", "compare", "--merge", "parts"))


def test_a_plan_of_another_version_is_refused(ait, tmp_path):
    import hostile_plan

    (tmp_path / "old.plan").write_bytes(hostile_plan.plan(hostile_plan.pair()))
    done = ait("llm", "compare", "--from-plan", "old.plan", "--part", "1/1", "-o", "parts")
    assert "old.plan: was made by ait 0.0.0, and this is ait " in error_line(done)
    assert not (tmp_path / "parts").exists()


def test_what_is_no_plan_and_no_part_is_refused_in_one_line(ait, tmp_path):
    golden, mine = plain_folders(tmp_path, pairs=20)
    ait("llm", "compare", "-gp", golden, "-mp", mine, "--plan", "run.plan")
    run_parts(ait, "run.plan", 1, "parts", twice=0)
    part, plan = tmp_path / "parts/part_1_of_1.part", tmp_path / "run.plan"
    content, planned = part.read_bytes(), plan.read_bytes()
    assert "is not a plan" in error_line(ait("llm", "compare", "--from-plan", part, "--part", "1/1", "-o", "x"))
    assert "holds no report of a comparison" in error_line(ait("locate", "parts"))
    for cut in (0, 10, 100, len(planned) // 2, len(planned) - 1):
        plan.write_bytes(planned[:cut])
        assert "run.plan" in error_line(ait("llm", "compare", "--from-plan", plan, "--part", "1/1", "-o", "x"))
    for cut in (0, 10, 100, len(content) // 2, len(content) - 1):
        part.write_bytes(content[:cut])
        assert "part_1_of_1.part" in error_line(ait("llm", "compare", "--merge", "parts"))
    (tmp_path / "parts/plan.ait").write_bytes(b"ait plan")
    part.write_bytes(content)
    assert "plan.ait" in error_line(ait("llm", "compare", "--merge", "parts"))


@pytest.mark.slow
def test_two_hundred_thousand_pairs_in_sixteen_processes(ait, tmp_path):
    golden, mine = plain_folders(tmp_path, pairs=200_000)
    arguments = ["-gp", golden, "-mp", mine]
    alone = ait("llm", "compare", *arguments, "-o", "alone", "--json", timeout=600)
    ait("llm", "compare", *arguments, "--plan", "run.plan", timeout=600)
    assert (tmp_path / "run.plan").stat().st_size < 200_000 * 120
    run_parts(ait, "run.plan", 16, "parts")
    joined = ait("llm", "compare", "--merge", "parts", "-o", "merged", "--json", timeout=600)
    assert report_of(tmp_path / "merged").read_bytes() == report_of(tmp_path / "alone").read_bytes()
    assert document_of(joined) == document_of(alone)
