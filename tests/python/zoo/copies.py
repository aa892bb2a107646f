"""Pickled, deep-copied and shallow-copied, before, during and after calls."""

import copy
import pickle
import pickletools

import torch
from listen import recorded


class Copying(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        self.pickled = None
        self.pickled = pickle.dumps(self)
        return self.fc(x) + copy.deepcopy(self.fc)(x)


def attributes(module):
    return [(name, sorted(vars(each))) for name, each in module.named_modules()]


torch.manual_seed(0)
model = Copying()
recorded(model)
x = torch.ones(2, 4)
others = [copy.deepcopy(model)]
print(model(x).tolist())
others += [pickle.loads(model.pickled), copy.copy(model), copy.deepcopy(model), copy.deepcopy(model.fc)]
model.pickled = None
pickled = pickle.dumps(model)  # the bytes hold addresses
words = [word for _, word, _ in pickletools.genops(pickled) if isinstance(word, str) and not word.isdigit()]
print(len(pickled), words)
for other in others:
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    print(attributes(other), other(x).tolist())
print(model(x).tolist())
