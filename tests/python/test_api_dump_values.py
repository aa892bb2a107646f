"""How the arguments of a call are written down."""

import math

import numpy as np
import pytest
import torch
from ait_llm.api_check import apis
from ait_llm.api_check.measuring import Measuring
from ait_llm.api_check.values import Describer
from training import needs_torch_2, read, record


def described(*args, **kwargs):
    return Describer(Measuring()).arguments(args, kwargs)


def tensor(value, **more):
    return described(value, **more)["args"][0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_extremes_of_floating_point_tensors_are_exact(dtype):
    value = torch.tensor([[0.1, -3.3], [2.7, 1e-7]]).to(dtype)
    assert tensor(value) == {
        "type": "torch.Tensor",
        "dtype": str(dtype),
        "shape": [2, 2],
        "Max": value.max().double().item(),
        "Min": value.min().double().item(),
        "requires_grad": False,
    }


@pytest.mark.parametrize(
    ("value", "high", "low"),
    [
        (torch.tensor([2**62 + 1, -(2**61) - 1]), 2**62 + 1, -(2**61) - 1),
        (torch.tensor([2**53 + 1]), 2**53 + 1, 2**53 + 1),
        (torch.tensor([200, 7], dtype=torch.uint8), 200, 7),
        (torch.tensor(-5, dtype=torch.int32), -5, -5),
        (torch.tensor([True, True]), 1, 1),
        (torch.tensor([False]), 0, 0),
        (torch.tensor([]), None, None),
        (torch.zeros(0, 3, dtype=torch.bool), None, None),
        (torch.tensor(2.5), 2.5, 2.5),
    ],
    ids=str,
)
def test_extremes_are_of_the_type_of_the_tensor(value, high, low):
    entry = tensor(value)
    assert (entry["Max"], entry["Min"]) == (high, low)
    assert type(entry["Max"]) is type(high) and "true_count" not in entry


def test_of_a_mask_the_number_of_true_is_kept():
    entry = tensor(torch.tensor([True, False, True, False, False]))
    assert (entry["Max"], entry["Min"], entry["true_count"]) == (1, 0, 2)


def test_of_tensors_that_are_not_finite_the_finite_extremes_are_kept():
    entry = tensor(torch.tensor([math.inf, 3.0, -2.0]))
    assert (entry["Max"], entry["Min"]) == (math.inf, -2.0)
    assert (entry["Max_except_inf_nan"], entry["Min_except_inf_nan"]) == (3.0, -2.0)
    entry = tensor(torch.tensor([math.nan, 1.0]))
    assert math.isnan(entry["Max"]) and math.isnan(entry["Min"]) and entry["Max_except_inf_nan"] == 1.0
    assert "Max_except_inf_nan" not in tensor(torch.tensor([-math.inf]))


def test_complex_tensors_have_magnitudes():
    entry = tensor(torch.tensor([3 + 4j, 1j]))
    assert (entry["Max"], entry["Min"], entry["complex"]) == (5.0, 1.0, True)


def test_strides_are_kept_where_they_matter():
    assert tensor(torch.zeros(2, 3).t())["stride"] == [1, 3]
    assert tensor(torch.zeros(3, 1).expand(3, 4))["stride"] == [1, 0]
    assert "stride" not in tensor(torch.zeros(2, 3))


def test_parameters_and_subclasses_are_tensors():
    class Own(torch.Tensor):
        pass

    assert tensor(torch.nn.Parameter(torch.ones(2)))["requires_grad"] is True
    assert tensor(torch.ones(2).as_subclass(Own))["Max"] == 1.0


def test_a_tensor_without_data_is_described():
    entry = tensor(torch.ones(2, 3, device="meta"))
    assert (entry["shape"], entry["Max"]) == ([2, 3], None) and "meta" in entry["unsupported"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, {"type": "int", "value": 3}),
        (0.5, {"type": "float", "value": 0.5}),
        (True, {"type": "bool", "value": True}),
        ("sum", {"type": "str", "value": "sum"}),
        (None, {"type": "NoneType", "value": None}),
        (slice(1, None, 2), {"type": "slice", "value": [1, None, 2]}),
        (..., {"type": "ellipsis", "value": "..."}),
        (torch.float16, {"type": "torch.dtype", "value": "torch.float16"}),
        (torch.device("cuda"), {"type": "torch.device", "value": "cuda"}),
        (torch.channels_last, {"type": "torch.memory_format", "value": "torch.channels_last"}),
        (torch.strided, {"type": "torch.layout", "value": "torch.strided"}),
        (1 + 2j, {"type": "complex", "value": [1.0, 2.0]}),
        (np.float64(0.25), {"type": "numpy.float64", "value": 0.25}),
        (np.float32(0.25), {"type": "numpy.float32", "value": 0.25}),
        (np.int64(4), {"type": "numpy.int64", "value": 4}),
        ((1, [2.0]), [{"type": "int", "value": 1}, [{"type": "float", "value": 2.0}]]),
        (torch.Size([2]), [{"type": "int", "value": 2}]),
        ({"a": 1}, {"a": {"type": "int", "value": 1}}),
    ],
    ids=str,
)
def test_values_have_their_form(value, expected):
    assert described(value)["args"] == [expected]


