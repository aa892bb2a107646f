"""Shared weights and modules, and weights that are computed, some by chance, each time that they are asked for."""

import torch
from listen import recorded
from torch.nn.utils import parametrizations, parametrize


class Noise(torch.nn.Module):
    def forward(self, weight):
        print("computed")
        return weight + torch.randn_like(weight)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(8, 4)
        self.mix = torch.nn.Linear(4, 4)
        self.again = self.mix
        self.head = torch.nn.Linear(4, 8, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.again(self.mix(self.embed(tokens))))


torch.manual_seed(0)
model = Tied()
parametrizations.weight_norm(model.mix)
parametrizations.spectral_norm(model.embed)
parametrize.register_parametrization(model.head, "weight", Noise())
recorded(model)
tokens = torch.arange(4)
for _ in range(3):
    print(model(tokens).sum().item())
with parametrize.cached():
    print(model(tokens).sum().item(), model(tokens).sum().item())
print(list(model.state_dict()), model)
torch.save(model.state_dict(), "state.pt")
parametrize.remove_parametrizations(model.mix, "weight")
print(model(tokens).sum().item(), torch.rand(1).item())
