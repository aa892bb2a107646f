"""Where the rows of a comparison come from, as `--why` says it: small models of torch, and the engine."""

import json
import shutil
import subprocess

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from test_compare_auto_engine import LLAMA
from torch_run import make_model, record

PROMPT = [1, 15, 7, 33, 5, 60]
LAYERS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.set_num_threads(1)
    return tmp_path_factory.mktemp("flow")


@pytest.fixture(scope="module")
def llama(folder):
    model = make_model("llama", LAYERS)
    model.save_pretrained(folder / "model")
    record(model, folder / "llama", torch.tensor([PROMPT]), 1)
    return folder / "llama"


@pytest.fixture(scope="module")
def mixtral(folder):
    torch.manual_seed(0)
    config = transformers.MixtralConfig(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
        attn_implementation="eager",
    )
    model = transformers.MixtralForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.125)
    record(model, folder / "mixtral", torch.tensor([PROMPT]), 0)
    return folder / "mixtral"


@pytest.fixture
def origin(ait):
    """Of a row of a comparison: the operation that computed it, and the rows that went into it."""

    def ask(golden, mine, row):
        operation = row.rpartition("/")[0]
        done = ait("llm", "compare", "-gp", golden, "-mp", mine, "--why", operation, "--json")
        assert done.returncode == 0, done.stderr
        pairs = {pair["data_id"]: pair.get("computed_from") for pair in json.loads(done.stdout)["pairs"]}
        return pairs[row]

    return ask


def test_llama_flows_from_module_to_module(origin, llama):
    expected = {
        "{}.input_layernorm/output": ("{}.input_layernorm", "norm", ["{before}/output"]),
        "{}.self_attn.v_proj/output": ("{}.self_attn.v_proj", "linear", ["{}.input_layernorm/output"]),
        "{}.self_attn.o_proj/input_0": (
            "{}.self_attn",
            "",
            [
                "root.model.rotary_emb/output_0",
                "root.model.rotary_emb/output_1",
                *("{}.self_attn." + name + "_proj/output" for name in "qkv"),
            ],
        ),
        "{}.post_attention_layernorm/input_0": ("{}", "add", ["{before}/output", "{}.self_attn/output_0"]),
        "{}.mlp.down_proj/input_0": ("{}.mlp", "multiply", ["{}.mlp.act_fn/output", "{}.mlp.up_proj/output"]),
        "{}/output": ("{}", "add", ["{}.post_attention_layernorm/input_0", "{}.mlp/output"]),
    }
    for number in (1, LAYERS - 1):
        layer, before = f"root.model.layers.{number}", f"root.model.layers.{number - 1}"
        for row, (operation, kind, sources) in expected.items():
            found = origin(llama, llama, row.format(layer))
            assert found["operation"] == operation.format(layer), row
            assert found["kind"] == kind, row
            assert set(found["sources"]) == {each.format(layer, before=before) for each in sources}, row
            assert not found["is_copy"], row
    found = origin(llama, llama, "root.model.layers.1.mlp/output")
    assert found["is_copy"]
    assert found["sources"] == ["root.model.layers.1.mlp.down_proj/output"]
    assert origin(llama, llama, "root.model.norm/output")["sources"] == [f"root.model.layers.{LAYERS - 1}/output"]


def test_a_sum_of_bfloat16_is_a_sum(origin, folder, llama):
    model = make_model("llama", LAYERS).to(torch.bfloat16)
    record(model, folder / "llama16", torch.tensor([PROMPT]), 0)
    for row in ("root.model.layers.2.post_attention_layernorm/input_0", "root.model.layers.2/output"):
        assert origin(llama, folder / "llama16", row)["kind"] == "add"
    assert origin(llama, folder / "llama16", "root.model.layers.2.mlp.down_proj/input_0")["kind"] == "multiply"


def test_experts_come_from_their_router_and_what_it_was_given(origin, mixtral):
    layer = "root.model.layers.1"
    given = f"{layer}.post_attention_layernorm/output"
    assert origin(mixtral, mixtral, f"{layer}.mlp.gate/output_2")["sources"] == [given]
    found = origin(mixtral, mixtral, f"{layer}.mlp.experts/output")
    chosen = {given, f"{layer}.mlp.gate/output_1", f"{layer}.mlp.gate/output_2"}
    assert set(found["sources"]) == {*chosen, f"{layer}.mlp.experts.act_fn/output"}
    assert origin(mixtral, mixtral, f"{layer}.mlp/output")["is_copy"]


def test_why_says_it_in_words(ait, llama):
    layer = "root.model.layers.1"
    done = ait("llm", "compare", "-gp", llama, "-mp", llama, "--why", f"{layer}.mlp.down_proj")
    assert f"  computed from: {layer}.mlp.act_fn/output, {layer}.mlp.up_proj/output, by {layer}.mlp\n" in done.stdout, (
        done.stdout
    )
    done = ait("llm", "compare", "-gp", llama, "-mp", llama, "--why", f"{layer}.mlp")
    assert f"  computed from: {layer}.mlp.down_proj/output, which holds the same\n" in done.stdout, done.stdout


