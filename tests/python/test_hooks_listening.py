"""How calls are heard of: from beside the model, and not at all while torch itself looks at it."""

import inspect
import json
import traceback
import weakref
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from hook_models import Failing, Model, X, listeners_of, load, manifest_of, record, state_of
from torch_oracle import recorded

needs_torch_2 = pytest.mark.skipif(not hasattr(torch, "compiler"), reason="needs torch 2")


def reasons_of(handle, key):
    return {entry["reason"]: entry for entry in manifest_of(handle)[key]}


def test_torchs_own_class_stays_as_it_is(tmp_path):
    model = Model()
    before, code = dict(vars(torch.nn.Module)), torch.nn.Module._call_impl.__code__
    with register_hook(model, DumpConfig(str(tmp_path))):
        assert dict(vars(torch.nn.Module)) == before and torch.nn.Module._call_impl.__code__ is code
        assert model._call_impl.__func__ is before["_call_impl"]
        assert inspect.getsource(torch.nn.Module._call_impl).lstrip().startswith("def _call_impl")


def test_a_call_is_heard_of_by_all_recordings_until_each_ends(tmp_path):
    model = Model()
    handles = [register_hook(model, DumpConfig(str(tmp_path), [number])) for number in range(3)]
    model(X)
    handles[1].remove()
    model(X)
    model(X)
    for handle in handles:
        handle.remove()
    assert [set(recorded(handle.folder)) for handle in handles] == [{0}, set(), {2}]
    assert listeners_of(model) == []


def test_another_module_at_the_address_of_one_that_is_gone_is_not_taken_for_it(tmp_path):
    model, other = Model(), Model()
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        for tap in listeners_of(model):
            tap.module = weakref.ref(other)  # as if it were gone, and its address used again
        model(X)
        assert listeners_of(model) == []
        with register_hook(model, DumpConfig(str(tmp_path), [0, 1])) as again:
            model(X)
    assert recorded(handle.folder) == {}
    assert len(recorded(again.folder)[0]) == 8


def test_a_wrapper_that_others_put_around_all_calls_and_take_away_again_changes_nothing(tmp_path):
    model, seen = Model(), []
    original = torch.nn.Module.__call__
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1, 2])) as handle:
        found = torch.nn.Module.__call__
        torch.nn.Module.__call__ = lambda self, *args, **kwargs: seen.append(self) or found(self, *args, **kwargs)
        model(X)
        torch.nn.Module.__call__ = found
        torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))  # does the same
        model(X)
    model(X)
    assert len(seen) == 8 and torch.nn.Module.__call__ is original
    assert {number: len(calls) for number, calls in recorded(handle.folder).items()} == {0: 8, 1: 8}


def test_tracebacks_are_those_of_the_model_alone(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(Failing()))

    def frames():
        with pytest.raises(ArithmeticError) as caught:
            model(X)
        return [(frame.filename, frame.lineno) for frame in traceback.extract_tb(caught.value.__traceback__)]

    alone = frames()
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1])):
        assert frames() == alone


def test_a_model_is_called_by_nobody_but_torch_and_the_script(tmp_path):
    class Looking(torch.nn.Module):
        def forward(self, x):
            stacks.append([(frame.filename, frame.lineno) for frame in traceback.extract_stack()])
            return x

    model, stacks = torch.nn.Sequential(torch.nn.Sequential(Looking())), []
    for recording in (False, True):
        handle = register_hook(model, DumpConfig(str(tmp_path))) if recording else None
        model(X)
    handle.remove()
    assert stacks[0] == stacks[1] and len(recorded(handle.folder)[0]) == 3


@pytest.mark.parametrize("method", ["__call__", pytest.param("_call_impl", marks=needs_torch_2)])
def test_a_class_with_a_call_of_its_own_is_named_where_it_is_not_heard_of(method, tmp_path):
    class Passing(torch.nn.Linear):
        def __call__(self, *args):
            return super().__call__(*args)

    own = type("Own", (torch.nn.Linear,), {method: torch.nn.Linear.forward})
    handle = record(torch.nn.Sequential(own(4, 4), Passing(4, 4)), tmp_path, X)
    assert set(recorded(handle.folder)[0]) == {"root", "root.1"}
    (entry,) = manifest_of(handle)["not_listened_to"]
    assert (entry["count"], entry["first"]) == (1, "root.0") and "__call__ of its own" in entry["reason"]
    assert manifest_of(handle)["state"] == "incomplete"
    (sentence,) = manifest_of(handle)["incomplete_because"]
    assert sentence.startswith("1 of 3 modules were not heard of in the rounds recorded: some modules cannot be")
    handle = record(own(4, 4), tmp_path, X)
    assert "__call__ of its own" in manifest_of(handle)["not_listened_to"][0]["reason"]
    assert manifest_of(handle)["incomplete_because"][0].startswith("no call of the model was heard of: some modules")


