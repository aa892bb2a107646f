"""What is stored of a tensor, and what is said of those that cannot be."""

import collections
import csv
import dataclasses
import io
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from hook_models import DTYPES, Giving, Model, Spoiling, X, load, manifest_of, record
from torch_oracle import Watcher, assert_recorded, assert_same_tensor, recorded

# Values


@dataclasses.dataclass
class Result:
    hidden: torch.Tensor
    extra: tuple
    nothing: None = None


Pair = collections.namedtuple("Pair", "first second")
A, B, C = torch.ones(1), torch.full((2,), 2.0), torch.full((3,), 3.0)
NESTED = {
    "tensor": (A, {"output": A}),
    "tuple": ((A, B), {"output_0": A, "output_1": B}),
    "nested": ([A, (B, [C])], {"output_0": A, "output_1_0": B, "output_1_1_0": C}),
    "dict": ({"x": A, "y": {"z": B}}, {"output_x": A, "output_y_z": B}),
    "dataclass": (Result(A, (B, C)), {"output_hidden": A, "output_extra_0": B, "output_extra_1": C}),
    "namedtuple": (Pair(A, B), {"output_0": A, "output_1": B}),
    "plain values": ((A, None, 3, "text", 2.5, True, torch.float32, torch.Size([1])), {"output_0": A}),
    "nothing": (None, {}),
    "keys that are paths": ({"../x": A, "a/b": B}, {"output_..%2Fx": A, "output_a%2Fb": B}),
    "keys that clash": ({"0": (A,), "0_0": B}, {"output_0_0": A, "output_0_0#1": B}),
}


@pytest.mark.parametrize("kind", NESTED)
def test_nested_results_are_found_under_their_names(kind, tmp_path):
    value, expected = NESTED[kind]
    handle = record(Giving(value), tmp_path)
    found = recorded(handle.folder).get(0, {}).get("root", {})
    assert set(found) == {f"{name}.pth" for name in expected}
    for name, tensor in expected.items():
        assert_same_tensor(found[f"{name}.pth"], tensor)
    assert manifest_of(handle)["errors"] == manifest_of(handle)["not_stored"] == []


def test_arguments_of_every_kind_are_found_under_their_names(tmp_path):
    handle = record(Giving(None), tmp_path, A, [B, (C,)], mask=B, states={"k": C}, flag=True)
    found = recorded(handle.folder)[0]["root"]
    assert set(found) == {f"input_{name}.pth" for name in ("0", "1_0", "1_1_0", "mask", "states_k")}


def test_an_object_that_is_not_looked_into_is_said_in_the_manifest(tmp_path):
    class Cache:
        tensor = A

    endless = []
    endless.append(endless)
    handle = record(Giving((Cache(), endless)), tmp_path, cache=Cache())
    assert manifest_of(handle)["not_stored"] == [
        {"reason": "a Cache is not looked into", "count": 2, "first": "0/root/input_cache"},
        {"reason": "a list is not looked into", "count": 1, "first": "0/root/output_1" + "_0" * 15},
    ]


@pytest.mark.parametrize("statistics", [0, 2])
def test_every_type_and_shape_is_stored_bit_for_bit(statistics, tmp_path):
    tensors = []
    generator = torch.Generator().manual_seed(1)
    for dtype in DTYPES:
        size = torch.empty(0, dtype=dtype).element_size()
        for shape in [(), (5,), (0,), (2, 0, 3), (2, 3, 4)]:
            count = torch.Size(shape).numel() * size
            raw = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), generator=generator, dtype=torch.uint8)
            tensors.append(raw.view(dtype).reshape(shape))
        tensors.append(tensors[-1].permute(2, 0, 1))
    handle = record(Giving(tuple(tensors)), tmp_path, config=DumpConfig(str(tmp_path), dump_statistics_mode=statistics))
    found = recorded(handle.folder)[0]["root"]
    assert len(found) == len(tensors)
    for index, tensor in enumerate(tensors):
        assert_same_tensor(found[f"output_{index}.pth"], tensor)
    assert manifest_of(handle)["not_stored"] == []


