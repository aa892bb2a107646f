"""A script that goes to other folders, with relative names."""

import os
import sys

import torch
from listen import recorded

os.makedirs("there/below")
os.chdir("there")
model = torch.nn.Linear(2, 2)
model.weight.data.fill_(1)
model.bias.data.fill_(0)
recorded(model)
print(model(torch.ones(1, 2)).tolist())
os.chdir("below")
torch.save(model(torch.ones(1, 2)), "output.pt")
other = torch.nn.Linear(2, 2)
recorded(other)
other(torch.ones(1, 2))
print(sorted(os.listdir("..")), sorted(os.listdir(".")), [entry for entry in sys.path if "ait" in entry])
os.umask(0o077)
