"""Compiled with graph breaks, with hooks of the script's own, and with what may not be compiled."""

import torch
from listen import recorded
from torch._dynamo.utils import counters


def backend(graph, inputs):
    print(graph.code)
    return graph.forward


class Breaking(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 4)
        self.two = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = self.one(x)
        print("break")
        return self.two(self.eager(x))

    @torch.compiler.disable
    def eager(self, x):
        return self.one(x)


torch.manual_seed(0)
model = torch.nn.Sequential(Breaking(), torch.nn.ReLU())
recorded(model)
x = torch.ones(2, 4)
compiled = torch.compile(model, backend=backend)
for _ in range(3):
    print(compiled(x).tolist())
hooked = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
hooked[0].register_forward_hook(lambda module, args, output: output + 1)
hooked[1].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
recorded(hooked)
compiled = torch.compile(hooked, backend=backend, fullgraph=True)
for _ in range(3):
    print(compiled(x).tolist(), hooked(x).tolist())
compiled(x).sum().backward()
print(torch._dynamo.explain(hooked)(x).graph_count)
print({key: sum(value.values()) for key, value in sorted(counters.items())})
