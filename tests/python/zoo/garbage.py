"""Models, activations and graphs go when the script lets go of them, not later."""

import gc
import sys
import weakref

import torch
from listen import recorded

gc.disable()


class Dying(torch.nn.Linear):
    def __del__(self):
        print("gone", self.in_features)


model = torch.nn.Sequential(Dying(2, 2), Dying(3, 3))
recorded(model[0])
x = torch.ones(1, 2)
y = model[0](x)
alive = [weakref.ref(each) for each in (x, y, model)]
print(sys.getrefcount(model), sys.getrefcount(model[0]), sys.getrefcount(x), sys.getrefcount(y))
for _ in range(3):
    made = Dying(4, 4)
    recorded(made)
    made(torch.ones(1, 4))
    del made
    print("next")
del x, y
print([each() is None for each in alive])
del model
print([each() is None for each in alive])
