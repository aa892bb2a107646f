"""One process of a distributed run."""

import warnings

import torch
from listen import recorded
from torch.nn.parallel import DistributedDataParallel

warnings.simplefilter("ignore")
torch.manual_seed(0)
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
wrapped = DistributedDataParallel(model)
recorded(wrapped)
optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = wrapped(torch.ones(2, 4)).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
torch.save(wrapped.state_dict(), "state.pt")
torch.distributed.destroy_process_group()
