"""Traced, saved, loaded and called; the file notes the call stack of each operation."""

import torch
from listen import recorded

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(4, 2)))
recorded(model)
x = torch.ones(2, 4)
traced = torch.jit.trace(model, x)
print(traced.graph)
torch.jit.save(traced, "traced.pt")
loaded = torch.jit.load("traced.pt")
recorded(loaded)
print(traced(x).tolist(), loaded(x).tolist(), loaded[2](torch.ones(1, 4)).tolist())
print([name for name, _ in loaded.named_modules()], loaded.original_name)
torch.jit.save(loaded, "again.pt")
