"""Overflows: found while a training runs, and told apart afterwards."""

import json

import ait_llm
import numpy as np
import pytest
import torch
from ait_llm.api_check.devices import Device, open_device
from ait_llm.api_check.outcome import Settings
from ait_llm.api_check.overflow_check import judge
from ait_llm.api_check.overflow_watch import overflows
from training import needs_cuda, needs_torch_2, read


def watched(folder, function, overflow_nums=-1):
    with ait_llm.overflow.watch(None, overflow_nums, dump_path=str(folder)) as watch:
        function()
    return watch


def test_a_call_whose_inputs_are_finite_and_outputs_are_not_is_recorded_with_its_data(tmp_path):
    x = torch.tensor([1.0, 100.0])
    watch = watched(tmp_path, lambda: x.mul(2).exp().add(1))
    assert watch.count == 1  # add only hands it on
    (key,) = forward = read(tmp_path, "forward")
    assert key == "Tensor_exp_0_forward"
    (entry,) = forward[key]["args"]
    assert entry["datapath"] == str(tmp_path / "forward_real_data" / "rank0" / "Tensor_exp_0_forward.0.npy")
    assert np.load(entry["datapath"]).tolist() == [2.0, 200.0]
    assert list(read(tmp_path, "stack")) == [key] and read(tmp_path, "backward") == {}


def test_the_training_stops_behind_so_many(tmp_path):
    x = torch.tensor([100.0])
    results = []

    def steps():
        for _ in range(5):
            results.append(x.exp())

    with pytest.raises(ValueError, match=r"\[overflow 2 times\]: dump file is saved in '.*forward_info_\d+.json'."):
        watched(tmp_path, steps, overflow_nums=2)
    assert len(results) == 1 and len(read(tmp_path, "forward")) == 2
    assert torch.overrides._get_current_function_mode_stack() == []
    assert x.exp().isinf().all()  # nobody looks any more


def test_inputs_of_in_place_functions_are_those_before_the_call(tmp_path):
    x = torch.tensor([1.0, 60000.0], dtype=torch.float16)
    watched(tmp_path, lambda: x.mul_(2))
    (entry, _) = read(tmp_path, "forward")["Tensor_mul__0_forward"]["args"]
    assert np.load(entry["datapath"]).tolist() == [1.0, 60000.0] and x[1].isinf()


def test_gradients_that_overflow_are_recorded_by_their_statistics(tmp_path):
    x = torch.tensor([1e-30], requires_grad=True)
    watch = watched(tmp_path, lambda: (x.sqrt() * 1e30).pow(2).sum().backward())
    backward = read(tmp_path, "backward")
    assert watch.count == len(backward) + len(read(tmp_path, "forward")) > 0
    assert all(key.endswith("_backward") for key in backward)
    assert all(entry[0]["Max"] is not None for entry in backward.values())


@needs_torch_2
def test_masks_are_no_overflows(tmp_path):
    scores = torch.rand(2, 4, dtype=torch.float16)
    lowest = torch.finfo(torch.float16).min

    def calls():
        torch.full((2, 4), float("-inf"))
        scores.masked_fill(scores > 0.5, float("-inf")).softmax(-1)
        scores.masked_fill(scores > 0.5, lowest)
        torch.empty(4).fill_(1)

    assert watched(tmp_path, calls).count == 0
    assert list(tmp_path.iterdir()) == []


def test_bfloat16_is_stored_as_float32(tmp_path):
    x = torch.tensor([1e38], dtype=torch.bfloat16)
    watched(tmp_path, lambda: torch.nn.functional.linear(x, torch.full((1, 1), 1e10, dtype=torch.bfloat16)))
    path = read(tmp_path, "forward")["Functional_linear_0_forward"]["args"][0]["datapath"]
    assert np.load(path).dtype == np.float32


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch.tensor([1.0, float("inf")]), True),
        (torch.tensor([float("nan")]), True),
        (torch.tensor([65504.0], dtype=torch.float16), True),
        (torch.tensor([-65504.0], dtype=torch.float16), True),
        (torch.tensor([65503.0]), False),
        (torch.tensor([2**62]), False),
        (torch.tensor([]), False),
        ([1.0, [float("inf")]], True),
        ((3, "x", None), False),
    ],
    ids=str,
)
def test_what_counts_as_an_overflow(value, expected):
    assert overflows(value) is expected
    if isinstance(value, torch.Tensor) and value.dtype == torch.float16:
        assert overflows(value, saturation=False) is False


