"""How the author of a kernel tests it: against ait's golden operators, with the bound that rounding explains.

    pytest examples/test_my_kernel.py

`golden.run` computes an operation of the acceleration library in double precision from the inputs that it is given.
`bound` says, element by element, how far a sound kernel may be off that sums in float32 and rounds once: there is no
tolerance to choose. The second kernel forgets epsilon, and fails.
"""

import pytest
import torch
from ait_llm import golden

PARAMETERS = {"layerType": 1, "normParam": {"epsilon": 1e-5}}


def rms_norm(x, weight):
    x = x.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight.float()).half()


def rms_norm_without_epsilon(x, weight):
    x = x.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True)) * weight.float()).half()


def inputs(size):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(16, 128, generator=generator) * size
    return x.half(), (torch.rand(128, generator=generator) + 0.5).half()


@pytest.mark.parametrize("size", [1.0, 0.01])
@pytest.mark.parametrize(
    "kernel",
    [rms_norm, pytest.param(rms_norm_without_epsilon, marks=pytest.mark.xfail(reason="forgets epsilon", strict=True))],
)
def test_the_kernel_is_as_exact_as_its_type(kernel, size):
    x, weight = inputs(size)
    (expected,) = golden.run("RmsNormOperation", PARAMETERS, [x, weight])
    error = abs(kernel(x, weight).double().numpy() - expected.values)
    worst = (error / expected.bound("float16")).max()
    assert worst <= 1, f"an element is {worst:.1f} times as far off as rounding explains"
