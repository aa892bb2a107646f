"""A model that changes its own modules while it runs."""

import torch
from listen import recorded


class Growing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        self.layers.append(torch.nn.Linear(4, 4))
        self.layers[0] = torch.nn.Identity()
        if len(self.layers) > 3:
            del self.layers[1]
        self.none = None
        self._modules["nothing"] = None
        return x


torch.manual_seed(0)
model = Growing()
recorded(model)
for _ in range(4):
    print(model(torch.ones(1, 4)).tolist(), len(model.layers))
print(model, model.apply(lambda module: None) is model)
