"""Scripted after a call, as a whole and in part; frozen."""

import torch
from listen import recorded


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x, flip: bool = False):
        if flip:
            return -self.fc(x)
        return self.fc(x)


torch.manual_seed(0)
model = torch.nn.Sequential(Gate(), torch.nn.ReLU())
recorded(model)
x = torch.ones(2, 4)
first = model(x)
scripted = torch.jit.script(model)
print(scripted.code, torch.equal(scripted(x), first), torch.equal(scripted[0](x, flip=True), -model[0](x)))
scripted.save("scripted.pt")
part = torch.nn.Sequential(torch.jit.script(Gate()), torch.nn.ReLU())
recorded(part)
print(part(x).tolist(), part)
frozen = torch.jit.freeze(scripted.eval())
recorded(frozen)
print(frozen(x).tolist())
torch.jit.save(frozen, "frozen.pt")
