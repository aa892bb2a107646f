"""Records a model with functions between its modules, two rounds with their backward passes, with msprobe.

python record_toy.py FOLDER LEVEL
"""

import json
import pathlib
import sys

import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.softmax = torch.nn.Softmax(-1)

    def forward(self, x):
        # A function of the name of a module beside it, and before it. Of the gradient of x, softmax gives hardly any.
        y = torch.softmax(x, -1)
        return self.softmax(self.fc(self.fc(y))) + torch.nn.functional.silu(x)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block()
        self.b = Block()

    def forward(self, x):
        return self.b(self.a(x))


def main(folder, level):
    from msprobe.pytorch import PrecisionDebugger

    config = pathlib.Path(folder + ".json")
    details = {"scope": [], "list": [], "data_mode": ["all"]}
    config.write_text(
        json.dumps({"task": "tensor", "dump_path": folder, "rank": [], "step": [], "level": level, "tensor": details})
    )
    torch.manual_seed(0)
    model = Model()
    debugger = PrecisionDebugger(config_path=str(config))
    debugger.start(model)
    for seed in range(2):
        torch.manual_seed(seed)
        model(torch.randn(1, 2, 4, requires_grad=True)).sum().backward()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
