"""Small modules to record, and looks into what was recorded of them."""

import json
from pathlib import Path

import torch
from ait_llm import DumpConfig, register_hook
from ait_llm.dump.torch_dump import listening

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
DTYPES = [
    getattr(torch, name)
    for name in (
        "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 float8_e4m3fn "
        "float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu complex64 complex128"
    ).split()
    if hasattr(torch, name)
]
if hasattr(torch, "compiler"):  # torch 1.13 does not load complex32 with weights_only
    DTYPES.append(torch.complex32)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.act = torch.nn.ReLU()

    def forward(self, x, *, scale=None):
        x = self.act(self.fc(x))
        return x if scale is None else x * scale


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x, scale=torch.tensor(2.0))
        return self.head(x)


class Giving(torch.nn.Module):
    """Returns what it was made with, whatever it is called with."""

    def __init__(self, value):
        super().__init__()
        self.value = [value]  # not as an attribute: it may be a module or a parameter

    def forward(self, *args, **kwargs):
        return self.value[0]


def manifest_of(handle):
    return json.loads(Path(handle.folder, "manifest.json").read_text())


def tree_of(handle):
    return json.loads(Path(handle.folder, "model_tree.json").read_text())


def load(handle, *parts):
    return torch.load(Path(handle.folder, *parts), weights_only=True)


def record(model, tmp_path, *args, config=None, **kwargs):
    with register_hook(model, config or DumpConfig(str(tmp_path))) as handle:
        model(*args, **kwargs)
    return handle


class Failing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.fails = True

    def forward(self, x):
        x = self.fc(x)
        if self.fails:
            raise ArithmeticError("on purpose")
        return x


class Spoiling(torch.nn.Module):
    def forward(self, x):
        x.fill_(-1)
        return x.add_(1)


def nodes_of(node):
    yield node
    for child in node["children"]:
        yield from nodes_of(child)


def listeners_of(model):
    """What of ait hears of the calls of these modules. It is nowhere on them."""
    return [tap for module in model.modules() for tap in listening.taps_of(module)]


def state_of(model):
    """All that there is to see of a model's modules, as text that is the same as long as nobody touches them."""
    return [(name, type(module), repr(sorted(vars(module).items()))) for name, module in model.named_modules()]
