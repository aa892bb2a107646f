"""Arguments and results that may be looked at only once, or by nobody else."""

import collections
import dataclasses

import torch
from listen import recorded


@dataclasses.dataclass
class Both:
    first: torch.Tensor
    second: object = None


class Proxy:
    """Answers to everything."""

    def __getattr__(self, name):
        print("proxy asked for", name)
        return self

    def __iter__(self):
        print("proxy iterated")
        return iter([])

    def __len__(self):
        print("proxy measured")
        return 1


class Echo(torch.nn.Module):
    def forward(self, *args, **kwargs):
        return args[0] if args else kwargs


class Words(torch.nn.Module):
    """Its result is computed while it is read."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)

    def forward(self, x):
        for _ in range(3):
            x = self.fc(x)
            yield x.shape


Pair = collections.namedtuple("Pair", "x y")
x = torch.ones(2, 2)
model = Echo()
model.part = torch.nn.Linear(2, 2)
recorded(model)
print(list(model(iter([x, x]))), list(model(each for each in range(3))), model(open("file", "w")).closed)
model(Proxy())
print(model(Both(x, [x])).second, model(Pair(x, x)).x, model(), model(a=x, b={"c": [x, (x,)]}))
default = collections.defaultdict(lambda: print("made"), x=x)
print(model(default) is default, len(default), model(None), model(model) is model, model(torch.Tensor) is torch.Tensor)
endless = [x]
endless.append(endless)
print(len(model(endless)), model(x.to_sparse()).is_sparse, model(torch.nn.utils.rnn.pack_sequence([x])).batch_sizes)
words = Words()
recorded(words)
print(list(words(x)))
