"""Pruning puts a hook and a mask on each module."""

import torch
from listen import recorded
from torch.nn.utils import prune

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
recorded(model)
x = torch.ones(2, 4)
print(model(x).tolist())
prune.random_unstructured(model[0], "weight", amount=0.3)
prune.l1_unstructured(model[2], "weight", amount=2)
print(model(x).tolist(), [list(module._forward_pre_hooks) for module in model], list(model.state_dict()))
torch.save(model, "pruned.pt")
prune.remove(model[0], "weight")
print(model(x).tolist(), prune.is_pruned(model), vars(model[0]).keys())
torch.save(model.state_dict(), "state.pt")
