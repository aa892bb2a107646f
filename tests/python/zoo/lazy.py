"""Modules that get their weights and another class at their first call."""

import warnings

import torch
from listen import recorded

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.LazyBatchNorm1d(), torch.nn.ReLU())
recorded(model)
print(model)
for _ in range(2):
    print(model(torch.ones(2, 3)).tolist(), model, [len(module._forward_pre_hooks) for module in model])
torch.save(model, "lazy.pt")
