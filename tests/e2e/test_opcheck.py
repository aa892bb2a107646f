"""`ait llm opcheck` on dumps of the engine: sound kernels are within the bound, and only a broken one is not."""

import csv
import json
import os
import pathlib
import re
import shlex
import subprocess

import numpy as np
import pytest
from conftest import REPOSITORY, atb_bin, error_line

LIBATB = REPOSITORY / "build/engine/lib/libatb.so"
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
        assert "\n" not in row["op_param"]
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


def test_every_spelling_of_the_documents_is_taken(ait, dump):
    dumped = dump("fp16", options=("-time", "2", "--type", "op", "tensor"))
    (table,) = dumped.rglob("operation_tensors_0.csv")
    (rank,) = (dumped / "tensors").iterdir()
    values = [f"{rank}/0/", table, "out", "4_0,2", "self，rms", ["kl", "cos_sim"], 0]
    short = ["-i", "-c", "-o", "-ids", "-opname", "-metric", "-device", "-rerun"]
    long = ["--input", "--csv-path", "--output", "--operation-ids", "--operation-name", "--precision-metric"]
    long += ["--device-id", "--atb-rerun"]
    plain = ["-i", "-c", "-o", "--ids", "--opname", "--metric", "-device", "--rerun"]
    found = []
    for names in (short, long, plain):
        words = [names[-1]]
        for name, value in zip(names, values):
            words += [name, *value] if isinstance(value, list) else [name, value]
        document, rows = check(ait, *words)
        assert pathlib.Path(document["report"]).parent.name == "out"
        assert all(float(row["cosine_similarity"]) > 0.999 and row["source"].startswith("rerun: ") for row in rows)
        found.append([(row["op_id"], row["op_name"]) for row in rows])
    assert found[0] == found[1] == found[2]
    assert {name for _, name in found[0]} == {"SelfAttentionOperation", "RmsNormOperation"}
    assert {number.split("_")[0] for number, _ in found[0]} == {"2", "4"}


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
    assert "is not a dump" in error_line(ait("llm", "opcheck", "-i", tmp_path))
    assert "give abs, cos_sim or kl" in error_line(ait("llm", "opcheck", "-i", tmp_path, "-metric", "x"))
    assert "give ids as 24_1,2_3_5" in error_line(ait("llm", "opcheck", "-i", tmp_path, "-ids", "a"))
    assert "invalid int value" in error_line(ait("llm", "opcheck", "-i", tmp_path, "-device", "x"))
    assert "give failed, bound or unchecked" in error_line(ait("llm", "opcheck", "-i", tmp_path, "--fail-on", "x"))
    assert "needs a value" in error_line(ait("llm", "opcheck", "-i"))
    assert "force_fp16 or force_fp32" in error_line(ait("llm", "opcheck", "-i", tmp_path, "-pmode", "x"))
    assert "is for -rerun" in error_line(ait("llm", "opcheck", "-i", tmp_path, "--rerun-plugin", "x.so"))
    refused = ait("llm", "opcheck", "-i", tmp_path, "-rerun", "--rerun-plugin", "nowhere.so")
    assert "nowhere.so: rerun library not found" in error_line(refused)
    assert "has no function ait_rerun_plugin" in error_line(
        ait("llm", "opcheck", "-i", tmp_path, "-rerun", env={"AIT_OPCHECK_LIB_PATH": LIBATB})
    )


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "w8a8"])
def test_an_operation_that_is_run_again_is_right_where_the_recorded_one_was_not(ait, dump, dtype):
    dumped = dump(dtype, "scale@layer=1,op=RmsNorm,size=0.2")
    recorded, _ = check(ait, "-i", dumped)
    assert recorded["summary"]["outside_bound"] > 0
    document, rows = check(ait, "-i", dumped, "-rerun")
    assert document["summary"]["outside_bound"] == 0
    assert document["summary"]["rerun"] == document["summary"]["outputs"] > 100
    assert {row["source"] for row in rows} == {"rerun: libait_rerun_engine.so"}


