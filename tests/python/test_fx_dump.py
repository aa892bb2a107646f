"""fx_backend against torch's own backends and an interpreter of the test's own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import ait_llm
import numpy as np
import pytest
import torch
import torch_models
from ait_llm.dump import fx_dump
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd

NAME = re.compile(r"(.+)-(.+)\.(INPUT|OUTPUT)\.(\d+(?:\.\d+)?)\.(\d{20})\.npy")


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch._dynamo.reset()


def tree(root, folder="msit_fx_dump"):
    """{(graph, token): {(node, target, kind, index): array}} of one rank."""
    fx_dump.flush()
    found = {}
    for path in sorted(Path(root, folder, "worldsize1_global_rank0").glob("graph_*/*/*.npy")):
        node, target, kind, index, _ = NAME.fullmatch(path.name).groups()
        call = found.setdefault((path.parts[-3], int(path.parts[-2])), {})
        assert (node, target, kind, index) not in call, "written once"
        call[node, target, kind, index] = np.load(path, allow_pickle=False)
    return found


def graphs(found):
    """Their calls, in the order of compiling; numbers go on through a process."""
    names = sorted({graph for graph, _ in found}, key=lambda name: int(name[6:]))
    return [[found[name, token] for token in sorted(t for g, t in found if g == name)] for name in names]


class Seen:
    """What an interpreter saw of each call of each graph, as numpy arrays by node."""

    def __init__(self):
        self.graphs = []

    def backend(self, graph, inputs):
        return aot_autograd(
            fw_compiler=self.compile,
            bw_compiler=self.compile,
            inference_compiler=self.compile,
            partition_fn=min_cut_rematerialization_partition,
            keep_inference_input_mutations=True,
        )(graph, inputs)

    def compile(self, graph, inputs):
        calls = []
        self.graphs.append(calls)

        class Interpreter(torch.fx.Interpreter):
            def call_function(self, target, args, kwargs):
                before = {}
                is_operation = isinstance(target, torch._ops.OpOverload)  # not arithmetic with sizes
                if is_operation:
                    for i, value in enumerate(args):
                        many = isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor)
                        for j, each in enumerate(value if many else [value]):
                            if isinstance(each, torch.Tensor):
                                before[f"{i}.{j}" if many else f"{i}"] = array(each)
                result = super().call_function(target, args, kwargs)
                if is_operation:
                    seen = calls[-1].setdefault(self.node.name, {})
                    seen["INPUT"] = before
                    results = result if isinstance(result, (list, tuple)) else [result]
                    seen["OUTPUT"] = {str(i): array(each) for i, each in enumerate(results) if each is not None}
                return result

            def run_node(self, node):
                self.node = node
                return super().run_node(node)

        def run(*arguments):
            calls.append({})
            return Interpreter(graph).run(*arguments)

        return run


def array(tensor):
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).clone().numpy()


def assert_same(found, seen):
    """Every tensor of every node of a call, bit for bit."""
    files = {(node, kind, index): data for (node, _, kind, index), data in found.items()}
    expected = {
        (node, kind, index): data
        for node, sides in seen.items()
        for kind, parts in sides.items()
        for index, data in parts.items()
    }
    assert expected.keys() <= files.keys()
    for key, data in expected.items():
        assert files[key].dtype == data.dtype and files[key].shape == data.shape, key
        assert files[key].tobytes() == data.tobytes(), key
    # The rest are arguments that are numbers.
    assert all(kind == "INPUT" and files[node, kind, index].ndim <= 1 for node, kind, index in files.keys() - expected)


def generate(model, inputs, calls):
    """A prompt and `calls` further words, with a cache."""
    logits, cache = [], None
    tokens = inputs["input_ids"]
    with torch.no_grad():
        for _ in range(calls + 1):
            out = model(input_ids=tokens, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            logits.append(out.logits)
            tokens = out.logits[:, -1:].argmax(-1)
    return logits


FAST = ["llama"]
SLOW = ["qwen2", "gpt2", "mistral", "bloom"]


@pytest.mark.parametrize("name", [*FAST, *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)])
def test_a_compiled_model_is_recorded_node_by_node(name, tmp_path):
    model, inputs = torch_models.build(name)
    eager = generate(model, inputs, 2)

    results = {}
    seen = Seen()
    for way, backend in {
        "aot_eager": "aot_eager",
        "seen": seen.backend,
        "recorded": ait_llm.dump.fx_backend(dump_path=str(tmp_path)),
    }.items():
        torch._dynamo.reset()
        results[way] = generate(torch.compile(model, backend=backend), inputs, 2)
    for ours, theirs, plain in zip(results["recorded"], results["aot_eager"], eager):
        assert torch.equal(ours, theirs)
        assert torch.allclose(ours, plain, rtol=1e-5, atol=1e-5)

    found = graphs(tree(tmp_path))
    assert len(found) == len(seen.graphs) >= 2, "prompt and words are graphs of their own"
    numbers = tree(tmp_path)
    for name in {graph for graph, _ in numbers}:  # tokens count the calls of each graph
        tokens = [token for graph, token in numbers if graph == name]
        assert sorted(tokens) == list(range(len(tokens)))
    for calls, expected in zip(found, seen.graphs):
        assert len(calls) == len(expected)
        for call, nodes in zip(calls, expected):
            assert_same(call, nodes)


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.cat([self.linear(x).relu(), x], dim=-1)


def call(model, backend, *inputs):
    with torch.no_grad():
        return torch.compile(model, backend=backend)(*inputs)


def test_recompilations_and_graph_breaks_are_graphs_of_their_own(tmp_path):
    class Broken(Small):
        def forward(self, x):
            x = super().forward(x)
            torch._dynamo.graph_break()
            return x * 2

    compiled = torch.compile(Broken(), backend=ait_llm.dump.fx_backend(str(tmp_path)), dynamic=False)
    with torch.no_grad():
        for rows in (2, 2, 3):
            compiled(torch.ones(rows, 4))
    found = graphs(tree(tmp_path))
    nodes = [[{node for node, *_ in call} for call in calls] for calls in found]
    whole = {"t", "addmm", "relu", "cat"}
    assert nodes == [[whole, whole], [{"mul"}, {"mul"}], [whole], [{"mul"}]]


def test_numbers_are_stored_and_what_is_none_leaves_a_gap(tmp_path):
    class Slices(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.layer_norm(x[:, 1:3], [2])

    call(Slices(), ait_llm.dump.fx_backend(str(tmp_path)), torch.ones(2, 4))
    ((found,),) = graphs(tree(tmp_path))
    cut = {key[3]: value for key, value in found.items() if key[:3] == ("slice_1", "aten.slice.Tensor", "INPUT")}
    assert [cut[index].item() for index in "123"] == [1, 1, 3] and cut["1"].dtype == np.int64
    norm = {key[3]: value for key, value in found.items() if key[1:3] == ("aten.native_layer_norm.default", "INPUT")}
    assert sorted(norm) == ["0", "1", "4"] and norm["1"].tolist() == [2] and norm["4"].dtype == np.float64


def test_half_types_are_stored_as_numpy_can_hold_them(tmp_path):
    model = Small().bfloat16()
    call(model, ait_llm.dump.fx_backend(str(tmp_path)), torch.ones(2, 4, dtype=torch.bfloat16))
    ((found,),) = graphs(tree(tmp_path))
    output = found["relu", "aten.relu.default", "OUTPUT", "0"]
    assert output.dtype == np.float32
    assert torch.equal(torch.from_numpy(output).bfloat16(), model.linear(torch.ones(2, 4).bfloat16()).relu())


def test_inputs_are_as_they_were_before_a_node_wrote_to_them(tmp_path):
    class Writes(torch.nn.Module):
        def forward(self, cache, x):
            cache[0] = x
            return cache.sum()

    cache = torch.zeros(2, 3)
    result = call(Writes(), ait_llm.dump.fx_backend(str(tmp_path)), cache, torch.ones(3))
    assert cache[0].tolist() == [1, 1, 1] and result == 3
    ((found,),) = graphs(tree(tmp_path))
    first = next(
        data
        for (_, target, kind, index), data in found.items()
        if "copy_" in target and (kind, index) == ("INPUT", "0")
    )
    assert not first.any()


def test_only_the_tokens_that_are_asked_for(tmp_path):
    compiled = torch.compile(Small(), backend=ait_llm.dump.fx_backend(str(tmp_path), tokens=[1, 3]))
    with torch.no_grad():
        for _ in range(5):
            compiled(torch.ones(2, 4))
    assert [token for _, token in tree(tmp_path)] == [1, 3]


def test_a_backward_pass_is_a_graph_of_its_own(tmp_path):
    torch.manual_seed(0)
    models = [Small(), Small()]
    models[1].load_state_dict(models[0].state_dict())
    for model, backend in zip(models, ["aot_eager", ait_llm.dump.fx_backend(str(tmp_path))]):
        torch._dynamo.reset()
        torch.compile(model, backend=backend)(torch.ones(2, 4)).square().sum().backward()
    assert torch.equal(models[0].linear.weight.grad, models[1].linear.weight.grad)
    forward, backward = graphs(tree(tmp_path))
    assert len(forward) == len(backward) == 1 and any("threshold_backward" in key[1] for key in backward[0])
    manifest = json.loads((tmp_path / "msit_fx_dump/worldsize1_global_rank0/manifest.json").read_text())
    assert [graph["kind"] for graph in manifest["graphs"].values()] == ["forward", "backward"]


def test_another_backend_runs_beside_and_gives_the_result(tmp_path):
    class Noise(Small):
        def forward(self, x, cache):
            cache.add_(1)
            return torch.nn.functional.dropout(super().forward(x), 0.5, training=True) + cache.sum()

    x, caches = torch.ones(2, 4), [torch.zeros(3), torch.zeros(3)]
    model = Noise()
    torch.manual_seed(5)
    alone = call(model, "aot_eager", x, caches[0])
    torch._dynamo.reset()
    torch.manual_seed(5)
    beside = call(model, ait_llm.dump.fx_backend(str(tmp_path), inner="aot_eager"), x, caches[1])
    assert torch.equal(alone, beside) and torch.equal(*caches), "random numbers and what is written are its own"
    ((ours,),) = graphs(tree(tmp_path))
    ((theirs,),) = graphs(tree(tmp_path, "aot_eager_fx_dump"))
    key = ("output", "output", "OUTPUT", "0")
    assert list(theirs) == [key]
    assert np.array_equal(theirs[key], beside.numpy()) and np.array_equal(ours[key], beside.numpy())


def test_a_wrong_decomposition_is_the_first_node_that_differs(tmp_path):
    """Of a llama: SiLU in parts, once with a factor that is off. Comparing the two dumps finds the part."""

    def decomposing(factor, folder):
        recording = ait_llm.dump.fx_backend(str(tmp_path / folder))

        def silu(x, inplace=False):
            return x * torch.sigmoid(x * factor)

        def backend(graph, inputs):
            found = [node for node in graph.graph.nodes if node.target is torch.nn.functional.silu]
            assert found
            for node in found:
                node.target = silu
            graph.recompile()
            return recording(graph, inputs)

        return backend

    model, inputs = torch_models.build("llama")
    for factor, folder in ((1.0, "golden"), (1.01, "my")):
        torch._dynamo.reset()
        generate(torch.compile(model, backend=decomposing(factor, folder)), inputs, 1)
    golden = graphs(tree(tmp_path / "golden"))[0][0]
    sigmoid = golden["sigmoid", "aten.sigmoid.default", "INPUT", "0"]
    (part,) = {
        node
        for (node, target, kind, _), data in golden.items()
        if (target, kind) == ("aten.mul.Tensor", "OUTPUT") and np.array_equal(data, sigmoid)
    }
    rows = list(ait_llm.compare_runs(tmp_path / "golden/msit_fx_dump", tmp_path / "my/msit_fx_dump"))
    assert not any(row.golden.is_missing or row.actual.is_missing for row in rows), "both have the same nodes"
    assert {row.reason for row in rows if row.comparison is None} <= {"data is empty."}
    wrong = [row for row in rows if row.comparison is not None and not row.comparison.identical]
    # The factor itself, and what it makes of the product.
    assert [row.golden.operation.split("/")[-1] for row in wrong[:2]] == [part, part]
    assert [row.subject.tensor for row in wrong[:2]] == ["input_1", "output_0"]
    assert wrong[0].token == "0"


def test_a_folder_that_cannot_be_written_costs_the_recording_only(tmp_path, caplog):
    (tmp_path / "msit_fx_dump").write_text("a file in the way")
    result = call(Small(), ait_llm.dump.fx_backend(str(tmp_path)), torch.ones(2, 4))
    assert result.shape == (2, 8)
    assert "was not recorded" in caplog.text


def test_two_runs_in_one_folder_are_warned_of(tmp_path, caplog):
    (tmp_path / "msit_fx_dump/worldsize1_global_rank0").mkdir(parents=True)
    call(Small(), ait_llm.dump.fx_backend(str(tmp_path)), torch.ones(2, 4))
    assert "is not empty: data of two dumps would be mixed" in caplog.text


def test_a_program_ends_as_without_it(tmp_path):
    """Nothing on stderr, and everything on disk without a call of ours."""
    code = """
