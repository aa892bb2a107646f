"""`ait llm compare` on dumps: who is paired with whom, held against what is known by construction."""

import json
import re
import shutil

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from conftest import atb_bin, error_line
from pairing import Case, read_rows

COVERED = 0.95

FAST = {
    "llama": dict(layers=2),
    "one layer": dict(layers=1, family="qwen2"),
    "one layer, random names": dict(layers=1, names=5),
    "twelve layers in bf16, random names": dict(layers=12, dtype="bfloat16", names=2, steps=1),
    "fused qkv and gate-up": dict(fused_qkv=True, fused_gate_up=True, swiglu=True, add_norm=True),
    "fused, not split, flat, random names": dict(
        fused_qkv=True, fused_gate_up=True, swiglu=True, split_outputs=False, nested=False, names=8
    ),
    "two shards": dict(ranks=2),
    "one layer in two shards, random names": dict(layers=1, ranks=2, names=4, steps=1),
    "fused, two shards, random names": dict(ranks=2, fused_qkv=True, fused_gate_up=True, names=4, family="mistral"),
    "w8a8": dict(quantised=True, family="qwen2"),
    "w8a8, random names, two shards": dict(layers=3, quantised=True, names=7, ranks=2),
    "no topology": dict(topology=False, names=3),
    "one graph for prompt and words": dict(split_programs=False),
    "embedding shared by both graphs": dict(shared_embedding=True),
    "outputs only": dict(recorder=dict(inputs=False)),
    "modules in the order of registration": dict(recorder=dict(order=False), names=6),
    "warm-up": dict(warm_up=1),
    "two warm-ups, no topology": dict(warm_up=2, topology=False),
    "a batch": dict(batch=2),
    "a batch in two shards, random names": dict(batch=2, ranks=2, names=4),
    "old and new spellings": dict(old_rank_names=True, suffix="_output", inputs=True),
    "whole logits": dict(last_only=False),
    "only a prompt": dict(steps=0),
}

