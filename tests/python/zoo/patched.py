"""A script that puts something of its own around the calls of all modules, for a while and for good."""

import torch
from listen import recorded

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
recorded(model)
x = torch.ones(1, 4)
original = torch.nn.Module.__call__


def call(self, *args, **kwargs):
    print("called", type(self).__name__)
    return original(self, *args, **kwargs)


model(x)
torch.nn.Module.__call__ = call
print(model(x).tolist())
torch.nn.Module.__call__ = original
print(model(x).tolist())
forward = torch.nn.Linear.forward
torch.nn.Linear.forward = lambda self, x: forward(self, x) + 1
recorded(torch.nn.Linear(4, 4))
print(model(x).tolist(), torch.nn.Module.__call__ is original)
torch.nn.Module.__call__ = call
print(model(x).tolist())