import sys, torch, ait_llm
class Model(torch.nn.Module):
    def forward(self, x): return x * 2 + 1
model = torch.compile(Model(), backend=ait_llm.dump.fx_backend(sys.argv[1]))
print(model(torch.ones(2)).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[3.0, 3.0]\n", "")
    assert len(list(tmp_path.rglob("*.OUTPUT.*.npy"))) == 2


def test_ranks_have_folders_of_their_own(tmp_path):
    code = """
import sys, torch, torch.distributed, ait_llm
meet = "file://" + sys.argv[1] + "/meet"
torch.distributed.init_process_group("gloo", init_method=meet, rank=int(sys.argv[2]), world_size=2)
model = torch.compile(torch.nn.ReLU(), backend=ait_llm.dump.fx_backend(sys.argv[1]))
model(torch.ones(2))
torch.distributed.destroy_process_group()
"""
    ranks = [subprocess.Popen([sys.executable, "-c", code, tmp_path, str(rank)]) for rank in (0, 1)]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    folders = sorted(path.name for path in (tmp_path / "msit_fx_dump").iterdir())
    assert folders == ["worldsize2_global_rank0", "worldsize2_global_rank1"]


def test_a_backend_is_no_file():
    with pytest.raises(TypeError, match="dump_path must be a str"):
        ait_llm.dump.fx_backend(3)
    assert os.path.isabs(ait_llm.dump.fx_backend("x")._recorder.place)
