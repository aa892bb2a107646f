"""How the kinds of faults are planted: into what an operation returns, into its sum, into attention itself."""

from __future__ import annotations

import torch
from faults import Fault, Setup
from patches import alter_attention, alter_output, replace_forward


def names_of(setup: Setup, part: str) -> set[str]:
    """Of the operation; and of the modules around it that return the very same tensor."""
    names = {"root." + setup.name(part)}
    own = setup.shape.names
    is_gpt2 = setup.shape.family == "gpt2"
    if part == own.output_projection:
        names |= {"root." + setup.name(each) for each in (own.attention, "attn.resid_dropout")[: 1 + is_gpt2]}
    if part == own.mlp_out:
        names |= {"root." + setup.name(each) for each in ("mlp", "mlp.dropout")[: 1 + is_gpt2]}
    if part == "/lm_head":
        names.add("root")
    return names


def on_output(setup: Setup, operation: str, causes: set[str], change, **more) -> Fault:
    """`change(values, size)` is done to what an operation returns."""

    def plant(model, size, clock):
        alter_output(
            setup.module(model, operation), lambda y: change(y, size).to(y.dtype) if setup.active(clock) else y
        )

    return Fault(names_of(setup, operation), causes, (setup.name(operation), "output"), plant, **more)


def on_attention(setup: Setup, causes: set[str], change, **more) -> Fault:
    """`change(core, query, key, value, mask, scaling, size)` in place of the attention itself."""

    def plant(model, size, clock):
        def core(original, *arguments):
            return change(original, *arguments, size) if setup.active(clock) else original(*arguments)

        alter_attention(setup.shape, setup.module(model, setup.attention), core)

    place = (setup.name(setup.shape.names.output_projection), "input")
    return Fault({"root." + setup.name(setup.attention)}, causes, place, plant, **more)


def any_linear(setup: Setup) -> str:
    return setup.rng.choice(setup.shape.names.linears)


def any_operation(setup: Setup) -> str:
    """Any that returns one tensor with a row for each position."""
    own = setup.shape.names
    others = (*own.norms, "/" + own.final_norm, "/" + own.embedding, "/lm_head")
    return setup.rng.choice(others) if setup.rng.random() < 0.3 else any_linear(setup)


def _is_conv1d(setup: Setup) -> bool:
    return setup.shape.family == "gpt2"


def in_place_of(setup: Setup, part: str, causes: set[str], change, **more) -> Fault:
    """`change(x, weight, bias, size)` in place of a linear operation; weight is [outputs, inputs]."""

    def plant(model, size, clock):
        module = setup.module(model, part)

        def forward(before, x):
            if not setup.active(clock):
                return before(x)
            weight = module.weight.t() if _is_conv1d(setup) else module.weight
            return change(x, weight, module.bias, size).to(x.dtype)

        replace_forward(module, forward)

    return Fault(names_of(setup, part), causes, (setup.name(part), "output"), plant, **more)


def linear(x, weight, bias):
    return torch.nn.functional.linear(x, weight, bias)
