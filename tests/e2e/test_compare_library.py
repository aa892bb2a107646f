"""`ait llm compare` on two dumps of an acceleration library: the same graph, or float against quantised."""

import json
import pathlib

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from atb_run import Library
from engine_bin import read_bin
from pairing import read_rows
from torch_run import make_model


def run_pair(folder, golden, mine, layers=2, batch=1):
    """Two dumps of one model on the same tokens; my run has `batch` copies of the prompt."""
    torch.set_num_threads(1)
    model = make_model("llama", layers)
    prompt = torch.randint(1, 97, (1, 7), generator=torch.Generator().manual_seed(1))
    words = [torch.tensor([[5]]), torch.tensor([[9]])]
    golden_truth = Library(model, folder / "golden/ait_dump", **golden).run(prompt, words)
    mine_truth = Library(model, folder / "mine/ait_dump", **mine).run(
        prompt.repeat(batch, 1), [word.repeat(batch, 1) for word in words]
    )
    return golden_truth, mine_truth


def compare(ait, folder):
    done = ait(
        "llm", "compare", "-gp", folder / "golden", "-mp", folder / "mine", "-o", folder / "out", "--extended", "--json"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), read_rows(folder / "out")


def value_of(truth, row, side):
    output = int(row[f"{side}_data_path"].rsplit("outtensor", 1)[1][0])
    expected = truth.of.get((int(row["token_id"]), row[f"{side}_operation"], output))
    return {(module, stem) for module, stem, _ in expected or []}


def check(golden_truth, mine_truth, rows):
    """Whether paired tensors stand for the same value, and how many operations of mine have none."""
    known = {(module, stem) for expected in golden_truth.of.values() for module, stem, _ in expected or []}
    wanted = {
        (token, operation)
        for (token, operation, _), expected in mine_truth.of.items()
        if any((module, stem) in known for module, stem, _ in expected or [])
    }
    found = set()
    for row in rows:
        if not row["golden_data_path"] or not row["my_data_path"]:
            continue
        golden, mine = value_of(golden_truth, row, "golden"), value_of(mine_truth, row, "my")
        assert golden & mine or not (golden or mine), row
        found.add((int(row["token_id"]), row["my_operation"]))
    assert len(wanted & found) >= 0.95 * len(wanted), sorted(wanted - found)[:10]


def test_the_same_graph_is_paired_by_place_in_other_types_and_spellings(ait, tmp_path):
    truths = run_pair(
        tmp_path, dict(dtype="float32", topology=False), dict(dtype="bfloat16", suffix="_output", old_rank_names=True)
    )
    document, rows = compare(ait, tmp_path)
    check(*truths, rows)
    assert document["pairing"]["method"] == "by the place in the graph"
    assert document["pairing"]["my"]["paired"] == document["pairing"]["my"]["operations"]
    assert document["pairing"]["certain"] + document["pairing"]["likely"] == document["pairing"]["my"]["paired"]
    assert document["summary"]["failed"] == 0
    assert max(float(row["relative_euclidean_distance"]) for row in rows) < 0.05


def test_another_batch_is_held_against_repeated_data(ait, tmp_path):
    run_pair(tmp_path, dict(), dict(), batch=3)
    document, rows = compare(ait, tmp_path)
    assert document["summary"]["failed"] == 0
    repeated = [row for row in rows if "golden data is repeated." in row["cmp_fail_reason"]]
    assert len(repeated) == len(rows) > 0
    for row in rows:
        shape = list(read_bin(pathlib.Path(row["golden_data_path"])).shape)
        assert row["golden_shape"] == str(shape) and row["my_shape"] == str([3 * shape[0], *shape[1:]])
    # Position tables aside, each of the copies computed the same.
    assert max(float(row["relative_euclidean_distance"]) for row in rows) < 1e-3


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("names", [None, 3], ids=["names", "random names"])
def test_float_is_held_against_quantised(ait, tmp_path, ranks, names):
    truths = run_pair(tmp_path, dict(ranks=ranks), dict(quantised=True, ranks=ranks, random_names=names), layers=3)
    document, rows = compare(ait, tmp_path)
    check(*truths, rows)
    assert document["pairing"]["method"] == "by the values of tensors, and by the types and order of operations"
    assert any("quantised" in reason for reason in document["pairing"]["my"]["unpaired"])


def test_one_process_is_held_against_two(ait, tmp_path):
    truths = run_pair(tmp_path, dict(), dict(ranks=2))
    _, rows = compare(ait, tmp_path)
    check(*truths, rows)
    assert any(row["my_transform"] == "shards side by side" for row in rows)
    assert any(row["my_transform"] == "added up" for row in rows)
    assert all(float(row["relative_euclidean_distance"]) < 0.02 for row in rows if row["relative_euclidean_distance"])


def test_an_error_on_one_rank_only_is_seen(ait, tmp_path):
    run_pair(tmp_path, dict(ranks=2), dict(ranks=2))
    (spoilt,) = (tmp_path / "mine").glob(
        "ait_dump/tensors/1_*/0/2_*/1_Attention/0_LinearOperation/after/outtensor0.bin"
    )
    content = bytearray(spoilt.read_bytes())
    content[-200:] = bytes(200)
    spoilt.write_bytes(content)
    _, rows = compare(ait, tmp_path)
    differing = [row["data_id"] for row in rows if row["identical"] == "False"]
    assert differing == ["2_Prefill_layer/1_Attention/0_LinearOperation/outtensor0@1"]
