"""Replicas of a model, one for each thread, as DataParallel makes them."""

import threading

import torch
from listen import recorded


def replicate(module):
    replica = module._replicate_for_data_parallel()
    for name, child in module._modules.items():
        replica._modules[name] = replicate(child)
    for name, parameter in module._parameters.items():
        setattr(replica, name, None if parameter is None else parameter.detach() * 2)
    return replica


torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
recorded(model)
x = torch.ones(2, 4)
print(model(x).tolist())
results = {}
replicas = [replicate(model) for _ in range(3)]
threads = [threading.Thread(target=lambda i=i: results.update({i: replicas[i](x).tolist()})) for i in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results.items()), threading.active_count(), list(replicas[0].parameters()))
print(torch.nn.DataParallel(model)(x).tolist())
