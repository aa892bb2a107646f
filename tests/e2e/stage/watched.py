"""Two recordings of a small model with statistics of 20 rounds: golden, and my, of which a weight changes in round 8
and round 12 has a NaN."""

import torch
from ait_llm import DumpConfig, register_hook

torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
x = torch.randn(2, 4)
for name in ("golden", "my"):
    with register_hook(model, DumpConfig(name, token_range=list(range(20)), dump_statistics_mode=1)):
        for step in range(20):
            if name == "my" and step == 8:
                model[2].weight.data *= 1.5
            model(x * float("nan") if name == "my" and step == 12 else x + 0.01 * step)
