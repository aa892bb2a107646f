"""A training script that knows nothing of ait."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 40), torch.nn.GELU(), torch.nn.Linear(40, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(torch.arange(20.0).reshape(5, 4) / 20, batch_size=1):
    loss = torch.tanh(model(batch)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
