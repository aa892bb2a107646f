"""Statistics of tensors on a CUDA device by ait's own kernel. The same without a device: test_fused_kernel.py."""

import csv
import json
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, register_hook

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(scope="module")
def cases():
    from statistics_cases import cases

    return list(cases())


def rows_of(handle, number):
    with open(Path(handle.folder, str(number), "statistics.csv"), newline="") as file:
        return {row["File"]: row for row in csv.DictReader(file)}


def manifest_of(handle):
    return json.loads(Path(handle.folder, "manifest.json").read_text())


def block(width=256):
    torch.manual_seed(3)
    layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    return torch.nn.Sequential(layer, torch.nn.Linear(width, width), torch.nn.GELU()).to("cuda", torch.bfloat16).eval()


def test_cuda_every_type_shape_and_layout_is_measured_as_on_the_cpu(cases):
    from statistics_cases import faults, measured

    names, tensors = zip(*cases)
    there = [tensor.cuda() if tensor.is_contiguous() else like(tensor) for tensor in tensors]
    measured(there[:1])  # the kernel is loaded by the first tensor
    rows, ways = measured(there)
    assert faults(names, [tensor.cpu() for tensor in there], rows) == []
    assert ways["kernel"] > 0.9 * sum(tensor.numel() > 0 for tensor in there), ways


def like(tensor):
    """On the device with the same strides."""
    plain = tensor.resolve_conj().resolve_neg()
    room = 1 + sum((size - 1) * stride for size, stride in zip(plain.shape, plain.stride()))
    there = torch.empty(max(room, 1), dtype=plain.dtype, device="cuda").as_strided(plain.shape, plain.stride())
    if len(set(plain.stride())) == plain.dim() and 0 not in plain.stride() and room >= plain.numel():
        there.copy_(plain)
        return there
    return plain.cuda()


def test_cuda_results_repeat_to_the_bit():
    from statistics_cases import measured

    tensors = [torch.randn(5_000_000, device="cuda").to(dtype) for dtype in (torch.float32, torch.bfloat16)]
    measured(tensors)
    first = measured(tensors)[0]
    assert all(measured([tensor.clone() for tensor in tensors])[0] == first for _ in range(20))