def test_what_ranks_do_together_is_not_run_again(ait, dump):
    _, rows = check(ait, "-i", dump("fp16", "scale@layer=0,op=RmsNorm,size=0 --tp 2"), "-rerun")
    together = {row["op_name"] for row in rows if row["source"].startswith("dump: several ranks")}
    assert together == {"AllReduceOperation", "AllGatherOperation"}
    assert together.isdisjoint(row["op_name"] for row in rows if row["source"].startswith("rerun: "))


def test_inputs_alone_are_enough_to_run_again(ait, dump):
    dumped = dump("fp16", options=("-time", "0"))
    assert "Only the rerun mode allows" in error_line(ait("llm", "opcheck", "-i", dumped))
    document, _ = check(ait, "-i", dumped, "-rerun")
    assert document["summary"]["outputs"] > 100
    assert document["summary"]["outside_bound"] == document["summary"]["not_checked"] == 0


@pytest.fixture(scope="module")
def build_plugin(tmp_path_factory):
    """Builds the plug-in of the documentation, or what `change` makes of it."""
    page = (REPOSITORY / "docs/opcheck.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```c\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^(cc .*)$", page, re.MULTILINE)

    def build(change=lambda text: text):
        folder = tmp_path_factory.mktemp("plugin")
        (folder / "mine.c").write_text(change(source))
        words = shlex.split(command.replace("$PREFIX/include/ait", str(REPOSITORY / "src")))
        subprocess.run([*words, "-Wall", "-Wextra", "-Werror", "-std=c99", "-pedantic"], cwd=folder, check=True)
        return folder / "libmine.so"

    return build


def test_the_plugin_of_the_documentation_works(ait, dump, build_plugin):
    plugin = build_plugin()
    dumped = dump("fp32", "scale@layer=1,op=Elewise,size=0.2")
    _, rows = check(ait, "-i", dumped, "-rerun", "--rerun-plugin", plugin)
    mine = [row for row in rows if row["source"] == "rerun: libmine.so"]
    assert mine and all(row["bound_result"] == "PASS" for row in mine)
    assert {row["op_name"] for row in mine} == {"ElewiseOperation"}
    others = [row for row in rows if row not in mine]
    assert others and all("dump: libmine.so: has no" in row["source"] for row in others)
    done = ait("llm", "opcheck", "-i", dumped, "-rerun", env={"AIT_OPCHECK_LIB_PATH": plugin})
    assert f"{len(mine)} outputs are those of my library 1.0, {len(others)} those of the dump" in done.stdout


def test_a_plugin_that_crashes_takes_nothing_with_it(ait, dump, build_plugin):
    plugin = build_plugin(lambda text: text.replace("float* sum =", "__builtin_trap();\n  float* sum ="))
    document, rows = check(ait, "-i", dump("fp32"), "-rerun", "--rerun-plugin", plugin)
    crashed = [row for row in rows if "libmine.so: crashed: its process was killed by signal" in row["fail_reason"]]
    assert {row["op_name"] for row in crashed} == {"ElewiseOperation"}
    assert all(row["precision_result"] == "FAILED" and row["out_tensor_id"] == "NaN" for row in crashed)
    assert document["summary"]["outputs"] == len(rows) - len(crashed) > 100