SLOW = {
    f"{family} of {layers} layers, {dtype}{' w8a8' if quantised else ''}, {ranks} shard(s)"
    f"{', random names' if names else ''}": dict(
        family=family, layers=layers, dtype=dtype, quantised=quantised, ranks=ranks, names=names
    )
    for number, (family, layers, (dtype, quantised), ranks) in enumerate(
        (family, layers, kind, ranks)
        for family in ("llama", "qwen2", "mistral")
        for layers in (1, 2, 12, 40)
        for kind in (("float32", False), ("float16", False), ("bfloat16", False), ("float16", True))
        for ranks in (1, 2)
    )
    for names in ([None, number + 1][(number // 2 + number) % 2],)
}


def check(case, ait):
    _, rows = case.compare(ait)
    wanted, found, wrong = case.judge(rows)
    assert not wrong, wrong[:5]
    assert len(found) >= COVERED * len(wanted), sorted(wanted - found)[:10]


@pytest.mark.parametrize("options", FAST.values(), ids=FAST.keys())
def test_what_has_a_counterpart_is_paired_and_nothing_wrongly(ait, tmp_path, options):
    check(Case(tmp_path, **options), ait)


@pytest.mark.slow
@pytest.mark.parametrize("options", SLOW.values(), ids=SLOW.keys())
def test_every_kind_of_model_is_paired(ait, tmp_path, options):
    check(Case(tmp_path, **options), ait)


def overwrite(tensor):
    import torch

    return torch.randn(tensor.shape, generator=torch.Generator().manual_seed(3))


FAULTS = {
    "scaled": lambda tensor: tensor * 1.5,
    "overwritten": overwrite,
    "infinite": lambda tensor: tensor * float("inf"),
}


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("place", ["norm", "attention", "down"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_does_not_change_who_is_paired(ait, tmp_path, layers, place, fault):
    check(Case(tmp_path, layers=layers, steps=1, fault=(0, place, fault)), ait)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """One small case for what does not depend on the kind of model. Not to be written to."""
    return Case(tmp_path_factory.mktemp("plain"))


def test_the_summary_leads_with_coverage_and_tokens(ait, plain, tmp_path):
    done = ait("llm", "compare", "-gp", plain.golden, "-mp", plain.mine, "-o", tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0] == "No fault: rounding explains every difference."
    assert lines[2].startswith("my side: ") and "operations paired" in lines[2]
    assert any(line.startswith("golden: ") for line in lines)
    assert "layers: 2 in golden, 2 in my side" in lines
    table = done.stdout.split("golden folder")[1].splitlines()
    assert [line.split() for line in table[1:4]] == [
        ["0", "0", "0", "prefill"],
        ["1", "1", "0", "decode"],
        ["2", "2", "1", "decode"],
    ]


def test_counts_of_the_summary_add_up(ait, plain, tmp_path):
    done = ait("llm", "compare", "-gp", plain.golden, "-mp", plain.mine, "-o", tmp_path)
    assert done.stderr == "ait: comparing a torch dump with an acceleration library's dump\n"
    pairs, *parts = map(
        int, re.search(r"(\d+) pairs: (\d+) identical, (\d+) differ, (\d+) could", done.stdout).groups()
    )
    alone = int(re.search(r"(\d+) without a partner", done.stdout).group(1))
    rows = read_rows(tmp_path)
    assert pairs == sum(parts) == sum(1 for row in rows if row["golden_data_path"] and row["my_data_path"])
    assert pairs + alone == len(rows)


def test_operations_are_counted_where_only_inputs_were_recorded(ait, plain, tmp_path):
    for side in ("g", "m"):
        for path in plain.mine.rglob("outtensor*.bin"):
            target = tmp_path / side / path.relative_to(plain.mine)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target.with_name(path.name.replace("outtensor", "intensor")))
    done = ait("llm", "compare", "-gp", "g", "-mp", "m", "-o", "out", "--json")
    found = json.loads(done.stdout)
    assert found["pairing"]["my"]["paired"] == found["pairing"]["my"]["operations"] > 40
    assert found["pairing"]["certain"] == found["pairing"]["my"]["paired"]
    assert found["summary"]["identical"] == found["summary"]["rows"] > 40


def test_rows_come_in_the_order_of_the_computation(ait, plain, tmp_path):
    ait("llm", "compare", "-gp", plain.golden, "-mp", plain.mine, "-o", tmp_path, "--extended")
    rows = read_rows(tmp_path)
    assert [int(row["token_id"]) for row in rows] == sorted(int(row["token_id"]) for row in rows)
    mine = [row["my_operation"] for row in rows if row["token_id"] == "0" and row["my_operation"]]
    layer = [operation for operation in mine if operation.startswith("2_")]
    assert layer[0] == "2_Prefill_layer/0_RmsNormOperation"
    assert layer[-2:] == ["2_Prefill_layer/5_ElewiseOperation", "2_Prefill_layer"]
    assert all(
        row["pairing"] in ("certain", "likely") for row in rows if row["golden_data_path"] and row["my_data_path"]
    )


def test_json_has_coverage_and_tokens(ait, plain, tmp_path):
    done = ait("llm", "compare", "-gp", plain.golden, "-mp", plain.mine, "-o", tmp_path, "--json")
    found = json.loads(done.stdout)["pairing"]
    assert found["my"]["paired"] >= COVERED * found["my"]["operations"]
    assert found["my_layers"] == 2
    assert [each["phase"] for each in found["tokens"]] == ["prefill", "decode", "decode"]


def test_the_first_jump_of_the_error_is_pointed_out(ait, tmp_path):
    case = Case(tmp_path, layers=3, steps=0, fault=(1, "attention", lambda tensor: tensor * 1.2))
    done, _ = case.compare(ait)
    assert done.stdout.startswith("Fault: token 0, 3_Prefill_layer/1_Attention/4_SelfAttentionOperation (layer 1)\n")
    (following,) = [line for line in done.stdout.splitlines() if line.startswith("Next: ")]
    assert following.startswith("Next: look at where the error begins with: ait show ")
    assert following.endswith("3_Prefill_layer/1_Attention/4_SelfAttentionOperation/after/outtensor0.bin")
    assert json.loads(
        ait("llm", "compare", "-gp", case.golden, "-mp", case.mine, "-o", tmp_path / "o", "--json").stdout
    )["jump"].startswith("3_Prefill_layer/1_Attention/4_SelfAttentionOperation")


def test_the_error_begins_where_nan_stands_on_one_side_only(ait, tmp_path):
    def spoil(tensor):
        tensor = tensor.clone()
        tensor[-1, :9] = float("nan")
        return tensor

    case = Case(tmp_path, layers=3, steps=0, fault=(1, "attention", spoil))
    done, _ = case.compare(ait)
    head, line = done.stdout.splitlines()[:2]
    assert head == "Broken: token 0, 3_Prefill_layer/1_Attention/4_SelfAttentionOperation (layer 1)"
    assert line.strip().startswith("3_Prefill_layer/1_Attention/4_SelfAttentionOperation/outtensor0: ")
    assert "NaN or infinities stand on one side only (golden: 0, my side: 9)" in line


def test_either_side_may_be_torch(ait, plain, tmp_path):
    done = ait("llm", "compare", "-gp", plain.mine, "-mp", plain.golden, "-o", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["pairing"]
    # One embedding, norm and head; every module of a layer but the rotary embedding's like is there.
    assert found["my"]["paired"] + found["my"]["same_as_paired"] >= 0.9 * found["my"]["operations"]


def test_both_may_lie_in_one_folder(ait, plain, tmp_path):
    shutil.copytree(plain.golden, tmp_path / "ait_dump")
    shutil.copytree(plain.mine, tmp_path / "ait_dump", dirs_exist_ok=True)
    done = ait("llm", "compare", "-gp", "ait_dump", "-mp", "ait_dump", "-o", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pairing"]["method"] == (
        "by the values of tensors, and by the types and order of operations"
    )


def test_torch_against_torch_goes_by_names(ait, plain, tmp_path):
    done = ait("llm", "compare", "-gp", plain.golden, "-mp", plain.golden, "-o", tmp_path, "--json")
    document = json.loads(done.stdout)
    assert document["pairing"]["method"] == "by the names of modules"
    assert document["summary"]["identical"] == document["summary"]["rows"] > 0


def test_a_token_map_is_obeyed(ait, plain, tmp_path):
    done = ait("llm", "compare", "-gp", plain.golden, "-mp", plain.mine, "-o", tmp_path, "--json", "--token-map", "2:1")
    (token,) = json.loads(done.stdout)["pairing"]["tokens"]
    assert (token["token"], token["my_folder"]) == ("2", "1")


def test_what_opname_leaves_of_a_layer_is_recognised(ait, tmp_path):
    case = Case(tmp_path, layers=2, steps=0)
    for folder in list(case.mine.rglob("after")):
        if "SelfAttention" not in folder.parent.name:
            shutil.rmtree(folder)
    done, rows = case.compare(ait)
    assert "my side: 2 of 2 operations paired" in done.stdout
    _, _, wrong = case.judge(rows)
    assert not wrong


def test_a_dump_without_tensors_says_so(ait, plain, tmp_path):
    shutil.copytree(plain.mine / "model", tmp_path / "run/ait_dump/model")
    line = error_line(ait("llm", "compare", "-gp", plain.golden, "-mp", "run"))
    assert "run: is a dump without tensors: it holds model; record it again with --type tensor" in line


def tensors_in(folder):
    return sum(1 for path in folder.rglob("*") if path.stem.startswith(("output", "outtensor")))


def test_rounds_without_a_counterpart_are_rows(ait, plain, tmp_path):
    shutil.copytree(plain.golden, tmp_path / "g")
    shutil.copytree(plain.mine, tmp_path / "m")
    (torch_run,) = (tmp_path / "g/torch_tensors").iterdir()
    (library_run,) = (tmp_path / "m/tensors").iterdir()
    shutil.rmtree(library_run / "1")  # what token 2 is compared with
    shutil.copytree(torch_run / "2", torch_run / "3")
    lost = tensors_in(torch_run / "2") + tensors_in(torch_run / "3")
    done = ait("llm", "compare", "-gp", "g", "-mp", "m", "-o", "out")
    assert done.returncode == 0, done.stderr
    rows = [row for row in read_rows(tmp_path / "out") if row["token_id"] in ("2", "3")]
    assert len(rows) == lost > 40
    for row in rows:
        assert row["my_data_path"] == "" and row["golden_data_path"].startswith(str(torch_run))
        assert row["cmp_fail_reason"] == f"my-path has nothing of token {row['token_id']}."
    assert "note: golden alone has tokens 2, 3: the tensors recorded there are rows without a partner" in done.stdout
    shutil.rmtree(torch_run / "3")
    shutil.rmtree(torch_run / "2")
    shutil.rmtree(torch_run / "1")
    done = ait("llm", "compare", "-gp", "g", "-mp", "m", "-o", "two")
    rows = [row for row in read_rows(tmp_path / "two") if row["token_id"] == "1"]
    assert rows and all(row["cmp_fail_reason"] == "golden-path has nothing of token 1." for row in rows)
    assert {row["golden_data_path"] for row in rows} == {""}
    recorded = {str(path) for path in library_run.rglob("outtensor*.bin")}
    named = {path for row in read_rows(tmp_path / "two") for path in row["my_data_path"].split(";")} - {""}
    assert named == recorded  # nothing is left out


def test_rounds_of_the_same_graph_without_a_counterpart_are_rows(ait, plain, tmp_path):
    shutil.copytree(plain.mine, tmp_path / "m")
    (library_run,) = (tmp_path / "m/tensors").iterdir()
    recorded = {str(path) for path in library_run.rglob("outtensor*.bin")}
    shutil.copytree(tmp_path / "m", tmp_path / "g")
    shutil.rmtree(tmp_path / "g/tensors" / library_run.name / "1")
    ait("llm", "compare", "-gp", "g", "-mp", "m", "-o", "out")
    rows = read_rows(tmp_path / "out")
    assert {row["my_data_path"] for row in rows} == recorded
    alone = [row for row in rows if not row["golden_data_path"]]
    assert {row["cmp_fail_reason"] for row in alone} == {"golden-path has nothing of token 2."}


def test_nothing_paired_at_all_ends_with_status_2(ait, plain, tmp_path):
    folder = tmp_path / "m/ait_dump/tensors/0_1/0/0_What/after"
    folder.mkdir(parents=True)
    (folder / "outtensor0.bin").write_bytes(atb_bin(np.arange(35, dtype=np.float32).reshape(7, 5), 0))
    done = ait("llm", "compare", "-gp", plain.golden, "-mp", "m", "-o", "out", "--json")
    assert done.returncode == 2, done.stdout
    assert done.stderr.splitlines()[-1].startswith("ait: error: nothing was compared: no tensor of one side has")
    assert json.loads(done.stdout)["summary"]["only_golden"] > 0
    assert read_rows(tmp_path / "out")


LEVELS = {
    "layer": r"\d+_(Prefill_layer|Decoder_layer|WordEmbedding|PositionEmbedding|RmsNormOperation|LmHead)",
    "module": r"\d+_(Prefill|Decoder)_layer/\d+_\w+",
    "api": r"(\d+_\w+/)*\d+_\w+",
    "logits": r"\d+_LmHead",
}


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_picks_operations(ait, plain, tmp_path, level):
    both = ("llm", "compare", "-gp", plain.golden, "-mp", plain.mine, "--extended")
    ait(*both, "-o", tmp_path / "all")
    done = ait(*both, "-o", tmp_path / "some", "-cl", level)
    assert done.returncode == 0, done.stderr
    whole, rows = read_rows(tmp_path / "all"), read_rows(tmp_path / "some")
    operations = {row["my_operation"] for row in whole if row["my_operation"]}
    containers = {operation.rsplit("/", 1)[0] for operation in operations if "/" in operation}
    containers |= {operation.split("/")[0] for operation in operations if "/" in operation}
    wanted = {operation for operation in operations if re.fullmatch(LEVELS[level], operation)}
    if level == "api":
        wanted -= containers
    found = {row["my_operation"] for row in rows if row["my_operation"]}
    assert found == wanted != set()

    # A verdict is made of all that is compared.
    def facts(rows):
        return {tuple(cell for name, cell in row.items() if not name.startswith("verdict")) for row in rows}

    assert facts(rows) < facts(whole)
    tokens = {row["token_id"] for row in rows}
    assert tokens == {"0", "1", "2"}


def test_a_level_of_torch_is_known_by_its_modules(ait, plain, tmp_path):
    for level, names in [
        ("layer", {"root.model.layers.0", "root.model.layers.1", "root.model.norm", "root.lm_head"}),
        ("logits", {"root.lm_head"}),
    ]:
        out = tmp_path / level
        ait("llm", "compare", "-gp", plain.golden, "-mp", plain.golden, "--cmp-level", level, "--extended", "-o", out)
        found = {row["my_operation"] for row in read_rows(out)}
        assert names <= found and not any("self_attn" in name or "mlp" in name for name in found)


def test_wrong_options_are_one_clear_line(ait, plain, tmp_path):
    both = ("llm", "compare", "-gp", plain.golden, "-mp", plain.mine, "-o", tmp_path)
    assert "--token-map wants" in error_line(ait(*both, "--token-map", "x"))
    assert "--cmp-level does not know 'leyer'; give layer, module, api or logits" in error_line(
        ait(*both, "-cl", "leyer")
    )
    assert "has no round 9" in error_line(ait(*both, "--token-map", "9:0"))
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"LinearOperation": 3}')
    assert "Invalid op_mapping file" in error_line(ait(*both, "-mf", mapping))
    assert "no such mapping file" in error_line(ait(*both, "-mf", tmp_path / "nowhere"))
    mapping.write_text('{"NoSuchOperation": "Linear"}')
    assert "no operation of the acceleration library is a NoSuchOperation" in error_line(ait(*both, "-mf", mapping))
    assert "--my-name, --my-dtype and --my-shape are for a file" in error_line(ait(*both, "--my-dtype", "half"))
    (tmp_path / "folder").mkdir()
    refused = error_line(ait("llm", "compare", "-gp", plain.golden, "-mp", tmp_path / "folder"))
    assert "holds no dump of torch or of the acceleration library" in refused


def test_a_mapping_file_decides_what_data_leave_open(ait, tmp_path):
    case = Case(tmp_path, layers=1, steps=0, names=3, fault=(0, "norm", overwrite))
    library = dict(Case_names(case).items())
    (tmp_path / "op_mapping_file.json").write_text(json.dumps({library["RmsNormOperation"]: [library["LlamaRMSNorm"]]}))
    _, rows = case.compare(ait, "-mf", tmp_path)
    paired = [row for row in rows if row["golden_data_path"] and row["my_op_type"] == library["RmsNormOperation"]]
    assert len(paired) == 3
    assert all(row["golden_op_type"] == library["LlamaRMSNorm"] for row in paired)


def Case_names(case):
    """Real names of types and the random ones in their place."""
    names = dict(case.recorder.names._known)
    tree = json.loads((case.recorder.folder / "model_tree.json").read_text())
    assert tree["type"] == names["LlamaForCausalLM"]
    for path in case.mine.glob("model/*/*.json"):
        for node in json.loads(path.read_text())["nodes"]:
            names.setdefault(node["opType"], node["opType"])
            if not node["nodes"]:  # the final norm is the only operation without children
                names["RmsNormOperation"] = node["opType"]
    return names


def test_a_missing_shard_is_a_row_with_its_reason(ait, tmp_path):
    case = Case(tmp_path, ranks=2, steps=1)
    (lost,) = case.mine.glob("tensors/1_*/0/2_*/4_Mlp/0_LinearOperation/after/outtensor0.bin")
    lost.unlink()
    _, rows = case.compare(ait)
    (row,) = [
        row for row in rows if row["my_operation"] == "" and "was not recorded in this round" in row["cmp_fail_reason"]
    ]
    assert str(lost) in row["cmp_fail_reason"]


def test_reports_of_dumps_are_the_same_for_any_number_of_threads(ait, plain, tmp_path):
    texts = set()
    for threads in (1, 2, 8):
        out = tmp_path / str(threads)
        done = ait(
            "llm", "compare", "-gp", plain.golden, "-mp", plain.mine, "-o", out, "--extended", "--threads", threads
        )
        assert done.returncode == 0, done.stderr
        (path,) = out.glob("*.csv")
        texts.add(path.read_bytes())
    assert len(texts) == 1
