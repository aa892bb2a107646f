"""Wrong kernels planted for one function on the device alone: each is found, and nothing else."""

import pytest
import torch
from ait_llm.api_check import error_data
from ait_llm.api_check.checking import read_both
from ait_llm.api_check.devices import open_device
from ait_llm.api_check.outcome import Settings, check
from torch.nn import functional
from training import needs_cuda, read, recording

attention = getattr(functional, "scaled_dot_product_attention", lambda q, k, v: q + k + v)  # torch 1.13 has none


def program():
    """A training step that calls each function that has a plant, and some others. One of each has an odd input."""
    torch.manual_seed(3)
    weights = {
        "embedding": torch.randn(40, 24),
        "linear": torch.randn(24, 24) / 5,
        "image": torch.randn(8, 3, 3, 3) / 5,
        "scale": torch.rand(24) + 0.5,
    }
    for each in weights.values():
        each.requires_grad_()
    tokens = torch.arange(60).reshape(3, 20) * 7 % 40
    x = functional.embedding(tokens, weights["embedding"])
    x = functional.layer_norm(x, (24,), weights["scale"])
    q, k, v = (functional.linear(x, weights["linear"]).reshape(3, 20, 2, 12).transpose(1, 2) for _ in range(3))
    attended = attention(q * 3, k * 3, v)
    x = x + attended.transpose(1, 2).reshape(3, 20, 24)
    x = functional.gelu(torch.matmul(x, weights["linear"].t()))  # of a transposed matrix
    x = torch.cat([x[:, :10] * torch.sigmoid(x[:, :10]), x[:, 10:].cumsum(1)], dim=1)
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
    x = x.add_(torch.ones(24), alpha=0.25)
    shares = functional.softmax(x, dim=-1)
    picture = functional.conv2d(torch.rand(2, 3, 10, 10), weights["image"], padding=1)
    picture = functional.max_pool2d(torch.tanh(picture), 2)
    picture = functional.dropout(picture, 0.5)
    loss = functional.cross_entropy(shares.reshape(60, 24), tokens.reshape(-1) % 24)
    loss = (
        loss
        + picture.abs().sum(dim=(1, 2)).mean()
        + (shares.t() if shares.dim() == 2 else shares.transpose(1, 2)).exp().mean()
    )
    loss.backward()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plants")
    with recording(folder):
        program()
    return read(folder, "forward"), read(folder, "backward")


class WrongGradient(torch.autograd.Function):
    """A right product whose second factor gets half of its gradient."""

    @staticmethod
    def forward(context, a, b):
        context.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(context, gradient):
        a, b = context.saved_tensors
        of_b = (a.transpose(-1, -2) @ gradient).sum(0) if a.dim() > b.dim() else a.transpose(-1, -2) @ gradient
        return gradient @ b.transpose(-1, -2), of_b / 2


def ignoring_strides(function):
    """Takes the memory of an input for that of a contiguous one."""

    def wrong(x, *args, **kwargs):
        if not x.is_contiguous():
            steps = torch.empty(x.shape, device="meta").stride()
            x = x.as_strided(x.shape, steps)
        return function(x, *args, **kwargs)

    return wrong


def last_row(function, *args, **kwargs):
    output = function(*args, **kwargs)
    return torch.cat([output[..., :-1, :], output[..., -1:, :] * 0.5], dim=-2)


def without_border(x, weight, bias=None, stride=1, padding=0, *rest):
    output = functional.conv2d(x, weight, bias, stride, padding, *rest)
    mask = torch.zeros_like(output)
    mask[..., 1:-1, 1:-1] = 1
    return output * mask


BOTH, FORWARD, BACKWARD = ("False", "False"), ("False", "True"), ("True", "False")
# By its name: the function, what stands in for it, and which directions are wrong.
PLANTS = {
    "wrong reduction": (functional.cross_entropy, lambda f, *a, **k: f(*a, **{**k, "reduction": "sum"}), BOTH),
    "last row": (functional.linear, last_row, BOTH),
    "wrong gradient of one input": (torch.matmul, lambda f, a, b: WrongGradient.apply(a, b), BACKWARD),
    # Its gradient finds its way back, because the incoming one is the same everywhere.
    "non-contiguous input": (torch.Tensor.exp, lambda f, *a, **k: ignoring_strides(f)(*a, **k), FORWARD),
    "in-place variant": (torch.Tensor.add_, lambda f, x, other, **k: f(x, other), FORWARD),
    "wrong axis": (functional.softmax, lambda f, x, dim=None, **k: f(x, dim - 1, **k), BOTH),
    "approximation": (functional.gelu, lambda f, x, **k: f(x, approximate="tanh"), BOTH),
    "epsilon": (functional.layer_norm, lambda f, *a, **k: f(*a, **{**k, "eps": 1e-1}), BOTH),
    "off by one": (functional.embedding, lambda f, i, w, **k: f((i + 1) % 40, w, **k), BOTH),
    "border": (functional.conv2d, lambda f, *a, **k: without_border(*a, **k), BOTH),
    "low precision": (torch.Tensor.cumsum, lambda f, x, d: f(x.bfloat16(), d).float(), BOTH),
    "rough function": (torch.rsqrt, lambda f, x: f(x) * (1 + 1e-3 * torch.sin(1e4 * x)), BOTH),
    "swapped inputs": (torch.cat, lambda f, parts, dim: f(parts[::-1], dim), BOTH),
    "smallest of a pool": (functional.max_pool2d, lambda f, x, *a, **k: -f(-x, *a, **k), BOTH),
    "one denominator less": (
        torch.Tensor.mean,
        lambda f, x, d, **k: f(x, d, **k) * 24 / 23 if d == -1 else f(x, d, **k),
        BOTH,
    ),
    "nothing is scaled": (functional.dropout, lambda f, x, p, *a, **k: f(x, p, *a, **k) * (1 - p), None),
}
if hasattr(functional, "scaled_dot_product_attention"):
    PLANTS["missing scale"] = (attention, lambda f, *a, **k: f(*a, **{**k, "scale": 1.0}), BOTH)


