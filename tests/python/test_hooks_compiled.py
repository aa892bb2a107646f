"""Models that torch.compile has compiled: what is inside is recorded, and the script keeps what it has compiled."""

import csv
import dataclasses
import os
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from hook_models import Block, Model, X, manifest_of
from torch_oracle import assert_same_tensor, recorded

pytestmark = pytest.mark.skipif(not hasattr(torch, "compiler"), reason="needs torch.compile")
compiles = pytest.mark.skipif(os.environ.get("CXX") == "/bin/false", reason="inductor needs a compiler")
BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, compiles])]


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch._dynamo.reset()


def graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def seeded(kind=Model):
    torch.manual_seed(0)
    return kind()


def trained(called, model, x):
    """The output, and all gradients."""
    model.zero_grad()
    x = x.clone().requires_grad_()
    output = called(x)
    output.square().sum().backward()
    return [output.detach(), x.grad, *(each.grad.clone() for each in model.parameters())]


def assert_all_equal(some, others):
    assert len(some) == len(others) and all(torch.equal(one, other) for one, other in zip(some, others))


def eager_files(model, tmp_path, *inputs):
    with register_hook(model, DumpConfig(str(tmp_path / "eager"), list(range(len(inputs))))) as handle:
        for x in inputs:
            model(x)
    return recorded(handle.folder)


def assert_same_files(found, expected, close=False):
    assert found.keys() == expected.keys()
    for module, files in expected.items():
        assert found[module].keys() == files.keys(), module
        for name, tensor in files.items():
            if close:
                torch.testing.assert_close(found[module][name], tensor)
            else:
                assert_same_tensor(found[module][name], tensor)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("when", ["hooks first", "compiled first", "in place", "part"])
def test_the_modules_inside_are_recorded_and_results_are_the_same(when, backend, tmp_path):
    model = seeded()
    alone = trained(torch.compile(model, backend=backend, fullgraph=True), model, X)
    expected = eager_files(model, tmp_path, X, X + 1)
    torch._dynamo.reset()
    config = DumpConfig(str(tmp_path / "compiled"), [0, 1])
    called = model
    if when == "hooks first":
        handle = register_hook(model, config)
        called = torch.compile(model, backend=backend, fullgraph=True)
    else:
        if when == "compiled first":
            called = torch.compile(model, backend=backend, fullgraph=True)
        elif when == "in place":
            model.compile(backend=backend, fullgraph=True)
        else:
            model.blocks[0] = torch.compile(model.blocks[0], backend=backend, fullgraph=True)
        trained(called, model, X)
        handle = register_hook(called, config)
    if when == "part":
        alone = trained(called, model, X)
        handle.remove()
        handle = register_hook(called, config)
    first = trained(called, model, X)
    trained(called, model, X + 1)
    beyond = trained(called, model, X)  # the script's own graph
    handle.remove()
    compiled_so_far = graphs()
    assert_all_equal(trained(called, model, X), alone)
    assert graphs() == compiled_so_far
    assert_all_equal(beyond, alone)
    if backend == "inductor":
        for one, other in zip(first, alone):
            torch.testing.assert_close(one, other)
    else:
        assert_all_equal(first, alone)
    found = recorded(handle.folder)
    for number in (0, 1):
        assert_same_files(found[number], expected[number], close=backend == "inductor")
    manifest = manifest_of(handle)
    assert manifest["state"] == "complete" and manifest["errors"] == manifest["not_stored"] == [], manifest
    (entry,) = manifest["compiled"]
    assert (entry["backend"], entry["calls"], entry["modules_inside"]) == (backend, 2, "recorded")
    assert ("note" in entry) is (backend == "inductor")


def test_each_run_of_a_graph_renews_the_statistics(tmp_path):
    model = seeded()
    called = torch.compile(model, backend="eager")
    tables = {}
    inputs = [X * factor for factor in (1, 2, 3)]
    for way, each in (("eager", model), ("compiled", called)):
        config = DumpConfig(str(tmp_path / way), [0, 1, 2], dump_statistics_mode=1)
        with torch.no_grad(), register_hook(each, config) as handle:
            for x in inputs:
                each(x)
        tables[way] = []
        for number in range(3):
            with open(Path(handle.folder, str(number), "statistics.csv"), newline="") as file:
                rows = list(csv.DictReader(file))
            tables[way].append([{key: value for key, value in row.items() if key != "SameAs"} for row in rows])
    assert tables["compiled"] == tables["eager"]
    assert tables["eager"][0] != tables["eager"][1]


