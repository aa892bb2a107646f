"""Exported programs, which keep the call stack of each operation."""

import io

import torch
from listen import recorded


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x, *, scale=2.0):
        return torch.relu(self.fc(x)) * scale


torch.manual_seed(0)
model = torch.nn.Sequential(Block(), Block(), torch.nn.Linear(4, 2)).eval()
recorded(model)
x = torch.ones(2, 4)
expected = model(x)
for strict in (False, True):
    program = torch.export.export(model, (x,), strict=strict, dynamic_shapes=({0: torch.export.Dim.AUTO},))
    print(program)
    for node in program.graph.nodes:
        modules = node.meta.get("nn_module_stack", {})
        print(node.name, node.meta.get("stack_trace"), list(modules.values()))
    torch.export.save(program, "program.pt2" if not strict else io.BytesIO())  # there the keys of modules are addresses
    module = program.module()
    recorded(module)
    print(torch.equal(module(x), expected), torch.equal(model(x), expected))
