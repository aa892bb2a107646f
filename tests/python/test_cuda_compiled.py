"""Compiled models on a CUDA device. The same on the CPU: test_hooks_compiled.py; graphs: test_cuda_statistics.py."""

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from hook_models import manifest_of
from test_cuda_statistics import block, capture, rows_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch._dynamo.reset()


class Chain(torch.nn.Sequential):
    """torch.compile follows a class of torch's own past whoever listens."""

    def forward(self, x):
        for part in self:
            x = part(x)
        return x


def small():
    return Chain(torch.nn.Linear(256, 256), torch.nn.GELU()).to("cuda", torch.bfloat16)


def given():
    return torch.randn(2, 64, 256, device="cuda", dtype=torch.bfloat16)


def numbers(row):
    return {key: value for key, value in row.items() if key != "SameAs"}


def tables(model, inputs, folder):
    """What is recorded of each call, and the handle."""
    config = DumpConfig(str(folder), list(range(len(inputs))), dump_statistics_mode=1)
    with torch.no_grad(), register_hook(model, config) as handle:
        for x in inputs:
            model(x)
    found = [rows_of(handle, number) for number in range(len(inputs))]
    return [{file: numbers(row) for file, row in each.items()} for each in found], handle


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("when", ["compiled first", "in place"])
def test_cuda_the_modules_inside_are_recorded_anew_by_each_run(when, backend, tmp_path):
    model, inputs = Chain(*block()).eval(), [given() for _ in range(3)]
    # What encoder layers do at once when nothing is to be trained is no call of modules.
    model[0].train()
    for each in model[0].modules():
        if isinstance(each, torch.nn.Dropout):
            each.p = 0.0
    model[0].self_attn.dropout = 0.0  # which is no module
    expected, _ = tables(model, inputs, tmp_path / "eager")
    called = model
    if when == "in place":
        model.compile(backend=backend)
    else:
        called = torch.compile(model, backend=backend)
    found, handle = tables(called, inputs, tmp_path / "compiled")
    manifest = manifest_of(handle)
    assert manifest["state"] == "complete" and manifest["errors"] == [], manifest
    assert manifest["compiled"][0]["modules_inside"] == "recorded"
    for number, table in enumerate(expected):
        assert found[number].keys() == table.keys()
        for file, row in table.items():
            if backend == "inductor":
                for column in ("Mean", "L2Norm"):
                    assert float(found[number][file][column]) == pytest.approx(float(row[column]), rel=0.05, abs=0.05)
            else:
                assert found[number][file] == row, file
    assert found[0] != found[1]


def test_cuda_a_model_compiled_after_the_hooks_is_recorded(tmp_path):
    model, x = small(), given()
    with torch.no_grad(), register_hook(model, DumpConfig(str(tmp_path), dump_statistics_mode=1)) as handle:
        torch.compile(model)(x)
    assert set(rows_of(handle, 0)) >= {"root/input_0", "root.0/output", "root.1/output", "root/output"}
    assert manifest_of(handle)["state"] == "complete"


def test_cuda_graphs_of_inductor_are_said_to_be_missing(tmp_path, capfd):
    model, x = small(), given()
    called = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        alone = called(x).clone()
        with register_hook(called, DumpConfig(str(tmp_path), [0, 1, 2], dump_statistics_mode=1)) as handle:
            for _ in range(3):
                torch.compiler.cudagraph_mark_step_begin()
                assert torch.equal(called(x), alone)
    manifest = manifest_of(handle)
    assert manifest["state"] == "incomplete", manifest
    assert any("modules were not heard of" in sentence for sentence in manifest["incomplete_because"]), manifest
    assert manifest["compiled"][0]["modules_inside"] == "not recorded"
    assert "not recorded inside (inductor with CUDA graphs" in capfd.readouterr().err


def test_cuda_a_compiled_model_in_a_graph_of_the_script_is_recorded_by_each_replay(tmp_path):
    model, x = small(), given()
    called = torch.compile(model, backend="aot_eager")
    with register_hook(called, DumpConfig(str(tmp_path), list(range(6)), dump_statistics_mode=1)) as handle:
        graph, y = capture(called, x)
        norms = []
        for _ in range(3):
            x.copy_(torch.randn(x.shape))
            graph.replay()
            norms.append(float(y.double().norm()))
    manifest = manifest_of(handle)
    assert manifest["root_calls"] == 5 and manifest["errors"] == [], manifest
    for number, norm in enumerate(norms, 2):
        rows = rows_of(handle, number)
        assert float(rows["root/output"]["L2Norm"]) == pytest.approx(norm, rel=1e-6)
        assert numbers(rows["root.1/output"])["L2Norm"] == rows["root/output"]["L2Norm"]
