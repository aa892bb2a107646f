"""Leaves from inside a model, with handlers that run afterwards and call it again."""

import atexit
import sys

import torch
from listen import recorded

model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
atexit.register(lambda: print("first registered, last called", model(torch.ones(1, 2)).shape))
recorded(model)
atexit.register(lambda: print("last registered, first called", model(torch.ones(1, 2)).shape))
model.register_forward_hook(lambda *_: sys.exit(7) if calls.append(1) or len(calls) == 2 else None)
calls = []
model(torch.ones(1, 2))
print("once", flush=True)
model(torch.ones(1, 2))