class Broken(Device):
    """Overflows where the mathematics does not."""

    def call(self, function, args, kwargs):
        output = super().call(function, args, kwargs)
        return output / 0 if isinstance(output, torch.Tensor) else output


class Careful(Device):
    """Never overflows."""

    def call(self, function, args, kwargs):
        return super().call(function, args, kwargs).clamp(-1, 1)


def test_overflows_are_told_apart(tmp_path):
    x = torch.tensor([1.0, 100.0])
    watched(tmp_path, lambda: x.exp())
    ((key, record),) = read(tmp_path, "forward").items()
    settings = Settings(data_folders=(str(tmp_path),))
    normal = judge(key, record, Device(), settings)
    assert (normal.verdict, normal.on_cpu, normal.on_device, normal.raised) == ("normal", "True", "True", "False")
    assert normal.sentence == "The Tensor_exp_0_forward overflow is a normal overflow."
    only_cpu = judge(key, record, Careful(), settings)
    assert only_cpu.verdict == "abnormal" and "only the CPU overflows" in only_cpu.message
    entry = record["args"][0]
    np.save(entry["datapath"], np.array([1.0, 2.0], dtype=np.float32))
    gone = judge(key, record, Device(), settings)
    assert (gone.verdict, gone.sentence) == ("not reproduced", f"The {key} overflow could not be reproduced.")
    abnormal = judge(key, record, Broken(), settings)
    assert abnormal.verdict == "abnormal" and "only the device overflows" in abnormal.message
    assert abnormal.sentence == "The Tensor_exp_0_forward overflow is an abnormal overflow."


def test_drawn_inputs_are_said_to_be_drawn():
    entry = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3], "Max": 1.0, "Min": 0.0}
    verdict = judge("Tensor*exp*0", {"args": [entry], "kwargs": {}}, Device(), Settings())
    assert verdict.verdict == "not reproduced" and "were drawn" in verdict.message
    assert judge("nothing", {}, Device(), Settings()).verdict == "SKIP"


def test_the_older_name_and_signature(tmp_path, monkeypatch):
    ptdbg = pytest.importorskip("ptdbg_ascend")
    monkeypatch.chdir(tmp_path)
    model = torch.nn.Linear(2, 2)
    with ptdbg.register_hook(model, ptdbg.overflow_check, overflow_nums=3):
        torch.tensor([100.0]).exp()
    assert json.loads(next(tmp_path.glob("forward_info_*.json")).read_text())
    with pytest.raises(ValueError, match="the only hook is overflow_check"):
        ptdbg.register_hook(model, print)


def test_numbers_of_overflows_that_make_no_sense_are_refused(tmp_path):
    for wrong in (0, True, "1"):
        with pytest.raises(ValueError, match="overflow_nums"):
            ait_llm.overflow.watch(None, wrong, dump_path=str(tmp_path))


@needs_cuda
def test_an_overflow_on_a_gpu_is_recorded_and_told_apart_there(tmp_path):
    x = torch.tensor([1.0, 100.0], device="cuda", requires_grad=True)
    watch = watched(tmp_path, lambda: x.mul(2).exp().add(1).sum().backward())
    (key,) = forward = read(tmp_path, "forward")
    assert key == "Tensor_exp_0_forward" and watch.count >= 1
    device = open_device("cuda")
    device.prepare(1234)
    verdict = judge(key, forward[key], device, Settings(data_folders=(str(tmp_path),)))
    assert (verdict.verdict, verdict.on_cpu, verdict.on_device) == ("normal", "True", "True")
