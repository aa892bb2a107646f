"""A compiled model against the same model run eagerly: nothing but data says which node is which module."""

import shutil

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from functorch.compile import make_boxed_func
from ge_run import Executor, fx_files, fx_folder
from pairing import read_rows
from torch._dynamo.backends.common import aot_autograd
from torch_run import make_model, record

STEPS = 3


class Compiled:
    """One graph that torch.compile made."""

    def __init__(self, number):
        self.number, self.tokens = number, {}


class GraphRecorder:
    """A backend that runs every graph node by node and remembers the executions in their order."""

    def __init__(self):
        self.graphs, self.executions = [], []

    def compile(self, module, _inputs):
        graph = Compiled(len(self.graphs) + 1)
        self.graphs.append(graph)

        def execute(*args):
            executor = Executor(module)
            executor.calls = []
            with torch.no_grad():
                result = executor.run(*args)
            self.executions.append((graph, len(graph.tokens)))
            graph.tokens[len(graph.tokens)] = executor.calls
            return result

        return make_boxed_func(execute)

    def write(self, root, wrong=None):
        """`wrong` is an execution, and a node whose output is to be off."""
        time = 0
        for number, (graph, token) in enumerate(self.executions):
            folder = root / fx_folder("A", 1, 0, graph, token)
            folder.mkdir(parents=True)
            for name, array in fx_files(graph.tokens[token], time):
                if (number, name.split(".OUTPUT.")[0]) == wrong:
                    array = array + array.std()
                np.save(folder / name, array)
            time += len(graph.tokens[token])
        return root


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """An eager dump and what a compiled twin computed: a prompt and three new words, in three graphs."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs")
    prompt = torch.randint(1, 97, (1, 7), generator=torch.Generator().manual_seed(1))
    record(make_model("llama", 2), folder / "eager" / "ait_dump", prompt, STEPS)
    graphs = GraphRecorder()
    backend = aot_autograd(fw_compiler=graphs.compile, inference_compiler=graphs.compile)
    model = torch.compile(make_model("llama", 2), backend=backend)
    with torch.no_grad():
        cache, given = None, prompt
        for _ in range(STEPS + 1):
            out = model(input_ids=given, past_key_values=cache, use_cache=True)
            cache, given = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
    torch._dynamo.reset()
    return folder / "eager", graphs


def compared(ait, folder, golden, mine):
    shutil.rmtree(folder / "out", ignore_errors=True)
    done = ait("llm", "compare", "-gp", golden, "-mp", mine, "-o", folder / "out", "--extended")
    assert done.returncode == 0, done.stderr
    return read_rows(folder / "out"), done


def test_every_module_is_found_in_the_compiled_graphs(ait, tmp_path, runs):
    eager, graphs = runs
    assert len(graphs.graphs) > 1
    assert len(graphs.executions) == STEPS + 1
    rows, done = compared(ait, tmp_path, eager, graphs.write(tmp_path / "fx"))
    pairs = [row for row in rows if row["golden_data_path"] and row["my_data_path"]]
    assert max(float(row["max_absolute_error"]) for row in pairs) < 1e-4
    assert not any(row["golden_data_path"] and not row["my_data_path"] for row in rows)
    assert {row["token_id"] for row in pairs} == {str(token) for token in range(STEPS + 1)}
    by_node = {(row["token_id"], row["my_operation"].split("/")[1]): row["golden_operation"] for row in pairs}
    for token in range(STEPS + 1):
        assert by_node[str(token), "mm"] == "root.model.layers.0.self_attn.q_proj"
        assert by_node[str(token), "silu_1"] == "root.model.layers.1.mlp.act_fn"
        assert by_node[str(token), "mm_14"] == "root.lm_head"
    assert "2 in golden, 0 in my side" in done.stdout


def test_the_other_way_round_every_module_has_its_node(ait, tmp_path, runs):
    eager, graphs = runs
    rows, _ = compared(ait, tmp_path, graphs.write(tmp_path / "fx"), eager)
    mine = [row for row in rows if row["my_data_path"]]
    assert all(row["golden_data_path"] for row in mine)


def test_a_wrong_node_is_the_first_that_differs(ait, tmp_path, runs):
    eager, graphs = runs
    wrong = graphs.write(tmp_path / "fx", wrong=(2, "mm_4-aten.mm.default"))
    rows, done = compared(ait, tmp_path, eager, wrong)
    differ = [
        (row["token_id"], row["golden_operation"])
        for row in rows
        if row["golden_data_path"] and row["my_data_path"] and float(row["max_absolute_error"]) > 1e-3
    ]
    assert differ == [("2", "root.model.layers.0.mlp.gate_proj")]
    assert "Fault: token 2, " in done.stdout
