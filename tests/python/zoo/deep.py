"""A model of many modules inside each other, and one that calls itself, in the end too often."""

import torch
from listen import recorded


class Recursive(torch.nn.Module):
    def forward(self, x, depth):
        return x if depth == 0 else self(x + 1, depth - 1)


model = torch.nn.Identity()
for _ in range(100):
    model = torch.nn.Sequential(model)
model.append(torch.nn.Linear(2, 2))
recorded(model)
print(model(torch.ones(1, 2)).shape)
other = Recursive()
recorded(other)
print(other(torch.ones(1), 100).tolist())
try:
    other(torch.ones(1), 1 << 20)
except RecursionError:
    print("too deep")
