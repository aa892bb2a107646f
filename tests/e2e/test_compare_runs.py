"""`ait llm compare` on runs that were fed other tokens, warmed up, or recorded other rounds and ranks; what a mapping
file binds, and what `--why` says."""

import json
import random

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import pairing_runs
import torch
from conftest import error_line
from pairing import Case, read_rows


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", pairing_runs.KINDS)
def test_runs_are_laid_upon_each_other(ait, tmp_path, kind, seed):
    case = pairing_runs.KINDS[kind](random.Random(seed), tmp_path)
    _, rows = case.compare(ait)
    wanted, found, wrong = case.judge(rows)
    assert not wrong, wrong[:5]
    assert len(found & wanted) >= case.least * len(wanted), sorted(wanted - found)[:10]


def test_another_prompt_is_no_fault(ait, tmp_path):
    case = pairing_runs.other_prompt(random.Random(5), tmp_path)
    done, rows = case.compare(ait)
    assert "the runs were fed different tokens from token 0 on (" in done.stdout
    assert "Fault:" not in done.stdout
    pairs = [row for row in rows if row["golden_data_path"] and row["my_data_path"]]
    assert len(pairs) > 40
    assert {row["cmp_fail_reason"] for row in pairs} == {"the runs were fed different tokens from token 0 on."}
    done = ait(
        *("llm", "compare", "-gp", case.golden, "-mp", case.mine, "-o", "mapped"),
        *("--token-map", "0:0,1:0,2:1" if case.library.split_programs else "0:0,1:1,2:2"),
    )
    assert "compared all the same, as --token-map says" in done.stdout
    assert any(row["cosine_similarity"] for row in read_rows(tmp_path / "mapped"))


def test_free_running_generation_is_compared_as_long_as_it_is_the_same(ait, tmp_path):
    case = pairing_runs.free_running(random.Random(3), tmp_path)
    done, rows = case.compare(ait)
    assert f"the runs were fed different tokens from token {case.first} on (golden " in done.stdout
    measured = {int(row["token_id"]) for row in rows if row["cosine_similarity"]}
    assert measured == set(range(case.first))


@pytest.mark.parametrize("inputs", [False, True])
def test_a_faulty_step_is_no_warm_up(ait, tmp_path, inputs):
    case = pairing_runs.RunCase(
        *(random.Random(1), tmp_path),
        family="llama",
        inputs=inputs,
        fault=(0, "norm", lambda tensor: tensor * torch.linspace(-3, 3, tensor.shape[-1])),
        fault_tokens={1},
    )
    prompt = torch.arange(3, 10)[None]
    words = [torch.tensor([[5]])] * 3  # the same word again, so that rounds look alike
    pairing_runs.feed(case.model, case.recorder, prompt, words)
    case.library.run(prompt, words)
    done, rows = case.compare(ait)
    assert "warm-up" not in done.stdout
    assert {row["token_id"] for row in rows} == {"0", "1", "2"}
    assert "Fault: token 1, " in done.stdout
    assert "RmsNormOperation" in done.stdout.splitlines()[0]


@pytest.mark.parametrize("inputs", [False, True])
def test_a_faulty_embedding_is_no_other_prompt(ait, tmp_path, inputs):
    case = pairing_runs.RunCase(random.Random(1), tmp_path, family="llama", inputs=inputs)
    table = case.library.weights["model.embed_tokens.weight"]
    case.library.weights["model.embed_tokens.weight"] = table.roll(1, 0)  # rows of other words
    prompt, words = torch.arange(3, 20, 3)[None], [torch.tensor([[word]]) for word in (40, 50, 60)]
    pairing_runs.feed(case.model, case.recorder, prompt, words)
    case.library.run(prompt, words)
    done, rows = case.compare(ait)
    assert "different tokens" not in done.stdout
    assert done.stdout.startswith("Fault: token 0, 0_WordEmbedding")
    first = next(row for row in rows if row["my_op_type"] == "RmsNormOperation")
    assert float(first["relative_euclidean_distance"]) > 1


def test_one_device_of_a_run_is_compared_with_itself(ait, tmp_path):
    case = pairing_runs.TwinCase(random.Random(0), tmp_path, ranks=2, steps=1)
    pairing_runs.keep(case.mine, ranks={1})
    done, rows = case.compare(ait)
    assert "both runs have rank 1: the tensors of other ranks are rows without a partner" in done.stdout
    assert "Fault:" not in done.stdout
    lone = [row for row in rows if not row["my_data_path"]]
    assert lone and {row["cmp_fail_reason"] for row in lone} == {"my-path has no rank 0."}
    paired = [row for row in rows if row["my_data_path"]]
    assert {row["cosine_similarity"] for row in paired} == {"1.0"}


def test_other_devices_of_a_divided_run_are_doubted(ait, tmp_path):
    case = pairing_runs.TwinCase(random.Random(0), tmp_path, ranks=2, steps=0)
    pairing_runs.keep(case.golden, ranks={0})
    pairing_runs.keep(case.mine, ranks={1})
    done, _ = case.compare(ait)
    assert "note: golden's rank 0 is compared with my rank 1, as each is the first rank of its run; " in done.stdout


def test_rounds_that_have_nothing_in_common_are_not_paired(ait, tmp_path):
    case = pairing_runs.TwinCase(random.Random(2), tmp_path, ranks=1)
    pairing_runs.keep(case.golden, rounds={0})
    pairing_runs.keep(case.mine, rounds={1, 2, 3})
    line = error_line(ait("llm", "compare", "-gp", case.golden, "-mp", case.mine))
    assert "golden has the rounds [0] and my side [1, 2, 3], but none of them correspond" in line
    pairing_runs.keep(case.mine, rounds={1})
    assert "none of them correspond" in error_line(ait("llm", "compare", "-gp", case.golden, "-mp", case.mine))