def planted(name, device="cpu"):
    """A device on which one function is wrong."""
    made = open_device(device)
    made.prepare(1234)
    made.function, wrong, _ = PLANTS[name]

    def call(function, args, kwargs):
        return wrong(function, *args, **kwargs) if function is made.function else function(*args, **kwargs)

    made.call = call
    return made


def verdicts(outcome):
    return (outcome.forward, outcome.backward), (outcome.forward_within, outcome.backward_within)


DEVICES = ["cpu", pytest.param("cuda", marks=needs_cuda)]


@pytest.mark.parametrize("device", DEVICES)
def test_without_a_plant_nothing_is_reported(device, recorded):
    forward, backward = recorded
    healthy = open_device(device)
    healthy.prepare(1234)
    for key, record in forward.items():
        outcome = check(key, record, backward.get(key), healthy, Settings())
        assert "False" not in verdicts(outcome)[1], outcome


@pytest.mark.parametrize("device_name", DEVICES)
@pytest.mark.parametrize("name", PLANTS)
def test_a_wrong_kernel_is_found_by_both_verdicts_and_no_other_is_by_ours(name, device_name, recorded, tmp_path):
    forward, backward = recorded
    device, expected = planted(name, device_name), PLANTS[name][2]
    outcomes = {key: check(key, record, backward.get(key), device, Settings()) for key, record in forward.items()}
    reported = {key for key, outcome in outcomes.items() if "False" in verdicts(outcome)[1]}
    calls = {key for key in forward if public(key) is device.function}
    assert reported and reported <= calls
    for key in reported:
        by_rule, by_rounding = verdicts(outcomes[key])
        if expected is None:  # dropout: the older rule looks at zeros alone
            assert by_rounding[0] == "False"
            continue
        has_backward = key in backward
        wanted = expected if has_backward else (expected[0], "N/A")
        assert by_rounding == wanted, outcomes[key]
        # The older rule finds fault with sound products, too.
        assert all(rule == "False" for rule, ours in zip(by_rule, wanted) if ours == "False"), outcomes[key]
    # What was saved fails again with the wrong kernel, and not with the right one.
    key = min(reported)
    facts = {"seed": 1234}
    path = error_data.save(str(tmp_path / "ut_error_data"), key, outcomes[key].error_data, facts)
    again_forward, again_backward = read_both(path, None)
    settings = Settings(data_folders=(str(tmp_path / "ut_error_data"),))
    again = check(key, again_forward[key], again_backward.get(key), device, settings)
    if expected is not None:
        assert verdicts(again) == verdicts(outcomes[key])
    assert "False" in verdicts(again)[1]
    healthy = check(key, again_forward[key], again_backward.get(key), open_device(device_name), settings)
    assert "False" not in verdicts(healthy)[1] and healthy.forward != "SKIP"


def public(key):
    group, name, _ = key.split("*")
    return getattr({"Functional": functional, "Tensor": torch.Tensor, "Torch": torch}[group], name)


def test_error_data_have_the_documents_names(recorded, tmp_path):
    forward, backward = recorded
    key = "Functional*linear*0"
    outcome = check(key, forward[key], backward[key], planted("last row"), Settings())
    error_data.save(str(tmp_path), key, outcome.error_data, {"seed": 1234})
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        *(f"Functional.linear.0.forward.input.{n}.pt" for n in (0, 1)),
        *(f"Functional.linear.0.forward.output.{side}.0.pt" for side in ("bench", "device")),
        "Functional.linear.0.backward.input.0.pt",
        *(f"Functional.linear.0.backward.output.{side}.{n}.pt" for side in ("bench", "device") for n in (0, 1)),
        "Functional.linear.0.json",
    }
    assert torch.load(tmp_path / "Functional.linear.0.forward.output.bench.0.pt").dtype == torch.float64
