"""A small model whose numbers are exact in float32 in whatever order they are added, so that files recorded on one
machine are the same on every other. tests/data/make_msprobe.py records it with msprobe, the tests with our hooks."""

import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4, bias=False)
        self.act = torch.nn.ReLU()

    def forward(self, x, shift=None):
        y = self.act(self.fc(self.fc(x)))
        return (y + x, {"act": y}) if shift is None else y + shift


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(8, 4)
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.out = torch.nn.Linear(4, 8, bias=False)

    def forward(self, ids):
        x, _ = self.blocks[0](self.embed(ids))
        return self.out(self.blocks[1](x, shift=torch.full((4,), 0.5)))


def make_model():
    model = Model().eval()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            steps = (torch.arange(parameter.numel()) * 7 + number) % 5 - 2
            parameter.copy_(steps.reshape(parameter.shape) / 4)
    return model


def run(model, backward=False):
    """Two rounds, as a prompt and a token."""
    for ids in ([1, 5, 3], [6]):
        with torch.set_grad_enabled(backward):
            out = model(torch.tensor([ids]))
        if backward:
            out.sum().backward()
