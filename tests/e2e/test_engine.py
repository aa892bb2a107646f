"""ait-llama as a person runs it: tokens and logits, tensor parallel, faults, and the library's own tensor saving."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("AIT_LLAMA_BIN", REPOSITORY / "build" / "bin" / "ait-llama")).resolve()
sys.path.insert(0, str(REPOSITORY / "tests" / "python"))

import engine_models
from engine_models import read_bin

TOKENS = "1,15,7,33,98,2,5;2,9,140"
LAYER = 1  # where faults are planted; the model has three
# Nodes of the models before the first layer: word and position embedding.
FIRST_LAYER = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    engine_models.make_model("llama-gqa-tied").save_pretrained(path)
    return path


def run_llama(folder, cwd, *arguments, steps=4, **environment):
    """Runs the program; (tokens as lists, logits)."""
    out = cwd / "logits.npy"
    process = subprocess.run(
        [PROGRAM, "--model", folder, "--tokens", TOKENS, "--steps", str(steps), "--logits", out, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        cwd=cwd,
    )
    assert process.returncode == 0, process.stderr
    return [list(map(int, line.split(","))) for line in process.stdout.splitlines()], np.load(out)


@pytest.fixture
def llama(folder, tmp_path):
    return lambda *arguments, **more: run_llama(folder, tmp_path, *arguments, **more)


def refused(*arguments, **options):
    process = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)
    assert process.returncode == 2, process.stderr
    assert process.stdout == ""
    lines = process.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("ait-llama: error: "), process.stderr
    return lines[0]


def test_tokens_and_logits_are_those_of_transformers(llama, folder):
    tokens, logits = llama(steps=11)
    golden_tokens, golden_logits = engine_models.generate(
        engine_models.make_model("llama-gqa-tied"), engine_models.PROMPTS, 11
    )
    assert tokens == golden_tokens.tolist()
    assert logits.dtype == np.float32 and logits.shape == (11, 2, 200)
    assert engine_models.distance(logits, golden_logits) < 1e-4


def test_the_model_to_try_things_with_is_one_that_transformers_reads(tmp_path):
    made = tmp_path / "made"
    subprocess.run([PROGRAM, "--make-model", made], check=True, timeout=60)
    again = tmp_path / "again"
    subprocess.run([PROGRAM, "--make-model", again], check=True, timeout=60)
    assert (made / "model.safetensors").read_bytes() == (again / "model.safetensors").read_bytes()
    golden = engine_models.transformers.LlamaForCausalLM.from_pretrained(made)
    tokens, logits = engine_models.generate(golden, engine_models.PROMPTS, 4)
    own_tokens, own_logits = run_llama(made, tmp_path)
    assert own_tokens == tokens.tolist()
    assert engine_models.distance(own_logits, logits) < 1e-4
    (tmp_path / "file").write_text("")
    assert "file" in refused("--make-model", tmp_path / "file")


def test_two_processes_compute_what_one_does(llama):
    tokens, logits = llama(steps=11)
    parallel_tokens, parallel_logits = llama("--tp", "2", steps=11)
    assert parallel_tokens == tokens
    assert engine_models.distance(parallel_logits, logits) < 1e-5
    assert not np.array_equal(parallel_logits, logits), "sums over two halves round differently"


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "w8a8"])
def test_two_processes_in_other_types(llama, dtype):
    logits = llama("--dtype", dtype, steps=1)[1]
    parallel = llama("--dtype", dtype, "--tp", "2", steps=1)[1]
    # Each half is rounded before the sum; with w8a8 rows of x also get scales of their own.
    assert engine_models.distance(parallel, logits) < {"fp16": 0.01, "bf16": 0.06, "w8a8": 0.1}[dtype]


def test_two_processes_with_biases(tmp_path):
    """A bias behind a sum over ranks must be added once, not once by each."""
    engine_models.make_model("llama-biases").save_pretrained(tmp_path)
    logits = []
    for ranks in ("1", "2"):
        out = tmp_path / "logits.npy"
        subprocess.run(
            [PROGRAM, "--model", tmp_path, "--tokens", TOKENS, "--steps", "2", "--tp", ranks, "--logits", out],
            check=True,
            capture_output=True,
            timeout=60,
        )
        logits.append(np.load(out))
    assert engine_models.distance(logits[1], logits[0]) < 1e-5


def test_thread_count_does_not_change_a_bit(llama):
    assert np.array_equal(llama("--threads", "1")[1], llama("--threads", "3")[1])


def test_a_rank_that_dies_ends_the_run(folder):
    """Not in silence, and not by waiting for ever."""
    process = subprocess.Popen(
        [PROGRAM, "--model", folder, "--tokens", "1,2,3", "--steps", "240", "--tp", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 20
    child = ""
    while not child and time.monotonic() < deadline and process.poll() is None:
        child = children.read_text().strip()
        time.sleep(0.002)
    if child:
        try:
            os.kill(int(child), signal.SIGKILL)
        except ProcessLookupError:
            pass
    _out, err = process.communicate(timeout=30)
    if process.returncode == 0:
        pytest.skip("the run was over before the rank could be killed")
    assert process.returncode == 2
    assert "another rank has stopped" in err


def test_help_and_faults_are_listed():
    process = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True)
    assert process.returncode == 0 and process.stderr == ""
    for option in ("--model", "--tokens", "--steps", "--dtype", "--tp", "--logits", "--fault", "--list-faults"):
        assert option in process.stdout
    process = subprocess.run([PROGRAM, "--list-faults"], capture_output=True, text=True)
    names = [line.split()[0] for line in process.stdout.splitlines()]
    assert names == ["epsilon", "overflow", "row", "scale", "rope-pairing", "residual", "head-mapping", "position"]


def test_bad_command_lines_are_refused(folder, tmp_path):
    model = ["--model", folder]
    assert "--model" in refused("--tokens", "1")
    assert "--tokens" in refused(*model)
    assert "no tokens" in refused(*model, "--tokens", "1,x")
    assert "no tokens" in refused(*model, "--tokens", "1;;2")
    assert "vocabulary of 200" in refused(*model, "--tokens", "1,200")
    assert "fp32, fp16, bf16 or w8a8" in refused(*model, "--tokens", "1", "--dtype", "fp8")
    assert "--steps" in refused(*model, "--tokens", "1", "--steps", "0")
    assert "cannot be divided among 3 ranks" in refused(*model, "--tokens", "1", "--tp", "3")
    assert "config.json" in refused("--model", tmp_path / "none", "--tokens", "1")
    for perturb in ("int8", "0", "2", "-0.1", "nan", "0.1x"):
        words = refused(*model, "--tokens", "1", f"--perturb={perturb}")
        assert "bf16, fp16, fp32 or a number above 0 and up to 1" in words
    (tmp_path / "file").write_text("")
    assert "file" in refused(*model, "--tokens", "1", "--logits", tmp_path / "file" / "logits.npy")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("nonsense", "no known kind"),
        ("scale@layer=3", "the model has 3"),
        ("scale@op=NoSuch", "no NoSuchOperation"),
        ("scale@op=RmsNorm,index=2", "no RmsNormOperation number 2"),
        ("scale@layer=x", "layer number"),
        ("scale@layer", "KIND@key=value"),
        ("scale@colour=red", "unknown part"),
        ("epsilon@op=Linear", "only norms"),
        ("residual@size=3", "takes no size"),
        ("position@op=Linear", "leave out op"),
        ("position@size=0.5", "whole number"),
        ("position@size=1e30", "whole number"),
        ("scale@rank=x", "rank number"),
        ("scale@rank=1", "there is only rank 0"),
    ],
)
def test_bad_faults_are_refused(folder, fault, words):
    assert words in refused("--model", folder, "--tokens", "1", "--fault", fault)


# The library's own saving, as seed 000 has it.


def saved(home, round_name):
    """{path below the round: tensor} of one process."""
    (process,) = (home / "tensors").iterdir()
    root = process / str(round_name)
    return {str(file.relative_to(root)): read_bin(file) for file in root.rglob("*.bin")}


def numbers(path):
    return [int(number) for number in re.findall(r"(?:^|/)(\d+)_", path)]


def leaf_results(tensors):
    """Results of the operations without children, in the order in which they ran."""
    folders = {path.split("/after/")[0] for path in tensors if "/after/" in path}
    leaves = [folder for folder in folders if not any(other.startswith(folder + "/") for other in folders)]
    return [
        (leaf, {path.rsplit("/", 1)[1]: t for path, t in tensors.items() if path.startswith(leaf + "/after/outTensor")})
        for leaf in sorted(leaves, key=numbers)
    ]


def run_saving(folder, cwd, *arguments, **environment):
    """Runs three steps and saves the prefill and both decoded rounds; the home folder."""
    home = cwd / "home"
    run_llama(
        folder,
        cwd,
        *arguments,
        steps=3,
        ACLTRANSFORMER_SAVE_TENSOR="1",
        ACLTRANSFORMER_SAVE_TENSOR_MAX="2",
        ACLTRANSFORMER_HOME_PATH=str(home),
        **environment,
    )
    return home


@pytest.fixture
def record(folder, tmp_path):
    return lambda *arguments, **environment: run_saving(folder, tmp_path, *arguments, **environment)


@pytest.fixture(scope="module")
def golden_home(folder, tmp_path_factory):
    """A run without faults."""
    return run_saving(folder, tmp_path_factory.mktemp("golden"))


def test_saved_tensors_have_the_seeds_layout(golden_home):
    tensors = saved(golden_home, 0)
    attention = f"0_LlamaPrefillModel/{FIRST_LAYER}_Prefill_layerGraphRunner/1_AttentionGraphRunner"
    out = tensors[f"{attention}/5_SelfAttentionRunner/after/outTensor0.bin"]
    assert out.shape == (10, 4, 16) and out.dtype == np.float32
    assert f"{attention}/0_LinearRunner/before/inTensor1.bin" in tensors
    assert f"1_LlamaDecodeModel/{FIRST_LAYER}_Decoder_layerGraphRunner/0_RmsNormRunner/after/outTensor0.bin" in tensors
    rounds = sorted(path.name for path in next((golden_home / "tensors").iterdir()).iterdir())
    assert rounds == ["0", "1"]


def test_saving_obeys_the_list_of_runners_and_the_task_id(record):
    home = record(ACLTRANSFORMER_SAVE_TENSOR_RUNNER="RopeRunner,SelfAttentionRunner", AIT_CMP_TASK_ID="4711_0")
    runners = {path.split("/")[-3].split("_", 1)[1] for path in saved(home, "4711_0")}
    assert runners == {"RopeRunner", "SelfAttentionRunner"}


DIALOGUES = """
import os, sys
sys.path.insert(0, sys.argv[1])
import ait_engine, torch
model = ait_engine.Model(sys.argv[2])
for dialogue in range(2):
    os.environ["AIT_CMP_TASK_ID"] = f"{os.getpid()}_{dialogue}"
    logits = model.prefill([[1, 15, 7 + dialogue]], 3)
    for _ in range(3):
        logits = model.decode(logits.argmax(-1))