BASE = torch.arange(1000.0).reshape(10, 10, 10)
VIEWS = {
    "transposed": BASE.permute(2, 0, 1),
    "steps": BASE[::3, 1::2, 5],
    "expanded": BASE[0, :1].expand(4, 10),
    "overlapping": BASE.as_strided((5, 5), (1, 1), 3),
    "a row of a large one": torch.zeros(1000, 1000)[3],
    "conjugate": torch.randn(4, dtype=torch.complex64).conj(),
    "negative": torch.randn(4, dtype=torch.complex64).conj().imag,
    "with gradient": BASE.clone().requires_grad_() * 2,
    "parameter": torch.nn.Parameter(torch.rand(3)),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_of_a_view_only_its_own_elements_are_stored(kind, tmp_path):
    handle = record(Giving(VIEWS[kind]), tmp_path)
    assert_same_tensor(load(handle, "0/root/output.pth"), VIEWS[kind])
    size = VIEWS[kind].numel() * VIEWS[kind].element_size()
    assert Path(handle.folder, "0/root/output.pth").stat().st_size < size + 2000


class Named(torch.Tensor):
    pass


def test_a_subclass_with_data_is_stored_as_a_tensor(tmp_path):
    handle = record(Giving(torch.rand(3).as_subclass(Named)), tmp_path)
    assert type(load(handle, "0/root/output.pth")) is torch.Tensor


UNSTORABLE = {
    "meta": (lambda: torch.zeros(2, device="meta"), "tensors on the device meta have no data"),
    "sparse": (lambda: torch.eye(2).to_sparse(), "tensors of the layout torch.sparse_coo are not stored"),
}
if hasattr(torch, "bits8"):
    UNSTORABLE["bits"] = (lambda: torch.empty(2, dtype=torch.bits8), "there is no way to store torch.bits8")


@pytest.mark.parametrize("kind", UNSTORABLE)
def test_what_cannot_be_stored_is_said_in_the_manifest_and_the_rest_is_there(kind, tmp_path):
    make, reason = UNSTORABLE[kind]
    handle = record(Giving((A, make(), B)), tmp_path)
    assert manifest_of(handle)["not_stored"] == [{"reason": reason, "count": 1, "first": "0/root/output_1"}]
    assert set(recorded(handle.folder)[0]["root"]) == {"output_0.pth", "output_2.pth"}


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_a_quantised_tensor_is_stored_as_what_it_stands_for_and_said_so(tmp_path):
    quantised = torch.quantize_per_tensor(torch.linspace(-1, 1, 9), 0.1, 3, torch.qint8)
    handle = record(Giving(quantised), tmp_path)
    assert_same_tensor(load(handle, "0/root/output.pth"), quantised.dequantize())
    (note,) = manifest_of(handle)["stored_otherwise"]
    assert "torch.qint8" in note["reason"] and note["first"] == "0/root/output"


@pytest.mark.skipif(not hasattr(torch.Tensor, "untyped_storage"), reason="memory cannot be freed like this")
def test_freed_memory_is_not_read(tmp_path):
    tensor = torch.zeros(1000)
    tensor.untyped_storage().resize_(0)
    handle = record(Giving(tensor), tmp_path)
    assert "freed" in manifest_of(handle)["not_stored"][0]["reason"]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="needs torch.distributed")
def test_of_a_distributed_tensor_this_ranks_part_is_stored(tmp_path):
    pytest.importorskip("torch.distributed.tensor")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        tensor = distribute_tensor(torch.arange(8.0), init_device_mesh("cpu", (1,)), [Shard(0)])
        handle = record(Giving(tensor), tmp_path)
        assert torch.equal(load(handle, "0/root/output.pth"), torch.arange(8.0))
        assert "DTensor" in manifest_of(handle)["stored_otherwise"][0]["reason"]
    finally:
        torch.distributed.destroy_process_group()


def test_inputs_and_outputs_are_what_they_were_before_anybody_changed_them_in_place(tmp_path):
    model = torch.nn.Sequential(torch.nn.Identity(), Spoiling(), torch.nn.ReLU(inplace=True), Spoiling())
    tensor = torch.full((1000, 100), 7.0)
    with register_hook(model, DumpConfig(str(tmp_path))) as handle, Watcher(model) as watcher:
        output = model(tensor)
        output.fill_(99)
    assert_recorded(handle.folder, watcher.calls, rounds=[0])
    assert float(load(handle, "0/root/input_0.pth").min()) == 7.0
    assert float(load(handle, "0/root/output.pth").max()) == 0.0


# Statistics


def rows_of(handle, *parts):
    text = Path(handle.folder, *parts, "statistics.csv").read_bytes().decode()
    assert text.count("\r\n") == text.count("\n")
    return list(csv.DictReader(io.StringIO(text)))


PER_MODULE = [
    "NodeName",
    "NodeType",
    "InputOutput",
    "Index",
    "DataType",
    "Shape",
    "Max",
    "Min",
    "Mean",
    "L2Norm",
    "File",
]


def test_statistics_of_a_module_have_the_columns_of_the_older_tools_and_true_numbers(tmp_path):
    model = Model()
    config = DumpConfig(str(tmp_path), dump_statistics_mode=1, statistics_per_module=True)
    handle = record(model, tmp_path, X, config=config)
    assert list(Path(handle.folder).rglob("*.pth")) == []
    rows = rows_of(handle, "0", "root.blocks.0")
    assert list(rows[0]) == PER_MODULE
    assert [row["File"] for row in rows] == ["input_0", "input_scale", "output"]
    first = rows[0]
    assert [first[key] for key in ("NodeName", "NodeType", "InputOutput", "Index", "DataType", "Shape")] == [
        "root.blocks.0",
        "Block",
        "Input",
        "0",
        "torch.float32",
        "(3, 4)",
    ]
    assert float(first["Max"]) == pytest.approx(float(X.max()), rel=1e-6)
    assert float(first["Min"]) == pytest.approx(float(X.min()), rel=1e-6)
    assert float(first["Mean"]) == pytest.approx(float(X.double().mean()), rel=1e-6)
    assert float(first["L2Norm"]) == pytest.approx(float(X.double().norm()), rel=1e-6)
    assert rows[2]["InputOutput"] == "Output"


