"""Calls a torch model a few times and knows nothing of ait; with `--compile` the model is compiled."""

import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8)).eval()
if "--compile" in sys.argv:
    model = torch.compile(model, backend="aot_eager")
value = torch.randn(2, 8)
with torch.no_grad():
    for _ in range(3):
        value = model(value)
