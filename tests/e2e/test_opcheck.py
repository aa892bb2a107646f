"""`ait llm opcheck` on dumps of the engine: sound kernels are within the bound, and only a broken one is not."""

import csv
import json
import os
import pathlib
import shlex
import subprocess

import pytest
from conftest import REPOSITORY, error_line

LLAMA = pathlib.Path(os.environ.get("AIT_LLAMA", REPOSITORY / "build/bin/ait-llama"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "llama"
    subprocess.run([LLAMA, "--make-model", folder], check=True)
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def dump(ait, model, tmp_path):
    def run(dtype, *faults, options=("-time", "2")):
        words = f"{LLAMA} --model {model} --tokens 1,15,7,3 --steps 3 --dtype {dtype}"
        words += "".join(f" --fault {fault}" for fault in faults)
        done = ait("llm", "dump", "--exec", words, "-er", "0,2", *options, "-o", "run", timeout=120)
        assert done.returncode == 0, done.stderr
        return tmp_path / "run/ait_dump"

    return run


def check(ait, *words):
    done = ait("llm", "opcheck", *words, "--json", timeout=120)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    written = list(csv.DictReader(open(document["report"], newline="")))
    assert len(written) == len(document["rows"])
    return document, written


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "w8a8"])
def test_sound_kernels_are_within_the_bound(ait, dump, dtype):
    document, rows = check(ait, "-i", dump(dtype), "-o", "result")
    assert document["summary"]["outside_bound"] == 0
    assert document["summary"]["outputs"] > 50
    assert document["summary"]["operations"] == len({(r["tensor_path"], r["rank"], r["round"]) for r in rows})
    for row in rows:
        assert row["precision_result"] in ("PASS", "FAILED", "addition failed")
        if row["out_tensor_id"] == "NaN":
            assert row["fail_reason"] and row["rel_precision_rate(%)"] == "NaN"
        else:
            assert row["bound_result"] == "PASS" and 0 <= float(row["error_of_bound"]) <= 1


def test_a_broken_kernel_is_found_and_only_that(ait, dump):
    dumped = dump("fp16", "epsilon@layer=1,op=RmsNorm,size=0.01")
    _, rows = check(ait, "-i", dumped)
    outside = {row["op_id"] for row in rows if row["bound_result"] == "FAILED"}
    assert outside and all(row["op_name"] == "RmsNormOperation" for row in rows if row["op_id"] in outside)
    assert {row["op_id"].split("_")[0] for row in rows if row["op_id"] in outside} <= {"3", "6"}
    done = ait("llm", "opcheck", "-i", dumped, "--fail-on", "bound")
    assert done.returncode == 1 and "--fail-on bound is met" in done.stderr
    worst = done.stdout.splitlines()[4].split()
    assert worst[0] in outside


def again(output):
    """The words after `ait` of each line that checks an operation again."""
    return [shlex.split(line)[2:] for line in output.splitlines() if line.startswith("Again: ait ")]


@pytest.mark.parametrize("ranks", ["", " --tp 2"])
def test_each_failing_operation_has_a_line_that_checks_it_alone(ait, dump, ranks):
    dumped = dump("fp16", "scale@layer=1,op=RmsNorm,size=0.2,round=all" + ranks)
    done = ait("llm", "opcheck", "-i", dumped)
    lines = again(done.stdout)
    assert len(lines) > 1, done.stdout
    for words in lines:
        _, rows = check(ait, *words[2:], "-o", "again")
        assert {row["op_id"] for row in rows} == {words[words.index("-ids") + 1]}
        assert "FAILED" in {row["precision_result"] for row in rows}


def test_operations_are_chosen_as_the_documents_say(ait, dump):
    dumped = dump("fp16")
    (rank,) = (dumped / "tensors").iterdir()
    _, rows = check(ait, "-i", rank / "0", "-opname", "rms，activation", "-metric", "kl", "cos_sim", "abs")
    assert {row["op_name"] for row in rows} == {"RmsNormOperation", "ActivationOperation"}
    for row in rows:
        assert float(row["cosine_similarity"]) > 0.999 and float(row["kl_divergence"]) < 1e-3
        assert float(row["abs_precision_rate(%)"]) > 99
    _, rows = check(ait, "-i", rank, "-ids", "2_0,3")
    assert rows and all(row["op_id"].startswith("3_") or row["op_id"] == "2_0" for row in rows)


def test_the_table_of_operations_says_what_ran(ait, dump):
    dumped = dump("fp16", options=("-time", "2", "--type", "op", "tensor"))
    (table,) = dumped.rglob("operation_tensors_0.csv")
    (rank,) = (dumped / "tensors").iterdir()
    _, with_table = check(ait, "-i", rank / "0", "-c", table)
    assert {row["op_name"] for row in with_table} >= {"RmsNormOperation", "ElewiseOperation"}
    assert all(row["bound_result"] in ("PASS", "") for row in with_table)
    lines = table.read_text().splitlines()
    broken = table.with_name("broken.csv")
    broken.write_text("\n".join([lines[0], "rubbish", *lines[1:3], lines[1].replace("_", "-", 99)]) + "\n")
    document, rows = check(ait, "-i", rank / "0", "-c", broken)
    wrong = [row["fail_reason"] for row in rows if row["op_id"] == ""]
    assert document["summary"]["operations"] == 2 + len(wrong)
    assert all("broken.csv: line" in reason and "the OpName is not" in reason for reason in wrong)
    assert len(wrong) == 2


def test_wrong_use_is_one_clear_line(ait, tmp_path):
    assert "no such folder" in error_line(ait("llm", "opcheck", "-i", "nowhere"))
    assert "is no dump" in error_line(ait("llm", "opcheck", "-i", tmp_path))
    assert "give abs, cos_sim or kl" in error_line(ait("llm", "opcheck", "-i", tmp_path, "-metric", "x"))
    assert "give ids as 24_1,2_3_5" in error_line(ait("llm", "opcheck", "-i", tmp_path, "-ids", "a"))
    assert "invalid int value" in error_line(ait("llm", "opcheck", "-i", tmp_path, "-device", "x"))
    assert "give failed, bound or unchecked" in error_line(ait("llm", "opcheck", "-i", tmp_path, "--fail-on", "x"))
    assert "needs a value" in error_line(ait("llm", "opcheck", "-i"))
