"""Warnings that name the line that they are about, shown once for each place, and what stands on the call stack."""

import traceback
import warnings

import torch
from listen import recorded


class Warning_(torch.nn.Module):
    def forward(self, x, *, level=1):
        warnings.warn(f"level {level}", stacklevel=level)
        if level == 1:
            traceback.print_stack()
        return x


model = torch.nn.Sequential(Warning_(), torch.nn.Sequential(Warning_()))
recorded(model)
for _ in range(2):
    model(torch.ones(1))
    for level in range(2, 7):
        model[0](torch.ones(1), level=level)
torch.nn.functional.softmax(model(torch.ones(1, 1)))
torch.nn.Softmax()(torch.ones(1, 1))
warnings.simplefilter("error")
try:
    model(torch.ones(1))
except UserWarning as error:
    print(error)
