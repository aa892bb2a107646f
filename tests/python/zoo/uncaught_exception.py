"""Ends with an exception from the depth of a model."""

import torch
from listen import recorded


class Failing(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            raise ArithmeticError("on purpose") from ValueError("because")
        return x


model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Sequential(torch.nn.Linear(4, 4), Failing()))
model[1][0].weight.data.fill_(1)
recorded(model)
print(model(-torch.ones(1, 4)).shape, flush=True)
model(torch.ones(1, 4))
