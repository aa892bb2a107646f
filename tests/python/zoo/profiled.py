"""Operations as torch's profiler and its counter of operations see them."""

import torch
from listen import recorded
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(4, 2)))
recorded(model)
x = torch.ones(2, 4)
for _ in range(2):
    with torch.autograd.profiler.profile(use_kineto=False) as profile:
        model(x).sum().backward()
    print([event.name for event in profile.function_events])
with FlopCounterMode(display=False) as counter:
    model(x).sum().backward()
print({name: {str(key): value for key, value in each.items()} for name, each in counter.get_flop_counts().items()})
