"""Classes with methods of their own where a recorder might look."""

import torch
from listen import recorded


class Chatty(torch.nn.Module):
    """Says whenever somebody asks for what it does not have, and for its parameters."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def __getattr__(self, name):
        print("asked for", name)
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        print("set", name)
        super().__setattr__(name, value)

    def parameters(self, recurse=True):
        print("parameters")
        return super().parameters(recurse)

    def named_modules(self, *args, **kwargs):
        print("named_modules")
        return super().named_modules(*args, **kwargs)

    def children(self):
        print("children")
        return super().children()

    def forward(self, x):
        return self.fc(x)


class Odd(torch.nn.Module):
    __slots__ = ("extra",)

    def __init__(self, part):
        super().__init__()
        self.part = part
        self.extra = 3

    def __eq__(self, other):
        print("compared")
        return True

    def __hash__(self):
        print("hashed")
        return 1

    def __bool__(self):
        print("asked whether it is true")
        return False

    def __len__(self):
        print("asked how long it is")
        return 0

    def __call__(self, *args, **kwargs):
        print("called")
        return super().__call__(*args, **kwargs)

    @property
    def weight(self):
        print("weight")
        return self.part.fc.weight

    def forward(self, module, *, self_=None, input=None, args=(), kwargs=None):
        return self.part(module) + self.extra


class Own(torch.nn.Module):
    """Never gets to torch's own call."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def __call__(self, x):
        return self.fc(x) + 1


class ByName(torch.nn.Module):
    def __call__(self, x):
        return torch.nn.Module.__call__(self, x)

    def forward(self, x):
        return x * 3


torch.manual_seed(0)
model = Odd(Chatty())
recorded(model)
x = torch.ones(2, 4)
print(model(x).tolist(), model(module=x, self_=x, input=x, args=x, kwargs={"x": x}).tolist())
try:
    model(self=x)
except TypeError as error:
    print(error)
for other in (Own(), torch.nn.Sequential(Own(), ByName()), ByName()):
    recorded(other)
    print(other(x).tolist())