def test_compiled_graphs_flow_from_operation_to_operation(origin, tmp_path):
    pytest.importorskip("google.protobuf")
    from ge_run import GraphRun, inputs_like, two_blocks, write_fx, write_ge

    run = GraphRun(two_blocks, inputs_like(1, 2, 6))
    fx = write_fx([[run]], tmp_path / "msit_fx_dump")
    ge = write_ge([[run]], tmp_path / "msit_ge_dump")
    for mine, add, product in ((fx, "add_1", "mm_5"), (ge, "Add_1", "MatMulV2_5")):
        found = origin(fx, mine, f"{add}/output_0")
        assert found["operation"] == add
        assert set(found["sources"]) == {f"{add}/input_0", f"{add}/input_1"}
        found = origin(fx, mine, f"{add}/input_1")
        assert found["is_copy"]
        assert found["operation"] == product
        assert found["sources"] == [f"{product}/output_0"]
        # What a model is given comes from nowhere.
        assert origin(fx, mine, f"{product}/input_1")["sources"] == []


@pytest.fixture(scope="module")
def dump(folder, llama, program):
    """Records a run of the engine on the same model; `part` 1 is outputs only."""

    def run(name, *arguments, part="2"):
        host = f"{LLAMA} --model {folder / 'model'} --tokens {','.join(map(str, PROMPT))} --steps 2"
        command = [program, "llm", "dump", "--exec", " ".join([host, *arguments]), "--type", "model", "tensor"]
        subprocess.run([*command, "-er", "0,9", "-stp", part, "-o", folder / name], check=True, capture_output=True)
        return folder / name

    return run


@pytest.mark.skipif(not LLAMA.exists(), reason=f"{LLAMA} is not built")
class TestEngine:
    LAYER = "3_Prefill_layer"

    def expected(self, *, rope):
        layer = self.LAYER
        attention = f"{layer}/1_Attention"
        turned = [f"{attention}/3_RopeOperation/outtensor{i}" for i in (0, 1)] if rope else []
        return {
            f"{layer}/0_RmsNormOperation/outtensor0": {"2_Prefill_layer/outtensor0"},
            f"{attention}/0_LinearOperation/outtensor0": {f"{layer}/0_RmsNormOperation/outtensor0"},
            f"{attention}/6_LinearOperation/outtensor0": {f"{attention}/5_SelfAttentionOperation/outtensor0"},
            f"{layer}/2_ElewiseOperation/outtensor0": {"2_Prefill_layer/outtensor0", f"{attention}/outtensor0"},
            f"{layer}/outtensor0": {f"{layer}/5_ElewiseOperation/outtensor0"},
            **(
                {
                    f"{attention}/5_SelfAttentionOperation/outtensor0": {
                        *turned,
                        f"{attention}/2_LinearOperation/outtensor0",
                    }
                }
                if rope
                else {}
            ),
        }

    def test_flow_by_the_names_of_its_topology(self, origin, llama, dump):
        engine = dump("engine", part="1")
        for row, sources in self.expected(rope=False).items():
            assert set(origin(llama, engine, row)["sources"]) == sources, row
        # Turned queries are compared with nothing in torch.
        found = origin(llama, engine, f"{self.LAYER}/1_Attention/5_SelfAttentionOperation/outtensor0")
        assert found["passed"] == [f"{self.LAYER}/1_Attention/3_RopeOperation"]
        assert {f"{self.LAYER}/1_Attention/{i}_LinearOperation/outtensor0" for i in range(3)} < set(found["sources"])
        for row, sources in self.expected(rope=True).items():
            assert set(origin(engine, engine, row)["sources"]) == sources, row

    def test_flow_without_a_topology(self, origin, llama, dump):
        engine = dump("plain")
        # First the topologies of layers are left, then nothing is.
        for kind in ("model", "layer"):
            shutil.rmtree(engine / "ait_dump" / kind)
            for row, sources in self.expected(rope=True).items():
                assert set(origin(engine, engine, row)["sources"]) == sources, (kind, row)

    def test_an_all_reduce_comes_from_all_ranks(self, origin, llama, dump):
        engine = dump("ranks", "--tp 2", part="1")
        attention = f"{self.LAYER}/1_Attention"
        for rank in "01":
            found = origin(engine, engine, f"{attention}/7_AllReduceOperation/outtensor0@{rank}")
            assert set(found["sources"]) == {f"{attention}/6_LinearOperation/outtensor0@{each}" for each in "01"}
            found = origin(engine, engine, f"{attention}/6_LinearOperation/outtensor0@{rank}")
            assert found["sources"] == [f"{attention}/5_SelfAttentionOperation/outtensor0@{rank}"]
        # The parts of two ranks are compared as their sum.
        found = origin(llama, engine, f"{attention}/7_AllReduceOperation/outtensor0@1")
        assert found["sources"] == [f"{attention}/6_LinearOperation/outtensor0"]