# What a mapping file says


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Case(tmp_path_factory.mktemp("plain"), steps=0)


def compare_mapped(ait, case, tmp_path, mapping):
    (tmp_path / "mapping.json").write_text(json.dumps(mapping))
    done = ait(
        *("llm", "compare", "-gp", case.golden, "-mp", case.mine, "-o", "out", "--extended"),
        *("-mf", tmp_path / "mapping.json"),
    )
    assert done.returncode == 0, done.stderr
    return done, read_rows(tmp_path / "out")


def test_a_mapped_type_goes_with_its_listed_types_whatever_the_data_say(ait, plain, tmp_path):
    _, rows = compare_mapped(ait, plain, tmp_path, {"SelfAttentionOperation": ["LlamaMLP"]})
    mapped = [row for row in rows if row["my_op_type"] == "SelfAttentionOperation"]
    assert len(mapped) == 2
    for row in mapped:
        assert row["golden_op_type"] == "LlamaMLP"
        assert "the mapping file says so" in row["pairing_reason"]
    others = [row for row in rows if row["golden_data_path"] and row not in mapped]
    assert not [row for row in others if "mapping file" in row["pairing_reason"]]


def test_a_named_tensor_is_compared_with_that_tensor_and_no_other(ait, plain, tmp_path):
    mapping = {"ActivationOperation_outtensor0": ["LlamaAttention_output_0"]}
    _, rows = compare_mapped(ait, plain, tmp_path, mapping)
    mapped = [row for row in rows if row["my_op_type"] == "ActivationOperation"]
    assert len(mapped) == 2
    for row in mapped:
        assert row["golden_data_path"].endswith("self_attn/output_0.pth")
        assert "shape" in row["cmp_fail_reason"]
    named = [row for row in rows if row["golden_data_path"].endswith("self_attn/output_0.pth")]
    assert [row["data_id"] for row in named] == [row["data_id"] for row in mapped]


def test_data_choose_among_the_types_that_a_mapping_lists(ait, plain, tmp_path):
    _, rows = compare_mapped(ait, plain, tmp_path, {"RmsNormOperation": ["LlamaRMSNorm", "LlamaMLP"]})
    norms = [row for row in rows if row["my_op_type"] == "RmsNormOperation"]
    assert len(norms) == 5 and {row["golden_op_type"] for row in norms} == {"LlamaRMSNorm"}
    for row in norms:
        assert row["pairing_reason"].startswith("the data agree")
        assert row["pairing_reason"].endswith("; the mapping file lists the two types")


def test_an_impossible_mapping_says_so(ait, plain, tmp_path):
    done, rows = compare_mapped(ait, plain, tmp_path, {"RmsNormOperation": ["LlamaRotaryEmbedding"]})
    assert "note: the mapping file's line RmsNormOperation: LlamaRotaryEmbedding pairs nothing: " in done.stdout
    norms = [row for row in rows if row["my_op_type"] == "RmsNormOperation"]
    assert {row["cmp_fail_reason"].strip() for row in norms} == {
        "the mapping file lists LlamaRotaryEmbedding for it, and none of these is left for it."
    }


# Why


def test_why_says_what_was_weighed(ait, plain, tmp_path):
    both = ("llm", "compare", "-gp", plain.golden, "-mp", plain.mine)
    name = "2_Prefill_layer/1_Attention/1_LinearOperation"
    done = ait(*both, "--why", name)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []  # no report
    assert f"token 0, {name}/outtensor0\n  golden   root.model.layers.0.self_attn.k_proj/output" in done.stdout
    assert "certain: the data agree" in done.stdout
    title = f"What {name}/outtensor0 (LinearOperation) was compared with, the nearest first, in 2 places"
    table = done.stdout.split(title)[1]
    assert "root.model.layers.0.self_attn.k_proj/output" in table.splitlines()[2]
    assert "root.model.layers.0.self_attn.v_proj/output" in table  # which is as wide
    document = json.loads(ait(*both, "--why", name, "--json").stdout)
    (weighed,) = document["weighed"]
    best, *rest = weighed["partners"]
    assert best["operation"] == "root.model.layers.0.self_attn.k_proj" and best["type"] == "Linear"
    assert best["votes"] == best["agreeing"] == best["places"] == 2
    assert best["nearest"] < 0.01 < rest[0]["nearest"]
    assert document["pairs"][0]["pairing"] == "certain"


def test_why_takes_operations_of_either_side(ait, plain):
    both = ("llm", "compare", "-gp", plain.golden, "-mp", plain.mine)
    done = ait(*both, "--why", "root.model.layers.1.mlp.up_proj")
    assert "my side  3_Prefill_layer/" in done.stdout
    assert "What root.model.layers.1.mlp.up_proj/output (Linear) was compared with" in done.stdout
    line = error_line(ait(*both, "--why", "root.model.layers.1.mlp.up_pro"))
    assert "did you mean root.model.layers.1.mlp.up_proj?" in line
    assert "leave out --output" in error_line(ait(*both, "--why", "x", "-o", "out"))
    done = ait("llm", "compare", "-gp", plain.mine, "-mp", plain.mine, "--why", "2_Prefill_layer")
    assert "certain: by the place in the graph" in done.stdout
