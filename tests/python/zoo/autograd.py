"""Double backward, anomaly detection, saved tensors, custom functions and in-place changes."""

import torch
from listen import recorded


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Squaring(torch.nn.Module):
    def forward(self, x):
        return Square.apply(x)


class InPlace(torch.nn.Module):
    def forward(self, x):
        return x.mul_(2)


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), Squaring(), InPlace(), torch.nn.ReLU(inplace=True))
recorded(model)
x = torch.randn(3, 4, requires_grad=True)
packed = []
with torch.autograd.graph.saved_tensors_hooks(lambda each: packed.append(tuple(each.shape)) or each, lambda each: each):
    y = model(x)
print(packed, y._version, x._version, y.grad_fn.name(), [type(each).__name__ for each, _ in y.grad_fn.next_functions])
(first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
first.sum().backward()
print(x.grad.tolist())
with torch.autograd.detect_anomaly(check_nan=False):
    model(x).sum().backward()
with torch.autograd.detect_anomaly():
    try:
        (model(x) * 0).sqrt().sum().backward()  # prints the call stack of what it was computed by
    except RuntimeError as error:
        print(error)
print(torch.autograd.gradcheck(model.double(), (x.detach().double().requires_grad_(),)), y.is_leaf, y.retains_grad)
leaf = torch.ones(1, 4)
try:
    InPlace()(leaf.requires_grad_())
except RuntimeError as error:
    print(error)
