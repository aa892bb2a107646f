"""functional_call, vmap, grad and ensembles: parameters are swapped around each call, and tensors are wrapped."""

import copy

import torch
from listen import recorded
from torch.func import functional_call, grad, jacrev, jvp, stack_module_state, vmap

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
recorded(model)
x = torch.randn(5, 4)
parameters = dict(model.named_parameters())
doubled = {name: value * 2 for name, value in parameters.items()}
print(functional_call(model, doubled, (x,)).tolist(), model(x).tolist())


def loss(values, sample):
    return functional_call(model, values, (sample,)).sum()


per_sample = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
print({name: value.shape for name, value in per_sample.items()}, per_sample["0.bias"].tolist())
print(vmap(model)(x).tolist(), jacrev(model)(x[0]).tolist(), jvp(model, (x,), (x,))[1].tolist())
models = [copy.deepcopy(model) for _ in range(3)]
stacked, buffers = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta")
print(vmap(lambda p, b, s: functional_call(base, (p, b), (s,)), in_dims=(0, 0, None))(stacked, buffers, x).tolist())
print(vmap(torch.nn.Dropout(0.5), randomness="different")(x).tolist())
