"""Functions, compiled and traced models, and GPUs."""

import os
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from hook_models import (
    DTYPES,
    Failing,
    Giving,
    Model,
    Spoiling,
    X,
    listeners_of,
    load,
    manifest_of,
    nodes_of,
    record,
    tree_of,
)
from tensor_bytes import bytes_of
from torch_oracle import Watcher, assert_recorded, assert_same_tensor, recorded

# Functions


class Functional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.add = torch.nn.Identity()

    def forward(self, x):
        y = torch.nn.functional.softmax(self.fc(x), dim=-1)
        y = (x + y) @ y.t() + self.add(x).sum()
        return torch.matmul(y, x).relu_()


def test_functions_are_recorded_under_the_module_that_calls_them(tmp_path):
    model = Functional()
    expected = model(X)
    with register_hook(model, DumpConfig(str(tmp_path), mode=["module", "api"])) as handle:
        assert torch.equal(model(X), expected)
        assert torch.equal(model(X), expected)
    assert listeners_of(model) == []
    found = recorded(handle.folder)
    assert set(found) == {0}
    assert {
        "root",
        "root.fc",
        "root.add",
        "root.softmax",
        "root.add.1",
        "root.add.2",
        "root.matmul",
        "root.matmul.1",
        "root.sum",
        "root.relu_",
        "root.t",
        "root.fc.linear",
    } <= set(found[0])
    assert torch.equal(found[0]["root.softmax"]["output.pth"], torch.softmax(model.fc(X), -1))
    assert torch.equal(found[0]["root.softmax"]["input_0.pth"], found[0]["root.fc"]["output.pth"])
    before_relu = found[0]["root.relu_"]["input_0.pth"]
    assert torch.equal(before_relu, found[0]["root.matmul.1"]["output.pth"])
    assert torch.equal(found[0]["root.relu_"]["output.pth"], before_relu.relu())
    names = {node["name"] for node in nodes_of(tree_of(handle))}
    assert names == {"root", "root.fc", "root.add"}


def test_functions_alone_and_those_of_a_list(tmp_path):
    config = DumpConfig(str(tmp_path), mode="api", api_list=[torch.matmul, torch.nn.functional.softmax])
    handle = record(Functional(), tmp_path, X, config=config)
    assert set(recorded(handle.folder)[0]) == {"root.softmax", "root.matmul", "root.matmul.1"}


def test_functions_see_exceptions_and_nothing_stays_behind(tmp_path):
    model = Failing()
    with register_hook(model, DumpConfig(str(tmp_path), mode="api", token_range=[0, 1])) as handle:
        with pytest.raises(ArithmeticError):
            model(X)
        torch.add(X, X)  # nobody's
        model.fails = False
        model(X)
    assert {number: set(calls) for number, calls in recorded(handle.folder).items()} == {
        0: {"root.fc.linear"},
        1: {"root.fc.linear"},
    }


# Compiled and traced models


needs_compile = pytest.mark.skipif(not hasattr(torch, "compiler"), reason="needs torch.compile")


def own_backend(graph, inputs):
    return graph.forward


@needs_compile
@pytest.mark.parametrize("when", ["hooks first", "compiled first", "part", "in place"])
def test_a_model_that_others_compile_runs_as_without_hooks_and_what_is_missing_is_said(when, tmp_path):
    model = Model()
    expected = model(X)
    torch._dynamo.reset()
    config = DumpConfig(str(tmp_path))
    if when == "hooks first":
        handle = register_hook(model, config)
        called = torch.compile(model, backend=own_backend, fullgraph=True)
    elif when == "compiled first":
        called = torch.compile(model, backend=own_backend, fullgraph=True)
        handle = register_hook(called, config)
    else:
        called = model
        if when == "part":
            model.blocks[0] = torch.compile(model.blocks[0], backend=own_backend, fullgraph=True)
        else:
            model.blocks[0].compile(backend=own_backend, fullgraph=True)
        handle = register_hook(model, config)
    assert torch.equal(called(X), expected) and torch.equal(called(X), expected)
    handle.remove()
    manifest = manifest_of(handle)
    assert any("torch.compile" in reason for reason in manifest["never_ran_because"])
    assert manifest["state"] == "incomplete"
    (sentence,) = manifest["incomplete_because"]
    missing = {
        "hooks first": "7 of 8 modules were not heard of in the rounds recorded",
        "compiled first": "7 of 8 modules were not heard of in the rounds recorded",
        "part": "2 of 8 modules were not heard of in the rounds recorded",
        "in place": "2 of 8 modules were not heard of in the rounds recorded",
    }[when]
    assert sentence.startswith(f"{missing}: torch.compile has compiled ")
    names = {
        "hooks first": {"root"},
        "compiled first": {"root"},
        "part": {"root", "root.head", "root.blocks.0", "root.blocks.1", "root.blocks.1.fc", "root.blocks.1.act"},
        "in place": {"root", "root.head", "root.blocks.0", "root.blocks.1", "root.blocks.1.fc", "root.blocks.1.act"},
    }[when]
    found = recorded(handle.folder)[0]
    assert set(found) == names
    assert torch.equal(found["root"]["output.pth"], expected)
    assert not any("_orig_mod" in node["name"] for node in nodes_of(tree_of(handle)))


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_is_being_traced_is_left_alone(tmp_path):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        traced = torch.jit.trace(model, X)
    assert str(traced.graph).count("aten::") == str(torch.jit.trace(model, X).graph).count("aten::")
    assert "traced" in manifest_of(handle)["not_stored"][0]["reason"]


