"""Modes and tensor classes of the script's own, which see everything that is done with tensors."""

import torch
from listen import recorded
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        print("function", getattr(function, "__name__", function))
        return function(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        print("operation", function)
        return function(*args, **(kwargs or {}))


class Watched(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        print("watched", getattr(function, "__name__", function))
        return super().__torch_function__(function, types, args, kwargs)


class Complex(torch.nn.Module):
    def forward(self, x):
        return torch.view_as_real(self.part(torch.view_as_complex(x).conj()).resolve_conj())

    def __init__(self):
        super().__init__()
        self.part = torch.nn.Identity()


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 2), Complex(), torch.nn.ReLU())
recorded(model)
x = torch.ones(2, 4)
with Functions():
    model(x)
with Operations():
    model(x)
with Functions(), Operations():
    model(x)
y = model(x.as_subclass(Watched))
print(type(y).__name__, model(torch.nn.Parameter(x)).tolist())
