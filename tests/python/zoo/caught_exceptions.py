"""Tracebacks that a script prints itself, and what an exception holds on to."""

import gc
import traceback
import weakref

import torch
from listen import recorded


class Failing(torch.nn.Module):
    def __init__(self, error):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.error = error

    def forward(self, x, fail=True):
        x = self.fc(x)
        if fail:
            raise self.error
        return x


class Retrying(torch.nn.Module):
    def __init__(self, *parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            try:
                x = part(x)
            except ArithmeticError:
                traceback.print_exc()
                x = part(x, fail=False)
        return x


torch.manual_seed(0)
model = Retrying(Failing(ArithmeticError("first")), torch.nn.Sequential(Failing(StopIteration("second"))))
recorded(model)
for _ in range(2):
    try:
        model(torch.ones(1, 4))
    except StopIteration as error:
        print(traceback.format_exc(), len(traceback.extract_tb(error.__traceback__)))
x = torch.ones(1, 3)
gone = weakref.ref(x)
try:
    model(x)
except RuntimeError as error:
    print(error)
del x
gc.collect()
print(gone() is None)