def test_nothing_stays_when_the_recording_ends(tmp_path):
    eval_frame = pytest.importorskip("torch._C._dynamo.eval_frame")
    if not hasattr(eval_frame, "_get_cache_entries_for_region"):
        pytest.skip("this torch counts all that is compiled together")
    from torch._dynamo.variables.nn_module import NNModuleVariable, UnspecializedNNModuleVariable

    functions = [NNModuleVariable.call_function, UnspecializedNNModuleVariable.call_function]
    model = seeded()
    called = torch.compile(model, backend="eager")
    called(X)
    own = graphs()

    def state():
        own_entries = eval_frame._get_cache_entries_for_region(Model.forward.__code__, -1)
        return len(own_entries), dict(vars(model)), dict(vars(called))

    before = state()
    for number in range(12):  # more than torch compiles of one function
        with register_hook(called, DumpConfig(str(tmp_path / str(number)))) as handle:
            called(X)
            called(X)
        assert manifest_of(handle)["state"] == "complete" and len(recorded(handle.folder)[0]) == 8
    assert state() == before
    entries = eval_frame._debug_get_cache_entry_list(Model.forward.__code__)
    assert not any("ait" in type(entry.backend).__module__ for entry in entries)
    assert [NNModuleVariable.call_function, UnspecializedNNModuleVariable.call_function] == functions
    made = graphs()
    assert made == own + 12
    called(X)
    assert graphs() == made


def test_graph_breaks_inside_a_model(tmp_path):
    class Breaking(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.nn.Linear(4, 4)
            self.two = Block()

        def forward(self, x):
            x = self.one(x)
            torch._dynamo.graph_break()
            return self.two(self.one(x))

    model = seeded(lambda: torch.nn.Sequential(Breaking(), torch.nn.ReLU()))
    expected = eager_files(model, tmp_path, X)
    alone = model(X)
    called = torch.compile(model, backend="eager")
    with register_hook(called, DumpConfig(str(tmp_path / "compiled"))) as handle:
        assert torch.equal(called(X), alone)
    assert_same_files(recorded(handle.folder)[0], expected[0])
    assert manifest_of(handle)["state"] == "complete"


def test_all_kinds_of_arguments_and_results(tmp_path):
    @dataclasses.dataclass
    class Result:
        hidden: torch.Tensor
        parts: tuple
        nothing: None = None

    class Part(torch.nn.Module):
        def forward(self, x, pair, *, named=None, number=3):
            return {"a": x + pair[0], "b": [pair[1] * number, named["k"]], "c": None, "d": 7}

    class Inner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()
            self.same = torch.nn.Identity()

        def forward(self, x):
            got = self.part(x, (x * 2, x * 3), named={"k": x - 1})
            return Result(self.same(got["a"]), (got["b"][0], got["b"][1]))

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            result = self.inner(x)
            return result.hidden + result.parts[1]

    model = Outer()
    expected = eager_files(model, tmp_path, X)
    called = torch.compile(model, backend="eager", fullgraph=True)
    with register_hook(called, DumpConfig(str(tmp_path / "compiled"))) as handle:
        called(X)
    assert_same_files(recorded(handle.folder)[0], expected[0])


def test_a_backend_of_the_scripts_own_is_left_alone_and_that_is_said(tmp_path, capfd):
    seen = []

    def backend(graph, inputs):
        seen.append(str(graph.graph))
        return graph.forward

    model = seeded()
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        called = torch.compile(model, backend=backend, fullgraph=True)
        assert torch.equal(called(X), model(X))
    assert len(seen) == 1 and "ait" not in seen[0]
    manifest = manifest_of(handle)
    assert manifest["state"] == "incomplete" and set(recorded(handle.folder)[0]) == {"root"}
    (sentence,) = manifest["incomplete_because"]
    assert sentence.startswith("7 of 8 modules were not heard of in the rounds recorded: torch.compile has compiled 1 ")
    assert "a backend of the script's own, backend" in sentence
    assert manifest["compiled"][0]["modules_inside"] == "not recorded"
    assert "not recorded inside" in capfd.readouterr().err


def test_a_model_in_a_compiled_function_is_said_to_be_missing(tmp_path):
    model = seeded()
    step = torch.compile(lambda x: model(x) * 2, backend="eager", fullgraph=True)
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        assert torch.equal(step(X), model(X) * 2)
    manifest = manifest_of(handle)
    assert manifest["root_calls"] == 1  # the one outside
    with register_hook(model, DumpConfig(str(tmp_path / "other"))) as handle:
        step(X)
    (sentence,) = manifest_of(handle)["incomplete_because"]
    assert sentence.startswith("no call of the model was heard of: torch.compile has compiled 1 graph(s)")