def test_statistics_of_a_round_are_one_table_with_the_same_numbers(tmp_path):
    torch.manual_seed(1)
    model = Model()
    apart = DumpConfig(str(tmp_path / "apart"), dump_statistics_mode=1, statistics_per_module=True)
    folder = Path(record(model, tmp_path, X, config=apart).folder, "0")
    handle = record(model, tmp_path, X, config=DumpConfig(str(tmp_path), dump_statistics_mode=1))
    assert [path.name for path in Path(handle.folder, "0").iterdir()] == ["statistics.csv"]
    rows = rows_of(handle, "0")
    assert list(rows[0]) == [*PER_MODULE, "NaN", "Inf", "SameAs"]
    files = [row["File"] for row in rows]
    assert len(set(files)) == len(files)
    expected = {}
    for path in folder.glob("*/statistics.csv"):
        for row in csv.DictReader(io.StringIO(path.read_text())):
            expected[f"{path.parent.name}/{row['File']}"] = row
    assert sorted(files) == sorted(expected)
    for row in rows:
        apart = {**expected[row["File"]], "File": row["File"]}
        assert {key: row[key] for key in PER_MODULE} == apart
        assert (row["NaN"], row["Inf"]) == ("0", "0")
    again = {row["File"]: row["SameAs"] for row in rows if row["SameAs"]}
    assert again["root.blocks.0/input_0"] == "root/input_0"
    numbers = {row["File"]: [row[key] for key in ("Shape", "Max", "Min", "Mean", "L2Norm")] for row in rows}
    assert all(numbers[file] == numbers[first] for file, first in again.items())


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))],
)
def test_statistics_of_every_type_are_true(device, tmp_path):
    dtypes = [dtype for dtype in DTYPES if not dtype.is_complex and (dtype.is_floating_point or dtype.is_signed)]
    tensors = [
        torch.randn(50, generator=torch.Generator().manual_seed(i)).mul(30).to(dtype).to(device)
        for i, dtype in enumerate(dtypes)
    ]
    handle = record(Giving(tuple(tensors)), tmp_path, config=DumpConfig(str(tmp_path), dump_statistics_mode=1))
    rows = rows_of(handle, "0")
    assert len(rows) == len(tensors)
    for row, tensor in zip(rows, tensors):
        values = tensor.cpu().to(torch.float32).double()
        assert row["DataType"] == str(tensor.dtype)
        for key, expected in [
            ("Max", values.max()),
            ("Min", values.min()),
            ("Mean", values.mean()),
            ("L2Norm", values.norm()),
        ]:
            assert float(row[key]) == pytest.approx(float(expected), rel=1e-6, abs=1e-6, nan_ok=True), row


def test_statistics_of_nothing_and_of_what_is_not_finite(tmp_path):
    tensors = (torch.zeros(0), torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("inf")]))
    handle = record(Giving(tensors), tmp_path, config=DumpConfig(str(tmp_path), dump_statistics_mode=2))
    empty, nan, inf = rows_of(handle, "0")
    assert [empty[key] for key in ("Max", "Min", "Mean", "L2Norm")] == [""] * 4
    assert [nan[key] for key in ("Max", "Min", "Mean")] == ["nan"] * 3
    assert [inf[key] for key in ("Max", "Min", "L2Norm")] == ["inf", "1.0", "1.0"]
    assert len(recorded(handle.folder)[0]["root"]) == 3


@pytest.mark.parametrize("at_once", [1 << 25, 4])
def test_statistics_of_a_device_are_those_of_the_cpu(at_once, monkeypatch):
    """The way over a device's own reductions, with tensors that pretend to be on one."""
    from ait_llm.dump.torch_dump import statistics
    from ait_llm.dump.torch_dump.statistics import OnDevice, measure

    monkeypatch.setattr(statistics, "MAX_WIDENED", at_once)
    on_device = OnDevice()
    tensors = [
        torch.randn(7, 5, generator=torch.Generator().manual_seed(3)).to(dtype)
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64)
    ]
    tensors += [torch.randn(7).to(dtype) for dtype in DTYPES if dtype.is_floating_point]
    tensors += [
        torch.arange(-3, 9),
        torch.tensor([True, False]),
        torch.randn(4, dtype=torch.complex64),
        torch.tensor([1.0, float("nan"), 2.0]),
        torch.tensor([1.0, float("inf"), 2.0]),
        torch.zeros(0),
    ]
    for index, tensor in enumerate(tensors):
        on_device.add((0, index), tensor)
    found = dict(on_device.fetch())
    for index, tensor in enumerate(tensors):
        expected = measure(tensor)
        if expected is None:
            assert (0, index) not in found
        else:
            assert found[0, index] == pytest.approx(expected, rel=1e-12, nan_ok=True)
