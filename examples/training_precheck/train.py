"""A training script that knows nothing of ait."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4)).bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(torch.randn(12, 16).bfloat16(), batch_size=4):
    loss = torch.nn.functional.softmax(model(batch), dim=-1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
