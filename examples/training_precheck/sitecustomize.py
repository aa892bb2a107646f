"""A device with a wrong kernel: every Python that finds this file has a GELU for bfloat16 that is 2 % too large."""

import torch

library = torch.library.Library("aten", "IMPL")


def gelu(x, *, approximate="none"):
    y = 0.5 * x.double() * (1 + torch.erf(x.double() / 2**0.5))
    return (y * 1.02 if x.dtype == torch.bfloat16 else y).to(x.dtype)


library.impl("gelu", gelu, "CPU")