def test_fx_traces_a_model_as_if_nobody_listened(tmp_path):
    model, other = (torch.nn.Sequential(Model(), torch.nn.ReLU()) for _ in range(2))
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        graph = torch.fx.symbolic_trace(model)
    assert graph.code == torch.fx.symbolic_trace(other).code
    assert manifest_of(handle)["root_calls"] == 0
    assert "called while torch.fx traced the model" in reasons_of(handle, "not_stored")
    assert any("traced or exported" in reason for reason in manifest_of(handle)["never_ran_because"])


@needs_torch_2
def test_export_looks_at_a_model_as_if_nobody_listened(tmp_path):
    model = Model().eval()
    before = state_of(model)
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        program = torch.export.export(model, (X,))
        assert state_of(model) == before
        model(X)
    assert str(program.graph) == str(torch.export.export(model, (X,)).graph)
    assert not any("ait_llm" in str(node.meta.get("stack_trace")) for node in program.graph.nodes)
    assert manifest_of(handle)["root_calls"] == 1 and len(recorded(handle.folder)[0]) == 8


@needs_torch_2
@pytest.mark.parametrize("mode", ["module", ["module", "api"]])
def test_a_compiled_part_has_the_graphs_that_it_would_have_alone(mode, tmp_path):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph.code)
        return graph.forward

    class Calling(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 4)
            self.part = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4)), backend=backend, fullgraph=True)
            self.function = torch.compile(lambda x: self.fc(x) * 2, backend=backend, fullgraph=True)

        def forward(self, x):
            return self.function(self.part(x)).relu()

    torch._dynamo.reset()
    torch.manual_seed(0)
    expected = Calling()(X)
    alone = list(graphs)
    torch._dynamo.reset()
    graphs.clear()
    torch.manual_seed(0)
    model = Calling()
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1], mode=mode)) as handle:
        assert torch.equal(model(X), expected) and torch.equal(model(X), expected)
    # Where any function mode is on, as for mode="api", torch.compile writes an operator as a method.
    assert [code.replace("linear.mul(2)", "linear * 2") for code in graphs] == alone and len(graphs) == 2
    assert {"root", "root.part"} <= set(recorded(handle.folder)[1])
    assert any("torch.compile" in reason for reason in manifest_of(handle)["never_ran_because"])


@pytest.mark.skipif(not hasattr(torch, "func"), reason="needs torch.func")
def test_tensors_of_transforms_are_said_not_to_be_stored(tmp_path):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        assert torch.equal(torch.func.vmap(model)(X), model(X))
    (reason,) = reasons_of(handle, "not_stored")
    assert "vmap" in reason and manifest_of(handle)["errors"] == []


def test_a_mode_that_a_model_leaves_behind_is_left_alone(tmp_path):
    class Quiet(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    mode = Quiet()

    class Entering(torch.nn.Module):
        def forward(self, x):
            mode.__enter__()
            return x + 1

    innermost = getattr(torch.overrides, "_get_current_function_mode", None)
    if innermost is None:
        pytest.skip("needs torch 2")
    try:
        handle = record(Entering(), tmp_path, X, config=DumpConfig(str(tmp_path), mode="api"))
        assert innermost() is mode
        assert set(recorded(handle.folder)[0]) == {"root.add"}
    finally:
        while innermost() is not None:
            innermost().__exit__(None, None, None)


def test_what_the_caller_gives_is_recorded_under_names_that_are_also_ours(tmp_path):
    class Named(torch.nn.Module):
        def forward(self, *, module, args, kwargs, tap):
            return module + args + kwargs + tap

    handle = record(Named(), tmp_path, module=X, args=X, kwargs=X, tap=X)
    assert torch.equal(load(handle, "0/root/output.pth"), X * 4)


def test_a_module_that_becomes_of_another_class_is_recorded_under_it(tmp_path):
    class Sharded(torch.nn.Linear):
        pass

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1], [Sharded])) as handle:
        model(X)
        model[0].__class__ = Sharded
        model(X)
    assert {number: set(calls) for number, calls in recorded(handle.folder).items()} == {1: {"root.0"}}
    assert json.loads(Path(handle.folder, "model_tree.json").read_text())["children"][0]["type"] == "Sharded"
