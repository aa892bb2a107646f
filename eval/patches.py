"""Ways to make a module of a running model compute something else. None of them shows in what is recorded before it."""

from __future__ import annotations

import contextlib
import functools
from typing import Callable

import torch
from models import Shape, modeling


def replace_forward(module: torch.nn.Module, function: Callable) -> None:
    """`function` gets the forward that was there, and then the arguments of the call."""
    module.forward = functools.partial(function, module.forward)


def alter_output(module: torch.nn.Module, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Of a module that returns one tensor."""
    replace_forward(module, lambda forward, *args, **kwargs: change(forward(*args, **kwargs)))


@contextlib.contextmanager
def _attribute(holder: object, name: str, value: object):
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)


def replace_function(shape: Shape, module: torch.nn.Module, name: str, function: Callable) -> None:
    """While `module` runs, its file's function `name` is `function`, which gets the one that was there first."""
    file = modeling(shape)
    original = getattr(file, name)

    def forward(before, *args, **kwargs):
        with _attribute(file, name, functools.partial(function, original)):
            return before(*args, **kwargs)

    replace_forward(module, forward)


def alter_attention(shape: Shape, module: torch.nn.Module, change: Callable) -> None:
    """`change(core, query, key, value, mask, scaling)` in place of the attention between the projections, where
    `core` is the one that was there and heads are on axis 1; returns [batch, position, head, dimension]."""

    def function(original, owner, query, key, value, mask, scaling=None, dropout=0.0, **kwargs):
        def core(query, key, value, mask, scaling):
            return original(owner, query, key, value, mask, scaling=scaling, dropout=0.0, **kwargs)[0]

        return change(core, query, key, value, mask, scaling), None

    replace_function(shape, module, "eager_attention_forward", function)


def drop_residual(shape: Shape, layer: torch.nn.Module, which: int) -> None:
    """The layer written out once more, without the residual around attention (0) or around the rest (1)."""
    first, second = (getattr(layer, name) for name in shape.names.norms)
    attention = getattr(layer, shape.names.attention)

    def forward(_before, hidden_states, *args, **kwargs):
        residual = hidden_states
        if shape.family == "gpt2":
            out = attention(first(hidden_states), *args, **kwargs)[0]
        else:
            out = attention(*args, hidden_states=first(hidden_states), **kwargs)[0]
        hidden_states = out if which == 0 else residual + out
        residual = hidden_states
        out = layer.mlp(second(hidden_states))
        return out if which == 1 else residual + out

    replace_forward(layer, forward)
