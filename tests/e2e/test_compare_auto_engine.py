"""torch recorded by register_hook, the embedded acceleration library recorded by the probe, and the two compared."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from pairing import read_rows
from torch_run import make_model

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LLAMA = pathlib.Path(os.environ.get("AIT_LLAMA_BIN", REPOSITORY / "build" / "bin" / "ait-llama")).resolve()
PROMPT = [1, 15, 7, 33, 5, 60]
STEPS = 3
RECORD = """
import sys, torch, transformers
from ait_llm import DumpConfig, register_hook
torch.set_num_threads(1)
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval()
steps = int(sys.argv[3])
with register_hook(model, DumpConfig(dump_path=sys.argv[2], token_range=list(range(steps)))):
    tokens = torch.tensor([[int(each) for each in sys.argv[4].split(",")]])
    mask = torch.ones_like(tokens)
    model.generate(tokens, attention_mask=mask, max_new_tokens=steps, do_sample=False, pad_token_id=0)
"""

pytestmark = pytest.mark.skipif(not LLAMA.exists(), reason=f"{LLAMA} is not built")

# What the engine's operations are to torch, by their place among those of the same type in the same graph.
LAYER = {
    ("RmsNormOperation", 0): "{}.input_layernorm/output",
    ("RmsNormOperation", 1): "{}.post_attention_layernorm/output",
    ("Attention", 0): "{}.self_attn.o_proj/output",
    ("Mlp", 0): "{}.mlp.down_proj/output",
    ("ElewiseOperation", 0): "{}.post_attention_layernorm/input_0",
    ("ElewiseOperation", 1): "{}/output",
}
ATTENTION = {
    **{("LinearOperation", i): "{}.self_attn." + name + "_proj/output" for i, name in enumerate("qkvo")},
    ("SelfAttentionOperation", 0): "{}.self_attn.o_proj/input_0",
    ("PagedAttentionOperation", 0): "{}.self_attn.o_proj/input_0",
    ("AllReduceOperation", 0): "{}.self_attn.o_proj/output",
}
MLP = {
    **{("LinearOperation", i): "{}.mlp." + name + "_proj/output" for i, name in enumerate(("gate", "up", "down"))},
    ("ActivationOperation", 0): "{}.mlp.act_fn/output",
    ("AllReduceOperation", 0): "{}.mlp.down_proj/output",
    ("ElewiseOperation", 0): "{}.mlp.down_proj/input_0",
}


def number(part):
    return int(part.split("_", 1)[0])


def counterparts(operations):
    """The torch tensor that each of these operations of a float run stands for, where there is one."""
    out = {}
    tops = sorted({path.split("/")[0] for path in operations}, key=number)
    for kind in ("Prefill_layer", "Decoder_layer"):
        for layer, top in enumerate(top for top in tops if top.endswith(kind)):
            name = f"root.model.layers.{layer}"
            out[top] = name + "/output"
            inside = sorted(
                (path for path in operations if path.startswith(top + "/")),
                key=lambda p: list(map(number, p.split("/"))),
            )
            seen = {}
            for path in inside:
                parent, last = path.rsplit("/", 1)
                type_ = last.split("_", 1)[1]
                place = seen[parent, type_] = seen.get((parent, type_), -1) + 1
                table = LAYER if parent == top else ATTENTION if "Attention" in parent else MLP
                if (type_, place) in table:
                    out[path] = table[type_, place].format(name)
    for top in tops:
        if top.endswith("RmsNormOperation"):
            out[top] = "root.model.norm/output"
        for path in operations:
            if path.startswith(top) and top.endswith("_WordEmbedding"):
                out[path] = "root.model.embed_tokens/output"
            if path.startswith(top) and top.endswith("_LmHead") and "Gather" not in path:
                out[path] = "root.lm_head/output"
    return out


class Runs:
    def __init__(self, ait, folder, family, layers, steps=STEPS):
        self.ait, self.folder, self.steps = ait, folder, steps
        make_model(family, layers).save_pretrained(folder / "model")
        self.tokens = ",".join(map(str, PROMPT))
        subprocess.run(
            [sys.executable, "-c", RECORD, folder / "model", folder / "torch", str(steps), self.tokens],
            check=True,
            timeout=120,
        )

    def compare(self, *arguments, name="engine"):
        """The rows of one run of the engine against torch."""
        command = (
            f"{LLAMA} --model {self.folder / 'model'} --tokens {self.tokens} --steps {self.steps} {' '.join(arguments)}"
        )
        dump = self.ait(
            "llm",
            "dump",
            "--exec",
            command,
            "--type",
            "model",
            "tensor",
            "-er",
            "0,9",
            "-stp",
            "1",
            "-o",
            self.folder / name,
        )
        assert dump.returncode == 0, dump.stderr
        out = self.folder / (name + "_out")
        done = self.ait(
            "llm", "compare", "-gp", self.folder / "torch", "-mp", self.folder / name, "-o", out, "--extended", "--json"
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), read_rows(out)

    def tensor(self, token, name):
        (path,) = self.folder.glob(f"torch/ait_dump/torch_tensors/*/{token}/{name}.pth")
        return torch.load(path, weights_only=True)


def check(runs, rows):
    paired = [row for row in rows if row["golden_data_path"] and row["my_data_path"]]
    expected = counterparts({row["my_operation"] for row in rows if row["my_operation"]})
    for row in paired:
        if row["my_operation"] not in expected:
            # Positions, and the rows that a head picks.
            assert "Embedding" in row["my_operation"] or "LmHead" in row["my_operation"], row
            continue
        want = runs.tensor(row["token_id"], expected[row["my_operation"]])
        golden = pathlib.Path(row["golden_data_path"])
        assert torch.equal(torch.load(golden, weights_only=True).flatten(), want.flatten()), row
    found = {row["my_operation"] for row in paired}
    missing = set(expected) - found
    assert len(missing) <= 0.05 * len(expected), sorted(missing)[:10]


@pytest.mark.parametrize(
    "family, layers, arguments",
    [
        ("llama", 1, ["--dtype", "fp16"]),
        ("qwen2", 3, ["--dtype", "bf16"]),
        ("mistral", 2, ["--dtype", "fp32"]),
        ("llama", 2, ["--dtype", "fp16", "--tp", "2"]),
    ],
    ids=["one layer", "qwen2 in bf16", "mistral in fp32", "two processes"],
)
def test_the_engine_is_paired_with_torch(ait, tmp_path, family, layers, arguments):
    runs = Runs(ait, tmp_path, family, layers)
    document, rows = runs.compare(*arguments)
    check(runs, rows)
    assert [each["my_folder"] for each in document["pairing"]["tokens"]] == ["0", "0", "1"]


def test_a_quantised_engine_is_paired_with_torch(ait, tmp_path):
    document, rows = Runs(ait, tmp_path, "llama", 2).compare("--dtype", "w8a8")
    paired = [row for row in rows if row["golden_data_path"] and row["my_data_path"]]
    assert all("int8" not in row["my_dtype"] for row in paired)
    assert (
        document["pairing"]["golden"]["paired"] + document["pairing"]["golden"]["same_as_paired"]
        == document["pairing"]["golden"]["operations"]
    )
    assert max(float(row["relative_euclidean_distance"]) for row in paired) < 0.2


# Where each fault is planted and where its error has to show.
FAULTS = [
    ("epsilon@layer=0,op=RmsNorm,size=0.1", "2_Prefill_layer/0_RmsNormOperation"),
    ("overflow@layer={last},op=Linear", "{top}_Prefill_layer/1_Attention/0_LinearOperation"),
    ("row@layer={last},op=Linear", "{top}_Prefill_layer/1_Attention/0_LinearOperation"),
    ("scale@layer={last},op=Linear", "{top}_Prefill_layer/1_Attention/0_LinearOperation"),
    ("scale@layer={last},op=SelfAttention", "{top}_Prefill_layer/1_Attention/5_SelfAttentionOperation"),
    ("rope-pairing@layer={last}", "{top}_Prefill_layer/1_Attention/5_SelfAttentionOperation"),
    ("residual@layer={last}", "{top}_Prefill_layer/2_ElewiseOperation"),
    ("head-mapping@layer={last}", "{top}_Prefill_layer/1_Attention/1_LinearOperation"),
]


@pytest.fixture(scope="module", params=[1, 3], ids=["one layer", "three layers"])
def clean(request, program, tmp_path_factory):
    def ait(*arguments):
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60)

    runs = Runs(ait, tmp_path_factory.mktemp("clean"), "llama", request.param, steps=1)
    return runs, request.param, runs.compare("--dtype", "fp16")[1]


def errors(rows):
    """Of each row that has a partner, in order; infinite where nothing could be measured."""
    out = {}
    for row in rows:
        if row["golden_data_path"] and row["my_data_path"]:
            inf = int(row["my_inf"] or 0) + int(row["my_nan"] or 0)
            out[row["data_id"]] = float("inf") if inf else float(row["relative_euclidean_distance"])
    return out


@pytest.mark.parametrize("fault, place", FAULTS, ids=[fault.split(",")[0] for fault, _ in FAULTS])
def test_the_error_of_a_fault_begins_at_its_operation(clean, fault, place):
    runs, layers, rows = clean
    places = {"last": layers - 1, "top": layers + 1}
    fault, place = fault.format(**places), place.format(**places)
    without = errors(rows)
    found = errors(runs.compare("--dtype", "fp16", "--fault", fault, name=fault.replace("@", "_").replace(",", "_"))[1])
    assert set(found) == set(without)
    before = True
    for name, error in found.items():
        if name.startswith(place + "/"):
            assert error >= 10 * without[name], (name, error, without[name])
            before = False
        if before:
            assert error <= 2 * without[name], (name, error, without[name])
    assert not before


def test_what_outputs_held_before_an_operation_is_not_compared(ait, tmp_path):
    """Memory that nothing was written to yet holds anything, and would pass for a fault."""
    subprocess.run([LLAMA, "--make-model", tmp_path / "model"], check=True)
    for side in ("fp32", "fp16"):
        command = f"{LLAMA} --model model --tokens 1,15,7 --steps 1 --dtype {side}"
        assert ait("llm", "dump", "--exec", command, "-time", "2", "-o", side).returncode == 0
    done = ait("llm", "compare", "-gp", "fp32/ait_dump", "-mp", "fp16/ait_dump", "-o", "out")
    assert done.stdout.startswith("No fault: "), done.stdout
    rows = read_rows(tmp_path / "out")
    assert len(rows) > 100
    assert not [row for row in rows if "/before/outtensor" in row["my_data_path"] + row["golden_data_path"]]