def test_data_of_failing_operations_are_a_dump_that_fails_alike(ait, dump):
    dumped = dump("fp16", "scale@layer=1,op=RmsNorm,size=0.2", "scale@layer=1,op=ReshapeAndCache,size=0.2")
    document, rows = check(ait, "-i", dumped, "--save-error-data", "-o", "result")
    failing = [row for row in rows if "FAILED" in (row["precision_result"], row["bound_result"])]
    assert {row["op_name"] for row in failing} >= {"RmsNormOperation", "ReshapeAndCacheOperation"}
    assert all((row["error_data"] != "") == (row["again"] != "") == (row in failing) for row in rows)
    saved, again = check(ait, "-i", document["error_data"], "-o", "again")
    assert saved["summary"]["not_checked"] == 0
    columns = ["op_id", "op_name", "op_param", "rank", "round", "max_rel_error", "error_of_bound"]
    assert [[r[c] for c in columns] for r in again] == [[r[c] for c in columns] for r in failing]
    norm = pathlib.Path(next(r["error_data"] for r in failing if r["op_name"] == "RmsNormOperation"))
    golden, bound = np.load(norm / "golden/outtensor0.npy"), np.load(norm / "golden/bound0.npy")
    x, gamma = (atb_array(norm / f"before/intensor{i}.bin").astype(float) for i in range(2))
    epsilon = json.loads((norm / "op_param.json").read_text())["normParam"]["epsilon"]
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * gamma
    assert np.all(np.abs(golden - expected) <= 1e-6 + bound)


def atb_array(path):
    header, _, data = path.read_bytes().partition(b"$End=1\n")
    dims = re.search(rb"dims=([\d,]+)", header)[1]
    return np.frombuffer(data, np.float16).reshape([int(size) for size in dims.split(b",")])


def test_other_types_can_be_forced(ait, dump):
    dumped = dump("fp32")
    _, rows = check(ait, "-i", dumped, "-opname", "rms", "-pmode", "force_fp16", "-rerun", "-j", "2")
    assert rows and {row["precision_standard"] for row in rows} == {"99.9%(error<0.001)"}
    assert {row["bound_result"] for row in rows} == {"PASS"}


MULS = '{"elewiseType": 2, "mulsParam": {"varAttr": 2.0}}'
ONES = atb_bin(np.ones(3, np.float32), 0)
TWOS = atb_bin(np.full(3, 2, np.float32), 0)


def described(dims, dtype=0):
    """A header that promises a tensor, and three numbers."""
    return ONES.replace(b"dims=3", b"dims=" + dims).replace(b"dtype=0", f"dtype={dtype}".encode())


# What each operation of a dump holds, and what its row must say.
HOSTILE = {
    "0_ElewiseOperation": (MULS, [ONES], TWOS, ""),
    "1_ElewiseOperation": ("{", [ONES], TWOS, "in the JSON of the parameters (at byte 1)"),
    "2_ElewiseOperation": ("[1]", [ONES], TWOS, "parameters are an object"),
    "3_ElewiseOperation": ('{"elewiseType": "muls"}', [ONES], TWOS, "elewiseType"),
    "4_ElewiseOperation": ('{"elewiseType": 99}', [ONES], TWOS, "elewiseType"),
    "5_ElewiseOperation": (MULS, [], TWOS, "was not recorded"),
    "6_ElewiseOperation": (MULS, [ONES], None, "output 0 was not recorded"),
    "7_ElewiseOperation": (MULS, [ONES[:-5]], TWOS, "intensor0.bin"),
    "8_ElewiseOperation": (MULS, [described(b"1099511627776")], TWOS, "intensor0.bin"),
    "9_ElewiseOperation": (MULS, [described(b"4294967296,4294967296,4294967296")], TWOS, "intensor0.bin"),
    "10_ElewiseOperation": (MULS, [described(b"-3")], TWOS, "intensor0.bin"),
    "11_ElewiseOperation": (MULS, [described(b"3", 99)], TWOS, "dtype 99"),
    "12_ElewiseOperation": (MULS, [ONES], described(b"1099511627776"), "outtensor0.bin"),
    "13_ElewiseOperation": (MULS, [ONES], ONES, "relative pass rate"),
    "14_MysteryOperation": ("{}", [ONES], TWOS, "operation type not supported"),
    "15_RepeatOperation": ('{"multiples": [1000000000000]}', [ONES], TWOS, "MiB"),
    "16_RepeatOperation": ('{"multiples": [4611686018427387904]}', [ONES], TWOS, "RepeatOperation"),
    "17_FillOperation": ('{"withMask": false, "value": [1], "outDim": [1000000, 1000000]}', [], TWOS, "MiB"),
    "18_AsStridedOperation": ('{"size": [9999999999], "stride": [0], "offset": [0]}', [ONES], TWOS, "MiB"),
    "19_TransposeOperation": ('{"perm": [5, 5, 5]}', [ONES], TWOS, "TransposeOperation"),
    "20_LinearOperation": ("{}", [ONES, ONES, ONES], TWOS, "LinearOperation"),
    "21_ElewiseOperation": (" " * 100000, [ONES], TWOS, "op_param.json"),
}


