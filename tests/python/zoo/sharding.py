"""As sharding libraries do: another class, another forward, parameters that come and go around each call."""

import functools

import torch
from listen import recorded


def shard(module):
    """Parameters are there only while the module runs."""
    kept = {name: value.detach().clone() for name, value in module.named_parameters(recurse=False)}
    forward = module.forward

    @functools.wraps(forward)
    def wrapped(*args, **kwargs):
        for name, value in kept.items():
            getattr(module, name).data = value
        try:
            return forward(*args, **kwargs)
        finally:
            for name in kept:
                getattr(module, name).data = torch.empty(0)

    module.forward = wrapped
    for name in kept:
        getattr(module, name).data = torch.empty(0)
    module.__class__ = type("Sharded" + type(module).__name__, (type(module),), {})


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
recorded(model)
x = torch.ones(2, 4)
print(model(x).tolist())
for module in model:
    shard(module)
print(model, model(x).tolist(), [parameter.numel() for parameter in model.parameters()])
model[0].forward = functools.partial(torch.mul, 2)
model[1].forward = lambda x: x.relu_()
print(model(x).tolist(), model(x).tolist())
model.forward = lambda x: {"logits": super(torch.nn.Sequential, model).__repr__()[:10], "x": x}
print(model(x))
