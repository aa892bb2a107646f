"""Interrupted from the keyboard inside a model, once caught and once not."""

import signal

import torch
from listen import recorded


class Waiting(torch.nn.Module):
    def forward(self, x):
        signal.raise_signal(signal.SIGINT)
        return x


model = torch.nn.Sequential(torch.nn.Linear(2, 2), Waiting())
recorded(model)
try:
    model(torch.ones(1, 2))
except KeyboardInterrupt:
    print("caught", flush=True)
model(torch.ones(1, 2))
