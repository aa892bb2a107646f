"""Steps of training, one of which `ait api dump` records, or, with --overflow, calls that leave the range of fp16."""

import sys

import torch


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.norm = torch.nn.LayerNorm(32)
        self.last = torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.last(torch.nn.functional.gelu(self.norm(self.first(x))))


def train():
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(4, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def overflow(folder):
    import ait_llm.overflow

    model = torch.nn.Linear(16, 16).half()
    ait_llm.overflow.watch(model, overflow_nums=-1, dump_path=folder)
    for size in (1, 30000):
        model(torch.full((2, 16), size, dtype=torch.float16)) * 4


torch.manual_seed(0)
if len(sys.argv) > 1:
    overflow(sys.argv[2])
else:
    train()
