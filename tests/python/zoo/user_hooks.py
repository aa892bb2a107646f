"""Hooks of the script's own, of every kind, and the order in which they are called."""

import torch
from listen import recorded

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
recorded(model)
names = {id(module): name or "root" for name, module in model.named_modules()}
handles = []


def say(what):
    def hook(module, *rest):
        print(what, names[id(module)], len(rest), [type(each).__name__ for each in rest])

    return hook


for module in model.modules():
    handles += [
        module.register_forward_pre_hook(say("pre")),
        module.register_forward_pre_hook(say("pre with names"), with_kwargs=True, prepend=True),
        module.register_forward_hook(say("post"), always_call=True),
        module.register_forward_hook(say("post with names"), with_kwargs=True),
        module.register_full_backward_hook(say("backward")),
        module.register_full_backward_pre_hook(say("before backward")),
    ]
model[0].register_forward_pre_hook(lambda _, args: (args[0] + 1,))
model[2].register_forward_hook(lambda _, args, output: output * 2)
handles.append(torch.nn.modules.module.register_module_forward_pre_hook(say("global pre")))
handles.append(torch.nn.modules.module.register_module_forward_hook(say("global post"), always_call=True))
x = torch.ones(2, 4, requires_grad=True)
for _ in range(2):
    model(x).sum().backward()
    print(x.grad.tolist())
try:
    model(torch.ones(2, 3))
except RuntimeError as error:
    print(error)
print([handle.id for handle in handles], [len(module._forward_hooks) for module in model.modules()])
for handle in handles:
    handle.remove()
model(x).sum().backward()
print(x.grad.tolist())