y = ait_engine.Operation("LinearOperation", hasBias=False)(torch.ones(2, 8), torch.ones(3, 8))
assert (y == 8).all()
"""


def test_a_torch_script_steers_the_folders_between_dialogues(folder, tmp_path):
    library = os.environ.get("AIT_ENGINE_LIB", str(REPOSITORY / "build" / "engine" / "lib" / "libatb.so"))
    environment = {
        "AIT_ENGINE_LIB": library,
        "ACLTRANSFORMER_SAVE_TENSOR": "1",
        "ACLTRANSFORMER_SAVE_TENSOR_MAX": "2",
        "ACLTRANSFORMER_SAVE_TENSOR_RUNNER": "SelfAttentionRunner,PagedAttentionRunner,LinearRunner",
        "ACLTRANSFORMER_HOME_PATH": str(tmp_path),
    }
    process = subprocess.run(
        [sys.executable, "-c", DIALOGUES, REPOSITORY / "engine" / "python", folder],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    (root,) = (tmp_path / "tensors").iterdir()
    assert sorted(path.name for path in root.iterdir()) == [f"{root.name}_0", f"{root.name}_1"]
    attention = "0_LlamaPrefillModel/2_Prefill_layerGraphRunner/1_AttentionGraphRunner/5_SelfAttentionRunner/after"
    first, second = (read_bin(root / f"{root.name}_{n}" / attention / "outTensor0.bin") for n in (0, 1))
    np.testing.assert_array_equal(first[:2], second[:2])  # the same two tokens before another third
    assert not np.array_equal(first[2], second[2])
    # Two rounds of each dialogue: of the decoding model the last one that was allowed stays.
    attention = "1_LlamaDecodeModel/2_Decoder_layerGraphRunner/1_AttentionGraphRunner/5_PagedAttentionRunner/after"
    assert read_bin(root / f"{root.name}_1" / attention / "inTensor4.bin").tolist() == [5]
    # An operation on its own has no model above it.
    (alone,) = root.glob(f"{root.name}_1/*_LinearRunner/after/outTensor0.bin")
    np.testing.assert_array_equal(read_bin(alone), np.full((2, 3), 8, np.float32))


def test_nothing_is_saved_unless_asked_for(llama, tmp_path):
    llama(ACLTRANSFORMER_HOME_PATH=str(tmp_path / "home"))
    assert not (tmp_path / "home").exists()


def test_saving_to_a_bad_place_does_not_stop_the_run(folder, tmp_path):
    (tmp_path / "file").write_text("")
    process = subprocess.run(
        [PROGRAM, "--model", folder, "--tokens", "1", "--steps", "1"],
        capture_output=True,
        text=True,
        env={**os.environ, "ACLTRANSFORMER_SAVE_TENSOR": "1", "ACLTRANSFORMER_HOME_PATH": str(tmp_path / "file")},
    )
    assert process.returncode == 0
    assert process.stderr.count("cannot save") == 1


# Faults: what they say, and nothing before it.

OPERATION = {  # the first operation whose result may change, by its place in the layer
    "epsilon": "0_RmsNorm",
    "overflow": "1_Attention/0_Linear",
    "row": "1_Attention/0_Linear",
    "scale": "1_Attention/0_Linear",
    "rope-pairing": "1_Attention/3_Rope",
    "residual": "2_Elewise",
    "head-mapping": "1_Attention/1_Linear",
    "position": "1_Attention/3_Rope",
}


def place(path):
    """(layer, operation in it) of a saved path: "3_…GraphRunner/1_AttentionGraphRunner/0_LinearRunner"."""
    _, layer, *rest = path.split("/")
    return int(layer.split("_")[0]) - FIRST_LAYER, "/".join(re.sub("(Graph)?Runner$", "", part) for part in rest)


def differing(golden, actual):
    """Places whose results differ, in order."""
    return [
        place(leaf)
        for (leaf, before), (other, after) in zip(leaf_results(golden), leaf_results(actual), strict=True)
        if leaf == other and any(before[name].tobytes() != after[name].tobytes() for name in before)
    ]


def part(tensors, phase):
    return {path: tensor for path, tensor in tensors.items() if path.split("/")[0].endswith(phase + "Model")}


@pytest.mark.parametrize("fault", OPERATION)
def test_a_fault_in_the_prefill_changes_what_it_says_and_nothing_before(golden_home, record, fault):
    golden = part(saved(golden_home, 0), "Prefill")
    size = ",size=1e8" if fault == "overflow" else ""
    actual = part(saved(record("--fault", f"{fault}@layer={LAYER}{size}"), 0), "Prefill")
    changed = differing(golden, actual)
    assert changed[0] == (LAYER, OPERATION[fault])
    # A kernel's inputs are as they were: the fault is in the kernel.
    folder = f"0_LlamaPrefillModel/{FIRST_LAYER + LAYER}_Prefill_layerGraphRunner/"
    runner = folder + OPERATION[fault].replace("/", "GraphRunner/") + "Runner"
    if fault in ("epsilon", "overflow", "row", "scale"):
        for name in ("inTensor0", "inTensor1"):
            np.testing.assert_array_equal(golden[f"{runner}/before/{name}.bin"], actual[f"{runner}/before/{name}.bin"])
    check_effect(fault, golden, actual, runner)


def check_effect(fault, golden, actual, runner):
    def inputs(n, side=golden):
        return side[f"{runner}/before/inTensor{n}.bin"].astype(np.float64)

    before, after = golden[f"{runner}/after/outTensor0.bin"], actual[f"{runner}/after/outTensor0.bin"]
    if fault == "epsilon":
        x, gamma = inputs(0), inputs(1)
        expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.01) * gamma
        np.testing.assert_allclose(after, expected, rtol=1e-5, atol=1e-6)
    elif fault == "overflow":
        assert np.isinf(after).any() and not np.isinf(before).any()
    elif fault == "row":
        np.testing.assert_array_equal(after[:-1], before[:-1])
        expected = before[-1] + 0.5 * np.sqrt((before[-1] ** 2).mean())
        np.testing.assert_allclose(after[-1], expected, rtol=1e-5)
    elif fault == "scale":
        np.testing.assert_allclose(after, 1.1 * before, rtol=1e-6)
    elif fault == "rope-pairing":
        x, cos, sin = inputs(0).reshape(10, 4, 16), inputs(2)[:, None], inputs(3)[:, None]
        rotated = np.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)
        np.testing.assert_allclose(after.reshape(x.shape), x * cos + rotated * sin, rtol=1e-4, atol=1e-5)
    elif fault == "residual":
        branch = golden[f"{runner}/before/inTensor1.bin"]
        np.testing.assert_array_equal(after, branch)
    elif fault == "head-mapping":
        np.testing.assert_array_equal(after.reshape(10, 2, 16), np.roll(before.reshape(10, 2, 16), 1, 1))
    elif fault == "position":
        cos = inputs(2, actual)
        # Rows are positions 0 to 6 of the first prompt: each now has its successor's rotation.
        np.testing.assert_allclose(cos[:6], inputs(2)[1:7], rtol=1e-6)


@pytest.mark.parametrize("fault", OPERATION)
def test_a_fault_in_a_decoded_round_leaves_all_earlier_rounds_alone(golden_home, record, fault):
    actual_home = record("--fault", f"{fault}@layer={LAYER},round=2")
    for round_number, phase in ((0, "Prefill"), (0, "Decode")):
        assert (
            differing(part(saved(golden_home, round_number), phase), part(saved(actual_home, round_number), phase))
            == []
        )
    changed = differing(part(saved(golden_home, 1), "Decode"), part(saved(actual_home, 1), "Decode"))
    assert changed and changed[0] == (LAYER, OPERATION[fault])


def test_a_fault_is_over_when_its_round_is(golden_home, record):
    """The parameters of the next round are the right ones again: only data is left of the fault."""
    homes = [golden_home, record("--fault", f"residual@layer={LAYER},round=1")]
    golden, actual = (part(saved(home, 1), "Decode") for home in homes)
    path = f"1_LlamaDecodeModel/{FIRST_LAYER + LAYER}_Decoder_layerGraphRunner/2_ElewiseRunner"
    assert f"{path}/before/inTensor1.bin" in actual
    total = actual[f"{path}/before/inTensor0.bin"] + actual[f"{path}/before/inTensor1.bin"]
    np.testing.assert_array_equal(actual[f"{path}/after/outTensor0.bin"], total)
    assert golden.keys() == actual.keys()


def test_a_fault_can_be_aimed_at_any_operation_and_all_rounds(llama):
    golden = llama(steps=3)[1]
    for op in ("RmsNorm,index=1", "Rope", "SelfAttention", "Activation", "Elewise,index=1", "LinearOperation,index=6"):
        changed = llama("--fault", f"scale@layer=2,op={op},round=all,size=0.05", steps=3)[1]
        assert engine_models.distance(changed[0], golden[0]) > 1e-4, op
    only_decode = llama("--fault", "scale@layer=2,op=PagedAttention,round=1", steps=3)[1]
    np.testing.assert_array_equal(only_decode[0], golden[0])
    assert engine_models.distance(only_decode[1], golden[1]) > 1e-4


def test_a_fault_of_one_rank_leaves_the_other_alone(record):
    fault = f"scale@layer={LAYER},op=Linear,index=3,size=-1,rank=1"
    tensors = record("--tp", "2", "--fault", fault) / "tensors"
    place = f"0/0_LlamaPrefillModel/{FIRST_LAYER + LAYER}_Prefill_layerGraphRunner/1_AttentionGraphRunner"
    own, total = [], []
    for process in sorted(tensors.iterdir()):
        own.append(read_bin(process / place / "6_LinearRunner/after/outTensor0.bin"))
        total.append(read_bin(process / place / "7_AllReduceRunner/after/outTensor0.bin"))
    assert sorted(bool(values.any()) for values in own) == [False, True]
    for values in total:
        np.testing.assert_array_equal(values, max(own, key=lambda each: np.abs(each).max()))


# Noise on purpose


@pytest.mark.parametrize(("perturb", "unit"), [("bf16", 2.0**-8), ("fp16", 2.0**-11), ("0.01", 0.01)])
def test_every_operation_that_computes_is_off_by_up_to_one_unit(golden_home, record, perturb, unit):
    golden, actual = saved(golden_home, 0), saved(record("--perturb", perturb), 0)
    assert golden.keys() == actual.keys()
    words = "0_LlamaPrefillModel/0_WordEmbeddingGraphRunner/0_GatherRunner/after/outTensor0.bin"
    np.testing.assert_array_equal(actual[words], golden[words])  # nothing is computed there
    norm = f"0_LlamaPrefillModel/{FIRST_LAYER}_Prefill_layerGraphRunner/0_RmsNormRunner/after/outTensor0.bin"
    off = np.abs(actual[norm].astype(np.float64) / golden[norm] - 1)
    assert off.max() <= 1.001 * unit and off.mean() > 0.4 * unit
    for path, tensor in actual.items():
        # Of the prompt: noise may make it go on with other words.
        if "Prefill_layerGraphRunner/" in path and "/after/out" in path and "Cache" not in path:
            assert not np.array_equal(tensor, golden[path]), path
            assert engine_models.distance(tensor, golden[path]) < 20 * unit, path


def test_what_was_perturbed_once_stays_the_same_in_all_ranks_and_runs(folder, tmp_path):
    homes = []
    for name in "ab":
        (tmp_path / name).mkdir()
        homes.append(run_saving(folder, tmp_path / name, "--perturb", "bf16", "--tp", "2"))
    place = f"0/0_LlamaPrefillModel/{FIRST_LAYER + 1}_Prefill_layerGraphRunner/3_RmsNormRunner/after/outTensor0.bin"
    values = [read_bin(process / place) for home in homes for process in (home / "tensors").iterdir()]
    assert len(values) == 4
    for each in values[1:]:
        np.testing.assert_array_equal(each, values[0])