def test_every_hostile_operation_is_a_row_with_its_reason(ait, tmp_path):
    root = tmp_path / "ait_dump/tensors/0_7/0"
    for name, (param, inputs, output, _) in HOSTILE.items():
        (root / name / "after").mkdir(parents=True)
        (root / name / "op_param.json").write_text(param)
        for i, data in enumerate(inputs):
            (root / name / f"after/intensor{i}.bin").write_bytes(data)
        if output is not None:
            (root / name / "after/outtensor0.bin").write_bytes(output)
    document, rows = check(ait, "-i", tmp_path / "ait_dump")
    assert document["summary"]["operations"] == len(rows) == len(HOSTILE)
    for row, (name, (_, _, _, reason)) in zip(rows, HOSTILE.items()):
        assert name == f"{row['op_id']}_{row['op_name']}"
        assert reason in row["fail_reason"], name
        assert row["precision_result"] == ("PASS" if reason == "" else row["precision_result"]) != ""
        assert row["fail_reason"] != "" or reason == ""


def test_every_hostile_line_of_a_table_is_a_row_with_its_reason(ait, tmp_path):
    root = tmp_path / "ait_dump/tensors/0_7/0"
    for number in range(3):
        (root / f"{number}_ElewiseOperation/after").mkdir(parents=True)
        (root / f"{number}_ElewiseOperation/after/intensor0.bin").write_bytes(ONES)
        (root / f"{number}_ElewiseOperation/after/outtensor0.bin").write_bytes(TWOS)
    lines = {
        f"ElewiseOperation_0|{MULS}|float": "",
        "ElewiseOperation|{}|float": "line 3: the OpName is not",
        f"ElewiseOperation_0_x|{MULS}|float": "line 4: the OpName is not",
        f"ElewiseOperation_99999999999999999999999|{MULS}|float": "line 5: the OpName is not",
        f"_1|{MULS}|float": "line 6: the OpName is not",
        "ElewiseOperation_1": "line 7: the OutDType is empty",
        f"ElewiseOperation_2|{'x' * 70000}|float": "line 8: the OpParam has 70000 bytes",
        f"ElewiseOperation_3|{MULS}|float": "tensor dir of 3 not found",
        f"ElewiseOperation_4_{'1_' * 5000}1|{MULS}|float": "not found",
        "\x00\x07|\x1b[2J|": "line 11: the OpName is not",
        "y" * 100000: "line 12: the OpName is not",
    }
    table = tmp_path / "operation_tensors_0.csv"
    table.write_bytes(("OpName|OpParam|OutDType\n" + "\n".join(lines)).encode() + b"\n\xff\xfe|{}|float")
    document, rows = check(ait, "-i", root, "-c", table)
    assert document["summary"]["operations"] == len(rows) == len(lines) + 1
    reasons = [row["fail_reason"] for row in rows]
    assert reasons.count("") == 1
    for expected in lines.values():
        assert any(expected in reason for reason in reasons), expected
    assert "line 13: the OpName is not" in " ".join(reasons)
    for header in ("", "OpName|OpParam", "OutDType", "\x00" * 10):
        table.write_text(header + "\nElewiseOperation_0|{}|float\n")
        refused = ait("llm", "opcheck", "-i", root, "-c", table)
        assert "Cannot find enough info in csv file" in error_line(refused)
