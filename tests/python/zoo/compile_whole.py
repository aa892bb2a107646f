"""Compiled as a whole: the graphs, guards and counts are those of the model alone."""

import torch
from listen import recorded
from torch._dynamo.utils import counters


def backend(graph, inputs):
    print(graph.code)
    return graph.forward


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x, scale=None):
        x = torch.relu(self.fc(x))
        return x if scale is None else x * scale


torch.manual_seed(0)
model = torch.nn.Sequential(Block(), Block(), torch.nn.Linear(4, 2))
recorded(model)
x = torch.ones(2, 4)
expected = model(x)
compiled = torch.compile(model, backend=backend, fullgraph=True)
recorded(compiled)
for size in (2, 2, 3, 4):
    print(compiled(torch.ones(size, 4)).tolist())
print(torch.equal(compiled(x), expected), torch.equal(model(x), expected))


@torch.compile(backend=backend, fullgraph=True)
def step(x):
    return model(x) + model[0](x, scale=2.0).sum()


print(step(x).tolist(), step(x).tolist())
model[0].compile(backend=backend, fullgraph=True)
print(model(x).tolist(), model(x).tolist())
later = torch.nn.Sequential(Block(), Block())
later[0] = torch.compile(later[0], backend=backend, fullgraph=True)
recorded(later)
print(later(x).tolist(), later(x).tolist())
print({key: sum(value.values()) for key, value in sorted(counters.items())})
torch.save(compiled.state_dict(), "state.pt")
