"""Operations as torch.fx sees them below autograd, with conjugates and quantised values among them."""

import warnings

import torch
from listen import recorded
from torch.fx.experimental.proxy_tensor import make_fx

warnings.simplefilter("ignore")


class Complex(torch.nn.Module):
    def forward(self, x):
        return self.inner(x.conj()).imag

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Identity()


model = torch.nn.Sequential(Complex(), torch.nn.Tanh())
recorded(model)
x = torch.randn(3, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
for mode in ("real", "fake", "symbolic"):
    print(make_fx(model, tracing_mode=mode)(x).code)
print(model(x).tolist())
