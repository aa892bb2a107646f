"""The embedded acceleration library under `ait llm dump` and `ait llm errcheck`: what is recorded is the model's."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LLAMA = pathlib.Path(os.environ.get("AIT_LLAMA_BIN", REPOSITORY / "build" / "bin" / "ait-llama")).resolve()
sys.path.insert(0, str(REPOSITORY / "tests" / "python"))

import engine_models
from engine_models import distance, read_bin

PROMPT = [1, 15, 7, 33, 98]
LAYERS = 3
# Word and position embedding, the layers, the last norm and the head: operations of each phase.
PHASE = 2 + LAYERS + 2


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    golden = engine_models.make_model("qwen2")
    golden.save_pretrained(folder)
    return golden, folder


@pytest.fixture
def record(ait, model, tmp_path):
    """Records a run of ait-llama; the folder of the dump."""

    def run(*options, arguments=""):
        command = f"{LLAMA} --model {model[1]} --tokens {','.join(map(str, PROMPT))} --steps 3 {arguments}"
        process = ait("llm", "dump", "--exec", command, "-o", tmp_path / "out", *options)
        assert process.returncode == 0, process.stderr
        return tmp_path / "out" / "ait_dump"

    return run


def one(pattern, folder):
    (found,) = folder.glob(pattern)
    return found


def test_the_library_can_be_probed():
    """All functions of the interface are ordinary dynamic symbols, and calls to them go through the loader."""
    library = os.environ.get("AIT_ENGINE_LIB", REPOSITORY / "build" / "engine" / "lib" / "libatb.so")
    listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = {line.split()[2] for line in listing.splitlines() if line.split()[1] == "T"}
    assert len([name for name in names if name.startswith("_ZN3atb5Probe")]) == 25
    assert len([name for name in names if name.startswith("_ZN9atb_speed10SpeedProbe")]) == 2
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    assert "SYMBOLIC" not in dynamic


def test_recorded_layers_are_those_of_transformers(record, model):
    golden = model[0]
    with torch.no_grad():
        ids = torch.tensor([PROMPT])
        states = golden(ids, output_hidden_states=True).hidden_states
        first = golden.model.layers[0]
        query = first.self_attn.q_proj(first.input_layernorm(states[0]))[0]
    tensors = one("tensors/0_*", record()) / "0"
    np.testing.assert_array_equal(read_bin(tensors / "0_WordEmbedding/after/outtensor0.bin"), states[0][0].numpy())
    for layer in range(LAYERS - 1):  # transformers gives the last one after its norm
        out = read_bin(tensors / f"{2 + layer}_Prefill_layer/after/outtensor0.bin")
        assert distance(out, states[layer + 1][0].numpy()) < 1e-5
    out = read_bin(tensors / f"{2 + LAYERS}_RmsNormOperation/after/outtensor0.bin")
    assert distance(out, states[LAYERS][0].numpy()) < 1e-5
    linear = tensors / "2_Prefill_layer/1_Attention/0_LinearOperation"
    assert distance(read_bin(linear / "after/outtensor0.bin"), query.numpy()) < 1e-5
    assert json.loads((linear / "op_param.json").read_text())["hasBias"] is True
    np.testing.assert_array_equal(
        read_bin(linear / "0_MatMulF32Kernel/after/outtensor0.bin"), read_bin(linear / "after/outtensor0.bin")
    )


def test_prefill_and_decode_are_different_operations(record):
    dump = record("--type", "model", "layer", "tensor", "op", "-er", "0,1")
    topologies = {path.stem: json.loads(path.read_text()) for path in dump.glob("model/*/*.json")}
    assert set(topologies) == {"Qwen2PrefillModel", "Qwen2DecodeModel"}
    for start, (name, layer) in (
        (0, ("Qwen2PrefillModel", "Prefill_layer")),
        (PHASE, ("Qwen2DecodeModel", "Decoder_layer")),
    ):
        expected = ["WordEmbedding", "PositionEmbedding", *[layer] * LAYERS, "RmsNormOperation", "LmHead"]
        names = [node["opName"] for node in topologies[name]["nodes"]]
        assert names == [f"{kind}_{start + i}" for i, kind in enumerate(expected)]
        children = [node["opType"] for node in topologies[name]["nodes"][2]["nodes"]]
        assert children == [
            "RmsNormOperation",
            "Attention",
            "ElewiseOperation",
            "RmsNormOperation",
            "Mlp",
            "ElewiseOperation",
        ]
    rounds = one("tensors/0_*", dump)
    # Round 0 holds the prefill and the first decoded token, round 1 only the second.
    assert len(list((rounds / "0").iterdir())) == 2 * PHASE
    assert sorted(int(path.name.split("_")[0]) for path in (rounds / "1").iterdir()) == list(range(PHASE, 2 * PHASE))
    table = one("operation_io_tensors/*/operation_tensors_1.csv", dump).read_text().splitlines()
    assert any("PagedAttentionOperation" in line for line in table)
    assert not any("SelfAttentionOperation" in line for line in table)


def test_recording_does_not_change_the_run(ait, model, record, tmp_path):
    logits = tmp_path / "logits.npy"
    record(arguments=f"--logits {logits}")
    recorded = np.load(logits)
    _tokens, golden = engine_models.generate(model[0], [PROMPT], 3)
    assert distance(recorded, golden) < 1e-4


def test_each_rank_records_under_its_own_device(record):
    dump = record(arguments="--tp 2")
    folders = sorted((dump / "tensors").iterdir())
    assert [folder.name.split("_")[0] for folder in folders] == ["0", "1"]
    place = "0/2_Prefill_layer/1_Attention/7_AllReduceOperation"
    parts = [read_bin(folder / place / "after/intensor0.bin") for folder in folders]
    sums = [read_bin(folder / place / "after/outtensor0.bin") for folder in folders]
    np.testing.assert_array_equal(sums[0], parts[0] + parts[1])
    np.testing.assert_array_equal(sums[0], sums[1])
    # Collectives have no kernels.
    assert sorted(path.name for path in (folders[0] / place).iterdir()) == ["after", "op_param.json"]


def test_overflow_is_found_where_it_was_planted(ait, model, tmp_path):
    command = f"{LLAMA} --model {model[1]} --tokens 1,2,3 --steps 1 --dtype fp16"
    out = tmp_path / "out"
    process = ait("llm", "errcheck", "--exec", command, "-o", out)
    assert process.returncode == 0
    assert not list(out.glob("ait_overflow_res_*.txt"))
    faulty = command + " --fault overflow@layer=1,op=Linear,index=2,size=1e8"
    process = ait("llm", "errcheck", "--exec", faulty, "-o", out)
    assert process.returncode == 0, process.stderr
    first = one("ait_overflow_res_*.txt", out).read_text().splitlines()[0]
    assert first.endswith("LinearOperation_3_1_2:MatMulF16Kernel")
    process = ait("llm", "errcheck", "--exec", faulty, "--exit", "-o", tmp_path / "stopped")
    assert process.returncode == 2
    assert len(one("ait_overflow_res_*.txt", tmp_path / "stopped").read_text().splitlines()) == 1