def test_cuda_outputs_and_gradients_are_the_same_to_the_bit(tmp_path):
    model = block().train()
    x = torch.randn(2, 64, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    torch.use_deterministic_algorithms(True, warn_only=True)

    def run():
        torch.manual_seed(5)
        model.zero_grad()
        x.grad = None
        output = model(x)
        output.float().pow(2).sum().backward()
        return output.detach().clone(), x.grad.clone(), [each.grad.clone() for each in model.parameters()]

    alone = run()
    with register_hook(model, DumpConfig(str(tmp_path), dump_statistics_mode=1)):
        recorded = run()
    torch.use_deterministic_algorithms(False)
    assert torch.equal(alone[0], recorded[0]) and torch.equal(alone[1], recorded[1])
    assert all(torch.equal(one, other) for one, other in zip(alone[2], recorded[2]))


@pytest.mark.parametrize("inference", [False, True])
def test_cuda_table_is_that_of_the_cpu_way(inference, tmp_path, monkeypatch):
    model, x = block(), torch.randn(2, 64, 256, device="cuda", dtype=torch.bfloat16)
    mode = torch.inference_mode if inference else torch.no_grad
    with mode(), register_hook(model, DumpConfig(str(tmp_path / "a"), [0, 1], dump_statistics_mode=1)) as handle:
        model(x)
        model(x)
    facts = manifest_of(handle)["statistics"]
    assert facts["no_kernel_because"] == [] and facts["torch"] == 0 and facts["kernel"] >= 8, facts
    assert (facts["same_as_another"] > 0) is not inference
    from ait_llm import _native
    from ait_llm.dump.torch_dump import measuring

    monkeypatch.setattr(_native, "load_kernel", lambda device, image: "not in this test")
    with mode(), register_hook(model, DumpConfig(str(tmp_path / "b"), dump_statistics_mode=2)) as whole:
        model(x)
    assert measuring.load_kernel(0) is None
    rows = rows_of(handle, 0)
    assert rows_of(handle, 1) == rows
    for file, row in rows.items():
        tensor = torch.load(Path(whole.folder, "0", f"{file}.pth"), weights_only=True).double()
        for column, expected in (
            ("Max", tensor.max()),
            ("Min", tensor.min()),
            ("Mean", tensor.mean()),
            ("L2Norm", tensor.norm()),
        ):
            assert float(row[column]) == pytest.approx(float(expected), rel=1e-6, abs=1e-9), (file, column)


def test_cuda_several_streams_at_once(tmp_path):
    """Each thread has a stream and a model of its own; values of all are right."""
    import threading

    models = [block() for _ in range(3)]
    inputs = [torch.randn(2, 64, 256, device="cuda", dtype=torch.bfloat16) for _ in models]
    expected = [model(x).double() for model, x in zip(models, inputs)]
    torch.cuda.synchronize()
    handles = [
        register_hook(model, DumpConfig(str(tmp_path / str(i)), list(range(50)), dump_statistics_mode=1))
        for i, model in enumerate(models)
    ]

    def work(model, x):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(50):
                model(x)

    threads = [threading.Thread(target=work, args=each) for each in zip(models, inputs)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    [handle.remove() for handle in handles]
    for handle, output in zip(handles, expected):
        for number in range(50):
            row = rows_of(handle, number)["root/output"]
            assert float(row["L2Norm"]) == pytest.approx(float(output.norm()), rel=1e-6)
        assert manifest_of(handle)["errors"] == []


def test_cuda_memory_that_is_used_again_at_once_is_measured_before(tmp_path):
    class Filling(torch.nn.Module):
        def forward(self, value):
            return torch.full((1 << 20,), float(value), device="cuda")

    model = Filling()
    with register_hook(model, DumpConfig(str(tmp_path), list(range(200)), dump_statistics_mode=1)) as handle:
        for value in range(200):
            model(value).fill_(-1)
    for value in range(200):
        row = rows_of(handle, value)["root/output"]
        assert (float(row["Max"]), float(row["Mean"])) == (value, value)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_cuda_several_devices(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(64, 64).to("cuda:0"), torch.nn.Identity())
    x = torch.randn(4, 64, device="cuda:1")
    with register_hook(model[1], DumpConfig(str(tmp_path), dump_statistics_mode=1)) as handle:
        model[1](x)
    assert float(rows_of(handle, 0)["root/output"]["L2Norm"]) == pytest.approx(float(x.double().norm()), rel=1e-6)


def capture(model, x):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(2):
            model(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        y = model(x)
    return graph, y


def test_cuda_each_replay_of_a_graph_is_a_round_with_its_own_numbers(tmp_path):
    model, x = block(), torch.randn(2, 64, 256, device="cuda", dtype=torch.bfloat16)
    with register_hook(model, DumpConfig(str(tmp_path), list(range(2, 40)), dump_statistics_mode=1)) as handle:
        graph, y = capture(model, x)
        norms = []
        for seed in range(30):
            torch.manual_seed(seed)
            x.copy_(torch.randn(x.shape))
            graph.replay()
            norms.append((x.double().norm(), y.double().norm()))
    found = manifest_of(handle)
    assert found["root_calls"] == 32 and found["errors"] == [] and found["state"] == "complete", found
    eager = tmp_path / "eager"
    with torch.no_grad(), register_hook(model, DumpConfig(str(eager), dump_statistics_mode=1)) as other:
        model(x)
    for number, (inside, outside) in enumerate(norms, 2):
        rows = rows_of(handle, number)
        assert float(rows["root/input_0"]["L2Norm"]) == pytest.approx(float(inside), rel=1e-6)
        assert float(rows["root/output"]["L2Norm"]) == pytest.approx(float(outside), rel=1e-6)
    assert rows_of(handle, 31) == rows_of(other, 0)


def test_cuda_a_graph_that_was_captured_before_is_said_to_be_missing(tmp_path, capfd):
    model, x = block(), torch.randn(2, 64, 256, device="cuda", dtype=torch.bfloat16)
    graph, _ = capture(model, x)
    with register_hook(model, DumpConfig(str(tmp_path), dump_statistics_mode=1)) as handle:
        graph.replay()
        graph.replay()
    found = manifest_of(handle)
    assert found["state"] == "incomplete" and "were replayed 2 times" in found["incomplete_because"][0], found
    assert capfd.readouterr().err.count("captured before the recording began is not recorded") == 1