@pytest.mark.filterwarnings("ignore")
def test_scripted_modules_are_recorded_from_outside(tmp_path):
    model = torch.nn.Sequential(torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4))), torch.nn.ReLU())
    handle = record(model, tmp_path, X)
    assert set(recorded(handle.folder)[0]) == {"root", "root.0", "root.1"}
    assert manifest_of(handle)["rounds"]["0"]["never_ran"] == ["root.0.0"]
    assert "scripted" in manifest_of(handle)["not_listened_to"][0]["reason"]


def test_hooks_of_others_belong_to_the_call(tmp_path):
    """What is recorded is what the module is called with and what the call returns, whoever changes it in between."""
    model = Model()
    model.head.register_forward_pre_hook(lambda _, args: (args[0] + 1,))
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        model.head.register_forward_hook(lambda _, args, output: output * 2)
        expected = model(X)
    assert torch.equal(expected, model(X))
    assert torch.equal(load(handle, "0/root.head/input_0.pth"), load(handle, "0/root.blocks.1/output.pth"))
    assert torch.equal(load(handle, "0/root.head/output.pth"), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestOnGpu:
    def test_every_type_view_and_size_comes_off_the_device_bit_for_bit(self, tmp_path):
        tensors = [torch.randint(0, 2, (n,), dtype=torch.uint8).view(torch.bool) for n in (0, 1, 1000)]
        tensors += [torch.randn(33, 65).to(dtype) for dtype in DTYPES if dtype.is_floating_point]
        tensors += [torch.randn(9, dtype=dtype) for dtype in (torch.complex64, torch.complex128)]
        tensors = [tensor.cuda() for tensor in tensors]
        tensors += [
            tensors[-3].t(),
            tensors[-1].conj(),
            torch.zeros(1 << 28, dtype=torch.uint8, device="cuda")[5:9],
            torch.arange(80 << 20, dtype=torch.int32, device="cuda"),
        ]  # larger than the page-locked memory
        handle = record(Giving(tuple(tensors)), tmp_path)
        found = recorded(handle.folder)[0]["root"]
        for index, tensor in enumerate(tensors):
            assert_same_tensor(found[f"output_{index}.pth"], tensor)

    def test_changes_in_place_come_too_late(self, tmp_path):
        model = torch.nn.Sequential(torch.nn.Identity(), Spoiling(), torch.nn.ReLU(inplace=True), Spoiling())
        tensor = torch.full((4096, 4096), 7.0, device="cuda")
        with register_hook(model, DumpConfig(str(tmp_path))) as handle, Watcher(model) as watcher:
            model(tensor).fill_(99)
        assert_recorded(handle.folder, watcher.calls, rounds=[0])

    def test_more_than_the_page_locked_memory_is_recorded(self, tmp_path):
        model = torch.nn.Sequential(*(torch.nn.Identity() for _ in range(20)))
        tensor = torch.arange(16 << 20, dtype=torch.float32, device="cuda")
        handle = record(model, tmp_path, tensor)
        for files in recorded(handle.folder)[0].values():
            for loaded in files.values():
                assert torch.equal(bytes_of(loaded), bytes_of(tensor.cpu()))

    def test_a_model_on_another_stream_is_recorded(self, tmp_path):
        model = Model().cuda()
        stream = torch.cuda.Stream()
        with register_hook(model, DumpConfig(str(tmp_path))) as handle, Watcher(model) as watcher:
            with torch.cuda.stream(stream):
                model(X.cuda())
        stream.synchronize()
        assert_recorded(handle.folder, watcher.calls, rounds=[0])

    def test_capture_into_a_graph_is_left_alone_and_said(self, tmp_path):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).cuda()
        static = X.cuda()
        with torch.no_grad():
            model(static)
            torch.cuda.synchronize()
            with register_hook(model, DumpConfig(str(tmp_path))) as handle:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    output = model(static)
                graph.replay()
                torch.cuda.synchronize()
            assert torch.equal(output, model(static))
        manifest = manifest_of(handle)
        assert manifest["not_stored"][0]["reason"] == "called while a CUDA graph was captured"
        assert any("replay" in reason for reason in manifest["never_ran_because"])

    def test_a_device_that_was_not_asked_for_is_skipped(self, tmp_path):
        handle = record(Model().cuda(), tmp_path, X.cuda(), config=DumpConfig(str(tmp_path), device_id=1))
        assert handle.folder is None
        assert list(tmp_path.iterdir()) == []

    def test_a_model_that_moves_has_the_folder_of_its_device(self, tmp_path):
        model = Model()
        with register_hook(model, DumpConfig(str(tmp_path))) as handle:
            model.cuda()(X.cuda())
        assert Path(handle.folder).name == f"0_{os.getpid()}"
        assert [path.name for path in Path(handle.folder).parent.iterdir()] == [f"0_{os.getpid()}"]
