"""ActivationOperation against torch."""

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F
from golden_oracle import FLOATS, assert_agrees, assert_sound, golden, normal
from mutants import mutants_of

SHAPES = [(7,), (3, 10), (2, 1, 6), (1, 4, 2, 8)]

PLAIN = {
    1: lambda x, scale: F.relu(x),
    3: lambda x, scale: x * torch.exp(0.851 * (x - x.abs())) / (1 + torch.exp(-1.702 * x.abs())),
    4: lambda x, scale: x * torch.sigmoid(scale * x),
    5: lambda x, scale: torch.log(x),
    8: lambda x, scale: torch.sigmoid(x),
    9: lambda x, scale: x * torch.sigmoid(1.702 * x.abs()) * torch.exp(0.851 * (x - x.abs())),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", PLAIN)
def test_functions_of_one_value(kind, shape, dtype):
    x = normal(*shape, dtype=dtype, seed=kind, scale=3)
    if kind == 5:
        x = x.abs() + 0.01
    scale = 1.5 if kind == 4 else 1.0
    (expected,) = golden.run("ActivationOperation", {"activationType": kind, "scale": scale}, [x])
    assert_agrees(expected, PLAIN[kind](x.double(), scale))
    assert_sound(expected, PLAIN[kind](x.float(), scale).to(x.dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_gelu_has_two_forms_where_the_mode_is_not_written_down(dtype):
    x = normal(4, 33, dtype=dtype, scale=3)
    (expected,) = golden.run("ActivationOperation", {"activationType": 2}, [x])
    by_tanh, by_erf = F.gelu(x.double(), approximate="tanh"), F.gelu(x.double())
    assert_agrees(expected, by_tanh)
    assert list(expected.forms) == ["gelu by tanh", "gelu by erf"]
    for kernel in ("tanh", "none"):
        assert_sound(expected, F.gelu(x.float(), approximate=kernel).to(x.dtype))
    for mode, oracle in ((0, by_tanh), ("NONE_MODE", by_erf)):
        (expected,) = golden.run("ActivationOperation", {"activationType": 2, "geluMode": mode}, [x])
        assert expected.forms == {}
        assert_agrees(expected, oracle)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape,dim", [((3, 10), -1), ((4, 6), 0), ((2, 4, 6), 1), ((2, 4, 6), -2)])
def test_swiglu_and_its_gradient(shape, dim, dtype):
    x = normal(*shape, dtype=dtype, seed=3)
    param = {"activationType": 6, "dim": dim}
    (expected,) = golden.run("ActivationOperation", param, [x])
    exact = x.double().requires_grad_()
    a, b = exact.chunk(2, dim)
    y = F.silu(a) * b
    assert_agrees(expected, y.detach())
    a, b = x.float().chunk(2, dim)
    assert_sound(expected, (F.silu(a) * b).to(x.dtype))

    dy = normal(*y.shape, dtype=dtype, seed=4)
    y.backward(dy.double())
    (expected,) = golden.run("ActivationOperation", {"activationType": 7, "dim": dim}, [dy, x])
    assert_agrees(expected, exact.grad)
    narrow = x.float().requires_grad_()
    a, b = narrow.chunk(2, dim)
    (F.silu(a) * b).backward(dy.float())
    assert_sound(expected, narrow.grad.to(x.dtype))


@mutants_of("ActivationOperation")
def wrong_activations(trial):
    x = normal(64, 64, scale=2)
    single = x.float()
    (swish,) = trial.run({"activationType": 4}, [x])
    trial.sound(swish, F.silu(single).half())
    trial.caught("no function at all", swish, single.half(), by=4)
    trial.caught("another scale", swish, (single * torch.sigmoid(1.702 * single)).half(), by=4)
    trial.caught("0.2 % too large", swish, (x * torch.sigmoid(x)).half() * torch.tensor(1.002).half())
    (swiglu,) = trial.run({"activationType": 6}, [x])
    a, b = single.chunk(2, -1)
    trial.sound(swiglu, (F.silu(a) * b).half())
    trial.caught("halves swapped", swiglu, (F.silu(b) * a).half(), by=4)
    trial.caught("halves interleaved", swiglu, (F.silu(single[:, ::2]) * single[:, 1::2]).half(), by=4)
    trial.caught("the gate rounded to bfloat16", swiglu, (F.silu(a).bfloat16().float() * b).half())
    (gelu,) = trial.run({"activationType": 2, "geluMode": 0}, [x])
    trial.caught("the other formula of GELU", gelu, F.gelu(single).half())
    (gelu,) = trial.run({"activationType": 2}, [x])
    trial.missed("the other formula of GELU, where `geluMode` was not recorded", gelu, F.gelu(single).half())


def test_what_cannot_be_computed_says_so():
    x = normal(2, 3)
    for param, inputs, words in [
        ({"activationType": 0}, [x], "activationType 0"),
        ({"activationType": 6}, [x], "is odd"),
        ({"activationType": 6, "dim": 5}, [x], "no dimension 5"),
        ({"activationType": 1}, [], "input 0 \\(x\\) was not recorded"),
        ({"activationType": "NO_SUCH"}, [x], "activationType"),
        ("not json", [x], "JSON|json|understood"),
    ]:
        with pytest.raises(Exception, match=words):
            golden.run("ActivationOperation", param, inputs)
