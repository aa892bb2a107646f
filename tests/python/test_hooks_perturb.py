"""register_hook(perturb=…): a run whose noise is known."""

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from hook_models import Giving, Model, X, load, manifest_of

UNITS = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp32": 2.0**-24}


class Parts(torch.nn.Module):
    """A container that returns what its last part returns, which hands on what it is given."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 64)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.fc(x))


def run(model, folder, perturb, x=X, seed=None, rounds=1):
    config = DumpConfig(str(folder), token_range=list(range(rounds)), seed=seed)
    with register_hook(model, config, perturb=perturb) as handle:
        outputs = [model(x) for _ in range(rounds)]
    return handle, outputs[-1]


@pytest.fixture(autouse=True)
def not_deterministic_afterwards():
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("perturb, unit", [*UNITS.items(), (0.01, 0.01)])
def test_every_output_of_an_operation_is_off_by_up_to_one_rounding_unit(tmp_path, dtype, perturb, unit):
    model = Parts().to(dtype).eval()
    expected = model.fc(X.to(dtype))
    handle, _ = run(model, tmp_path, perturb, X.to(dtype))
    off = (load(handle, "0/root.fc/output.pth").double() / expected.double() - 1).abs()
    assert off.max() <= 1.01 * unit + torch.finfo(dtype).eps / 2
    assert off.mean() > 0.2 * unit


def test_values_of_a_narrow_type_move_to_their_neighbours(tmp_path):
    model = Parts().bfloat16().eval()
    expected = model.fc(X.bfloat16())
    handle, _ = run(model, tmp_path, "bf16", X.bfloat16())
    recorded = load(handle, "0/root.fc/output.pth")
    assert recorded.dtype == torch.bfloat16
    off = (recorded.double() / expected.double() - 1).abs()
    assert 0.1 < (off > 0).double().mean() < 0.9
    assert off.max() <= 2.0**-7


def test_what_only_hands_on_a_value_leaves_it_as_it_is(tmp_path):
    handle, _ = run(Parts().eval(), tmp_path, "bf16")
    inner = load(handle, "0/root.fc/output.pth")
    for name in ("root.drop/input_0", "root.drop/output", "root/output"):
        assert torch.equal(load(handle, f"0/{name}.pth"), inner)


def test_the_model_itself_goes_on_with_what_is_recorded(tmp_path):
    model = Model().eval()
    without = model(X)
    handle, output = run(model, tmp_path, "bf16")
    assert torch.equal(load(handle, "0/root/output.pth"), output)
    assert 0 < (output - without).norm() / without.norm() < 0.1


def test_the_same_seed_gives_the_same_run_and_another_another(tmp_path):
    model = Model().eval()
    outputs = [run(model, tmp_path / str(number), "fp16", seed=seed)[1] for number, seed in enumerate((5, 5, 6))]
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


def test_each_call_is_perturbed_in_its_own_way(tmp_path):
    handle, _ = run(Parts().eval(), tmp_path, "bf16", rounds=2)
    assert not torch.equal(load(handle, "0/root/output.pth"), load(handle, "1/root/output.pth"))


def test_what_is_no_finite_number_stays(tmp_path):
    values = (torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, torch.finfo().max]), [torch.arange(3)])
    handle, _ = run(Giving({"values": values}), tmp_path, 0.5)
    floats = load(handle, "0/root/output_values_0.pth")
    assert torch.equal(floats[:4], values[0][:4]) and floats[4].isnan() and floats[5].isfinite()
    assert torch.equal(load(handle, "0/root/output_values_1_0.pth"), values[1][0])


def test_nothing_is_left_on_the_model(tmp_path):
    model = Model().eval()
    before = model(X)
    run(model, tmp_path, "bf16")
    assert torch.equal(model(X), before)
    assert not any(module._forward_hooks for module in model.modules())


def test_the_manifest_says_it(tmp_path):
    handle, _ = run(Model().eval(), tmp_path / "a", "bf16", seed=3)
    perturbed = manifest_of(handle)["perturbed"]
    assert perturbed == {"by": "bf16", "unit": 2.0**-8, "seed": 3, "outputs": 5}
    assert "perturbed" not in manifest_of(run(Model().eval(), tmp_path / "b", None)[0])


def test_a_perturbed_recording_is_another_than_one_that_is_not(tmp_path):
    model = Parts().eval()
    config = DumpConfig(str(tmp_path))
    with register_hook(model, config) as plain, register_hook(model, config, perturb="bf16") as perturbed:
        model(X)
    assert plain.folder != perturbed.folder
    assert torch.equal(load(plain, "0/root/output.pth"), load(perturbed, "0/root/output.pth"))


@pytest.mark.parametrize("perturb", ["int8", "", 0, -1e-3, 2, float("nan"), True, [1]], ids=repr)
def test_a_perturbation_that_makes_no_sense_records_nothing(tmp_path, perturb, caplog):
    model = Model().eval()
    handle = register_hook(model, DumpConfig(str(tmp_path)), perturb=perturb)
    assert handle.folder is None
    assert "perturb must be" in caplog.text and "bf16" in caplog.text
    assert not any(module._forward_hooks for module in model.modules())
