"""Averages of weights, which are copies of the model, while it learns."""

import torch
from listen import recorded
from torch.optim.swa_utils import AveragedModel, update_bn

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
recorded(model)
averaged = AveragedModel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
data = [torch.randn(8, 4) for _ in range(3)]
for x in data:
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    averaged.update_parameters(model)
    print(loss.item())
update_bn(data, averaged)
print(averaged(data[0]).tolist(), averaged.n_averaged, torch.get_rng_state().sum().item())
torch.save({"averaged": averaged, "optimizer": optimizer.state_dict()}, "averaged.pt")
