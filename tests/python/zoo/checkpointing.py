"""Activations that are computed anew in the backward pass, in the autograd engine's own way."""

import torch
from listen import recorded
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4), torch.nn.Tanh()
)
recorded(model)
x = torch.randn(3, 4, requires_grad=True)
for reentrant in (True, False):
    y = checkpoint(model, x, use_reentrant=reentrant)
    y = checkpoint_sequential(model, 2, y, use_reentrant=reentrant)
    y.square().sum().backward()
    print(y.tolist(), x.grad.tolist(), [parameter.grad.sum().item() for parameter in model.parameters()])
print(model[2].running_mean.tolist(), model[2].num_batches_tracked, torch.rand(2).tolist())
