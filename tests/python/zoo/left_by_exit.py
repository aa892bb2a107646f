"""Leaves without a word to anybody."""

import os

import torch
from listen import recorded

model = torch.nn.Linear(2, 2)
recorded(model)
print(model(torch.ones(1, 2)).shape, flush=True)
os._exit(3)
