"""Whatever can be asked of a model and of torch."""

import inspect

import torch
from listen import recorded


class Asking(torch.nn.Module):
    """A model that looks at itself."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.register_buffer("offset", torch.zeros(4))

    def forward(self, x, *, scale: float = 1.0):
        print("inside:", look(self), look(self.fc))
        return self.fc(x) * scale + self.offset


def look(module):
    return [
        sorted(vars(module)),
        len(dir(module)),
        [len(value) for key, value in sorted(vars(module).items()) if key.endswith("hooks")],
        "forward" in vars(module),
        type(module).__mro__,
        inspect.signature(module.forward),
        inspect.ismethod(module.forward),
        module.forward.__func__ is type(module).forward,
    ]


torch.manual_seed(0)
model = Asking()
recorded(model)
for _ in range(2):
    print(look(model), look(model.fc))
    print(model(torch.ones(2, 4), scale=2.0).tolist())
print(model, list(model.named_modules()), list(model.state_dict()), isinstance(model, Asking))
print(inspect.getsource(Asking.forward), inspect.getdoc(model))
Module = torch.nn.Module
print(inspect.getsource(Module.__call__), Module.__call__.__qualname__, Module.__call__ is Module._wrapped_call_impl)
print(inspect.getsource(Module._call_impl)[:60], inspect.signature(Module._call_impl), type(Module._call_impl))
print(model.__call__.__func__ is Module.__call__, model._call_impl.__func__ is Module._call_impl)
print([name for name, _ in inspect.getmembers(Module)], len(inspect.getmembers(model)))
module = torch.nn.modules.module
print([len(getattr(module, name)) for name in sorted(vars(module)) if name.startswith("_global")])
print(torch.utils.hooks.RemovableHandle.next_id)
