"""torch.fx puts a wrapper around Module.__call__ while it traces, and what it makes are modules of new classes."""

import torch
from listen import recorded
from torch import fx


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
graph = fx.symbolic_trace(model)
print(graph.code, graph.graph, torch.equal(graph(x), expected), torch.equal(model(x), expected))
tracer = fx.Tracer()
tracer.record_stack_traces = True
for node in tracer.trace(model).nodes:
    print(node.name, node.stack_trace)
recorded(graph)
graph(x)
torch.save(graph, "graph.pt")
print(fx.Interpreter(graph).run(x).tolist())
print(type(graph).__name__, torch.nn.Module.__call__ is torch.nn.Module._wrapped_call_impl)
