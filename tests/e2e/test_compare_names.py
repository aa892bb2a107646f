"""`ait llm compare` on two torch runs that share names of modules: what names settle, and what they leave open."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import pairing_names
from ait_llm import DumpConfig, register_hook
from pairing import read_rows
from pairing_names import Around, make
from torch_script import dump


def record(folder, *models, rounds=1):
    """Of each model, in one process: its folder."""
    handles = [register_hook(model, DumpConfig(str(folder), token_range=list(range(rounds)))) for model in models]
    words = torch.randint(0, pairing_names.VOCABULARY, (1, 9), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        for _ in range(rounds):
            for model in models:
                model(words)
    for handle in handles:
        handle.remove()
    return [handle.folder for handle in handles]


def compare(ait, folder, *arguments):
    """The finished process, the document and the rows."""
    done = ait("llm", "compare", "-gp", "golden", "-mp", "mine", "-o", "out", "--extended", "--json", *arguments)
    return done, json.loads(done.stdout), read_rows(folder / "out")


def test_a_forgotten_addition_is_not_blamed_on_the_norm_behind_it(ait, tmp_path):
    record(tmp_path / "golden", make(1))
    mine = make(1)
    mine.layers[1].residual = False
    record(tmp_path / "mine", mine)
    _, _, rows = compare(ait, tmp_path)
    first = next(row for row in rows if row["identical"] == "False")
    assert first["data_id"] == "root.layers.1.post_attention_layernorm/input_0"
    assert first["pairing_reason"] == "by the names of the modules around it, since it is no module's output"


def test_inputs_that_a_module_put_out_are_no_rows(ait, tmp_path):
    record(tmp_path / "golden", make(1))
    record(tmp_path / "mine", make(1))
    _, _, rows = compare(ait, tmp_path)
    inputs = [row["data_id"] for row in rows if "/input" in row["data_id"] and ".1." in row["data_id"]]
    layer = "root.layers.1"
    assert inputs == [
        f"{layer}.self_attn.o_proj/input_0",
        f"{layer}.post_attention_layernorm/input_0",
        f"{layer}.mlp.down_proj/input_0",
    ]


def test_a_fault_is_found_between_two_calls_of_a_module(ait, tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed = torch.nn.Embedding(50, 16)
            self.drop = torch.nn.Dropout(0.1)
            self.a = torch.nn.Linear(16, 16)
            self.b = torch.nn.Linear(16, 16)

        def forward(self, words):
            return self.drop(self.b(self.drop(self.a(self.embed(words)))))

    record(tmp_path / "golden", Net().eval())
    mine = Net().eval()
    with torch.no_grad():
        mine.b.weight.mul_(1.5)
    record(tmp_path / "mine", mine)
    _, _, rows = compare(ait, tmp_path)
    assert [row["data_id"] for row in rows] == [
        f"root{name}/output" for name in (".embed", ".a", ".drop", ".b", ".drop#1", "")
    ]
    assert next(row for row in rows if row["identical"] == "False")["data_id"] == "root.b/output"


def test_what_ran_in_the_first_round_only_is_no_row_of_later_ones(ait, tmp_path):
    record(tmp_path / "golden", make(1, once=True), rounds=3)
    record(tmp_path / "mine", make(1, once=True), rounds=3)
    done, _, rows = compare(ait, tmp_path, "--fail-on", "failed,unmatched")
    assert done.returncode == 0
    assert {row["token_id"] for row in rows if ".encoder" in row["data_id"]} == {"0"}
    assert {row["identical"] for row in rows} == {"True"}


def test_every_model_of_a_process_is_compared(ait, tmp_path):
    def models():
        return make(1), Around(make(2), "net"), make(3)

    record(tmp_path / "golden", *models())
    mine = models()
    with torch.no_grad():
        mine[2].lm_head.weight.mul_(1.1)
    record(tmp_path / "mine", *mine)
    _, document, rows = compare(ait, tmp_path)
    names = [row["data_id"].split("/")[0] for row in rows]
    assert list(dict.fromkeys(names)) == ["Decoder", "Around", "Decoder#1"]
    assert [row["data_id"] for row in rows if row["identical"] == "False"] == [
        "Decoder#1/root.lm_head/output",
        "Decoder#1/root/output",
    ]
    assert document["pairing"]["my"]["paired"] == document["pairing"]["my"]["operations"] > 100


def test_a_model_that_the_other_run_does_not_have_is_named(ait, tmp_path):
    record(tmp_path / "golden", make(1))
    folders = record(tmp_path / "mine", torch.nn.Embedding(50, 4), make(1))
    done, _, rows = compare(ait, tmp_path)
    assert {row["identical"] for row in rows} == {"True"}
    assert all("/torch_tensors/" in row["my_data_path"] and folders[1] in row["my_data_path"] for row in rows)
    (warning,) = [line for line in done.stderr.splitlines() if "is not compared" in line]
    assert folders[0] in warning and "Embedding" in warning


def test_a_model_whose_every_projection_has_an_adapter_is_compared_by_names(ait, tmp_path):
    def adapt(model):
        for child in list(model.modules()):
            for name in ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"):
                if hasattr(child, name):
                    setattr(child, name, pairing_names.Lora(getattr(child, name), 0.5))
        return model

    record(tmp_path / "golden", make(1))
    record(tmp_path / "mine", adapt(make(1)))
    _, document, rows = compare(ait, tmp_path)
    assert document["pairing"]["method"].startswith("by the names of modules")
    pairs = {(row["golden_operation"], row["my_operation"]) for row in rows if row["golden_operation"]}
    for golden, mine in pairs:
        assert not mine or mine in (golden, f"{golden}.base_layer")


T5 = """
import torch, transformers
torch.manual_seed(7)
config = transformers.T5Config(
    vocab_size=37, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0,
    eos_token_id=None)
model = transformers.T5ForConditionalGeneration(config).eval()
model.generate(torch.tensor([[1, 5, 9]]), max_new_tokens=3, do_sample=False)
"""


def test_the_encoder_that_a_script_calls_by_itself_is_compared(ait, tmp_path):
    dump(tmp_path, T5, "-er", "0,2", out="golden")
    dump(tmp_path, T5, "-er", "0,2", out="mine")
    done, _, rows = compare(ait, tmp_path, "--fail-on", "failed,unmatched")
    assert done.returncode == 0, done.stderr
    names = list(dict.fromkeys(row["data_id"].split("/")[0] for row in rows))
    assert names == ["T5Stack", "T5ForConditionalGeneration"]
    assert {row["identical"] for row in rows} == {"True"}