def test_devices_by_name_are_devices():
    assert described(device="npu:0")["kwargs"]["device"] == {"type": "torch.device", "value": "npu:0"}


def test_what_cannot_be_written_down_says_so():
    endless = []
    endless.append(endless)
    for value in (len, object(), endless, list(range(100_000))):
        text = str(described(value))
        assert "unsupported" in text and len(text) < 10_000


@needs_torch_2  # which hears of every index
def test_an_index_tells_lists_from_tuples(tmp_path):
    x = torch.arange(12.0).reshape(3, 4)
    _, forward = record(tmp_path, lambda: (x[1, 2:], x[[0, 2]]))
    indices = [call["args"][1] for call in forward.values()]
    assert indices[0] == [{"type": "int", "value": 1}, {"type": "slice", "value": [2, None, None]}]
    assert indices[1] == {"type": "list", "value": [{"type": "int", "value": 0}, {"type": "int", "value": 2}]}


def test_questions_about_a_tensor_cost_no_look_at_it(tmp_path):
    _, forward = record(tmp_path, lambda: torch.full((3,), 7.0).size())
    assert forward["Tensor*size*0"]["args"][0]["Max"] is None


def test_real_data_are_the_tensors_themselves(tmp_path):
    x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
    y = torch.arange(6.0).reshape(3, 2).t()
    record(tmp_path, lambda: torch.addcmul(x, y, y, value=2.0).sum().backward(), real_data=True)
    forward, backward = (read(tmp_path, kind) for kind in ("forward", "backward"))
    call = forward["Torch*addcmul*0"]
    folder = tmp_path / "forward_real_data"
    assert [entry["datapath"] for entry in call["args"]] == [str(folder / f"Torch*addcmul*0.{n}.pt") for n in range(3)]
    assert call["args"][0] == {
        "type": "torch.Tensor",
        "datapath": str(folder / "Torch*addcmul*0.0.pt"),
        "requires_grad": True,
    }
    for entry, expected in zip(call["args"], (x, y, y)):
        stored = torch.load(entry["datapath"])
        assert torch.equal(stored, expected.detach()) and stored.is_contiguous()
    (gradient,) = backward["Torch*addcmul*0"]
    assert torch.equal(torch.load(gradient["datapath"]), torch.ones(2, 3))
    assert (folder.stat().st_mode & 0o777, folder.parent.name) == (0o750, tmp_path.name)


def test_real_data_of_another_process_stay_as_they_are(tmp_path):
    (tmp_path / "forward_real_data").mkdir()
    _, forward = record(tmp_path, lambda: torch.ones(2).add(1), real_data=True)
    path = forward["Tensor*add*0"]["args"][0]["datapath"]
    assert path.startswith(f"{tmp_path}/forward_real_data/rank") and torch.equal(torch.load(path), torch.ones(2))


@pytest.mark.parametrize(
    ("key", "group", "name", "index"),
    [
        ("Tensor*__iadd__*0", "Tensor", "__iadd__", 0),
        ("Tensor___iadd___2_forward", "Tensor", "__iadd__", 2),
        ("Tensor_mul__6_forward", "Tensor", "mul_", 6),
        ("Functional_conv2d_1_backward", "Functional", "conv2d", 1),
        ("Functional*conv2d*3*forward", "Functional", "conv2d", 3),
        ("Torch*linalg.norm*2", "Torch", "linalg.norm", 2),
    ],
)
def test_keys_of_both_styles_are_read(key, group, name, index):
    assert apis.parse_key(key) == apis.Call(apis.Api(group, name), index)


@pytest.mark.parametrize(
    "key", ["", "x", "*", "Torch*cat", "Torch*cat*x", "Torch**1", "a*b*c*1", "Torch*cat*1" + "0" * 99]
)
def test_other_texts_are_no_keys(key):
    assert apis.parse_key(key) is None


def test_a_name_leads_to_functions_for_tensors_alone():
    for name in ("load", "save", "compile", "hub", "ops", "os", "nn.functional.sys", "__builtins__"):
        assert all(apis.find(apis.Api(group, name)) is None for group in apis.GROUPS)
    assert apis.is_refused(apis.Api("Torch", "from_file"))
