"""The kinds of faults that are planted into models of torch. Each function makes one from what it is planted into."""

from __future__ import annotations

import dataclasses

import torch
from attention_faults import (
    attention_scale,
    attention_temperature,
    heads_tiled,
    mask_missing,
    one_head,
    padding_seen,
    permuted_axes,
    query_position,
    rope_pairing,
    stale_cache,
)
from faults import DENSE, FLOAT32, LLAMA_LIKE, Fault, Kind, Setup
from patches import alter_output, drop_residual, replace_forward
from planting import any_linear, any_operation, in_place_of, linear, names_of, on_output

SEVERAL = 6  # elements: fewer that are wrong could be anything

# Axes and orders


def transposed(setup: Setup) -> Fault:
    """A square weight is read the wrong way round."""
    part = setup.shape.names.output_projection
    change = lambda x, weight, bias, _size: linear(x, weight.t(), bias)
    return in_place_of(setup, part, {"transposed", "wrong-weights"}, change)


def heads_order(setup: Setup) -> Fault:
    """The heads of the queries come in another order: the elements of all heads one after the other."""
    heads, size = setup.shape.heads, setup.head_size
    change = lambda y, _size: y.view(*y.shape[:-1], heads, size).flip(-2).reshape(y.shape)
    if setup.rng.random() < 0.5:
        change = lambda y, _size: y.view(*y.shape[:-1], heads, size).transpose(-1, -2).reshape(y.shape)
    return on_output(setup, "self_attn.q_proj", {"heads-order", "permuted-axes", "transposed"}, change)


def fused_order(setup: Setup) -> Fault:
    """The parts of a fused projection come in another order."""
    part = setup.rng.choice(
        [name for name in setup.shape.names.linears if "qkv" in name or "gate_up" in name or "c_attn" in name]
    )
    if "gate_up" in part:
        order = lambda y: [*reversed(y.chunk(2, -1))]
    else:
        key = setup.shape.key_heads * setup.head_size
        sizes = [setup.shape.hidden, key, key]
        chosen = setup.rng.choice([(1, 2, 0), (0, 2, 1), (2, 0, 1)])
        order = lambda y: [y.split(sizes, -1)[index] for index in chosen]
    causes = {"fused-order"}
    if "gate_up" not in part and setup.shape.key_heads == setup.shape.heads:
        causes.add("heads-order")  # parts of one size are heads in another order, too
    return on_output(setup, part, causes, lambda y, _size: torch.cat(order(y), -1))


def gate_up_swapped(setup: Setup) -> Fault:
    """The activation is of the wrong half."""

    def plant(model, _size, clock):
        mlp = setup.module(model, "mlp")

        def forward(before, x):
            if not setup.active(clock):
                return before(x)
            gate, up = mlp.gate_proj(x), mlp.up_proj(x)
            return mlp.down_proj(gate * mlp.act_fn(up))

        replace_forward(mlp, forward)

    return Fault(
        {"root." + setup.name("mlp"), "root." + setup.name("mlp.act_fn")},
        {"fused-order", "wrong-input"},
        (setup.name("mlp.down_proj"), "input"),
        plant,
    )


def position(setup: Setup) -> Fault:
    """Positions of the whole model are off by one."""
    name = "transformer.wpe" if setup.shape.family == "gpt2" else "model.rotary_emb"

    def plant(model, _size, clock):
        def forward(before, *args, **kwargs):
            if setup.active(clock):
                args = tuple(each if each.is_floating_point() else each + 1 for each in args)
                kwargs = {key: each + 1 if key == "position_ids" else each for key, each in kwargs.items()}
            return before(*args, **kwargs)

        replace_forward(model.get_submodule(name), forward)

    return Fault({"root." + name}, {"position"}, (name, "output"), plant)


def rope_base(setup: Setup) -> Fault:
    """The base of the frequencies is another one: what a configuration that was not read makes of it."""
    name = "model.rotary_emb"

    def plant(model, size, clock):
        module = model.get_submodule(name)
        usual = module.inv_freq
        wrong = usual * (1 + size) ** -torch.linspace(0, 1, len(usual), dtype=usual.dtype)

        def forward(before, *args, **kwargs):
            module.inv_freq = wrong if setup.active(clock) else usual
            try:
                return before(*args, **kwargs)
            finally:
                module.inv_freq = usual

        replace_forward(module, forward)

    return Fault({"root." + name}, set(), (name, "output"), plant, sizes=(1e-6, 1e3))


def token_shift(setup: Setup) -> Fault:
    part = any_linear(setup)
    return on_output(setup, part, {"token-shift"}, lambda y, _size: y.roll(1, -2))


# Parts left out


def missing_residual(setup: Setup) -> Fault:
    which = setup.rng.randrange(2)

    def plant(model, _size, clock):
        layer = setup.module(model)
        before = layer.forward
        drop_residual(setup.shape, layer, which)
        without = layer.forward
        layer.forward = lambda *args, **kwargs: (without if setup.active(clock) else before)(*args, **kwargs)

    place = (setup.name(setup.shape.names.norms[1]), "input") if which == 0 else (setup.name(), "output")
    return Fault({"root." + setup.name()}, {"missing-residual"}, place, plant)


def missing_bias(setup: Setup) -> Fault:
    part = setup.rng.choice(setup.shape.names.linears[:3]) if setup.shape.family == "qwen2" else any_linear(setup)
    change = lambda x, weight, _bias, _size: linear(x, weight, None)
    return in_place_of(setup, part, {"missing-bias"}, change)


def missing_norm_bias(setup: Setup) -> Fault:
    part = setup.rng.choice(setup.shape.names.norms)

    def plant(model, _size, clock):
        module = setup.module(model, part)

        def forward(before, x):
            if not setup.active(clock):
                return before(x)
            return torch.nn.functional.layer_norm(x, x.shape[-1:], module.weight, None, module.eps)

        replace_forward(module, forward)

    return Fault(names_of(setup, part), {"missing-bias"}, (setup.name(part), "output"), plant)


def plus_one(setup: Setup) -> Fault:
    part = setup.rng.choice(setup.shape.names.norms)

    def plant(model, _size, clock):
        module = setup.module(model, part)

        def forward(before, x):
            if not setup.active(clock):
                return before(x)
            return (module._norm(x.float()) * module.weight.float()).type_as(x)

        replace_forward(module, forward)

    return Fault(names_of(setup, part), {"plus-one"}, (setup.name(part), "output"), plant)


def one_shard(setup: Setup) -> Fault:
    """The sum of a projection whose inputs are shared out lacks one process, or half of its outputs are missing."""
    rows = setup.rng.random() < 0.5
    part = (
        setup.rng.choice((setup.shape.names.output_projection, setup.shape.names.mlp_out))
        if rows
        else any_linear(setup)
    )

    def change(x, weight, bias, _size):
        weight = weight.clone()
        half = weight.shape[1 if rows else 0] // 2
        if rows:
            weight[:, half:] = 0
        else:
            weight[half:] = 0
        return linear(x, weight, bias)

    return in_place_of(setup, part, {"one-shard"}, change)


def embedding_scale(setup: Setup) -> Fault:
    def plant(model, _size, clock):
        module = model.model.embed_tokens
        alter_output(module, lambda y: y / module.scalar_embed_scale if setup.active(clock) else y)

    return Fault({"root.model.embed_tokens"}, {"scale", "missing-factor"}, ("model.embed_tokens", "output"), plant)


# Values


def scale(setup: Setup) -> Fault:
    part = any_operation(setup)
    return on_output(setup, part, {"scale"}, lambda y, size: y * (1 + size), sizes=(1e-7, 3.0))


def norm_epsilon(setup: Setup) -> Fault:
    part = setup.rng.choice(setup.shape.names.norms)

    def plant(model, size, clock):
        module = setup.module(model, part)
        name = "eps" if hasattr(module, "eps") else "variance_epsilon"

        def forward(before, x):
            usual = getattr(module, name)
            setattr(module, name, size if setup.active(clock) else usual)
            try:
                return before(x)
            finally:
                setattr(module, name, usual)

        replace_forward(module, forward)

    return Fault(names_of(setup, part), {"epsilon"}, (setup.name(part), "output"), plant, sizes=(1e-6, 1e3))


def epsilon_place(setup: Setup) -> Fault:
    """Epsilon is added to the root and not under it."""
    part = setup.rng.choice(setup.shape.names.norms)

    def plant(model, _size, clock):
        module = setup.module(model, part)

        def forward(before, x):
            if not setup.active(clock):
                return before(x)
            wide = x.float()
            root = wide.pow(2).mean(-1, keepdim=True).sqrt()
            return module.weight * (wide / (root + module.variance_epsilon)).to(x.dtype)

        replace_forward(module, forward)

    return Fault(names_of(setup, part), {"epsilon"}, (setup.name(part), "output"), plant)


def precision(setup: Setup) -> Fault:
    """What an operation returns was stored in a coarser type on its way."""
    part = any_linear(setup)
    coarse = torch.bfloat16 if setup.my_type == "fp32" else torch.float8_e4m3fn
    return on_output(setup, part, {"precision"}, lambda y, _size: y.to(coarse).to(y.dtype))


def coarse_weights(setup: Setup) -> Fault:
    """Weights in steps of `size` times the largest of their row, as a quantised checkpoint has them."""

    def change(x, weight, bias, size):
        step = weight.abs().amax(1, keepdim=True).float() * size
        return linear(x, ((weight / step).round() * step).to(weight.dtype), bias)

    return in_place_of(setup, any_linear(setup), {"wrong-weights", "precision"}, change, sizes=(1e-6, 1.0))


def accumulation(setup: Setup) -> Fault:
    """Partial sums are kept in bf16."""
    part = any_linear(setup)

    def change(x, weight, bias, _size):
        total = 0
        for begin in range(0, x.shape[-1], 8):
            some = torch.nn.functional.linear(x[..., begin : begin + 8].float(), weight[:, begin : begin + 8].float())
            total = (total + some).bfloat16().float()
        return total if bias is None else total + bias

    return in_place_of(setup, part, {"accumulation", "precision"}, change)


def activation(setup: Setup) -> Fault:
    variants = {
        "relu": torch.nn.functional.relu,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        "silu": torch.nn.functional.silu,
        "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    }
    variants.pop("gelu_tanh" if setup.shape.family == "gpt2" else "silu")
    function = variants[setup.rng.choice(sorted(variants))]
    part = setup.shape.names.activation

    def plant(model, _size, clock):
        replace_forward(setup.module(model, part), lambda before, x: function(x) if setup.active(clock) else before(x))

    return Fault(names_of(setup, part), {"activation"}, (setup.name(part), "output"), plant)


def saturation(setup: Setup) -> Fault:
    part = any_linear(setup)

    def change(y, size):
        largest = y.abs().flatten().float().topk(SEVERAL).values
        bound = float(min(largest[0] / (1 + size), largest[-1]))
        return y.clamp(-bound, bound)

    return on_output(setup, part, {"saturation"}, change, sizes=(1e-6, 20.0))


def overflow(setup: Setup) -> Fault:
    part = any_linear(setup)
    share = setup.rng.choice((1.2, 2.0, 10.0))

    def change(y, _size):
        factor = 65504 * share / float(y.abs().max())
        return ((y.float() * factor).half().float() / factor).to(y.dtype)

    return on_output(setup, part, {"overflow"}, change, discrete=True)


def flush_to_zero(setup: Setup) -> Fault:
    part = any_linear(setup)

    def change(y, size):
        smallest = -(-y.abs().flatten().float()).topk(SEVERAL).values
        bound = torch.maximum(size * y.float().pow(2).mean().sqrt(), smallest[-1])
        return torch.where(y.abs() < bound, 0, y)

    return on_output(setup, part, {"flush-to-zero"}, change, sizes=(1e-4, 2.0))


# One of many


def one_row(setup: Setup) -> Fault:
    """One position of one sequence; in a decoded round there is only one, so prompts are damaged."""
    part = any_operation(setup)
    row = setup.rng.randrange(setup.words.prompt.shape[1])
    generator_seed = setup.rng.randrange(2**31)

    def change(y, size):
        if y.shape[-2] == 1:
            return y
        y = y.clone()
        noise = torch.randn(y.shape[-1], generator=torch.Generator().manual_seed(generator_seed)).to(y.dtype)
        y[0, row] += size * y[0, row].float().pow(2).mean().sqrt() * noise
        return y

    return on_output(setup, part, {"one-row"}, change, part=lambda y: y[0, row], sizes=(1e-7, 3.0))


def one_channel(setup: Setup) -> Fault:
    part = any_operation(setup)
    column = setup.rng.randrange(setup.shape.hidden // 4)

    def change(y, size):
        y = y.clone()
        y[..., column] *= 1 + size
        return y

    return on_output(
        setup, part, {"one-channel", "channel-scale"}, change, part=lambda y: y[..., column], sizes=(1e-7, 3.0)
    )


def one_expert(setup: Setup) -> Fault:
    expert = setup.rng.randrange(4)
    how = setup.rng.choice(("scaled", "zero"))

    def plant(model, size, clock):
        experts = setup.module(model, "mlp.experts")
        weight = experts.down_proj.data
        wrong = weight.clone()
        wrong[expert] *= 1 + size if how == "scaled" else 0

        def forward(before, *args, **kwargs):
            experts.down_proj.data = wrong if setup.active(clock) else weight
            return before(*args, **kwargs)

        replace_forward(experts, forward)

    sizes = (1e-7, 3.0) if how == "scaled" else None
    return Fault(
        names_of(setup, "mlp.experts"), {"one-expert"}, (setup.name("mlp.experts"), "output"), plant, sizes=sizes
    )


def experts_swapped(setup: Setup) -> Fault:
    """Two experts have each other's weights."""

    def plant(model, _size, clock):
        experts = setup.module(model, "mlp.experts")

        def forward(before, x, index, weights):
            if setup.active(clock):
                index = torch.where(index < 2, 1 - index, index)
            return before(x, index, weights)

        replace_forward(experts, forward)

    causes = {"one-expert", "wrong-weights"}
    return Fault(names_of(setup, "mlp.experts"), causes, (setup.name("mlp.experts"), "output"), plant)


def router_choice(setup: Setup) -> Fault:
    """The second and the third best expert are taken."""

    def plant(model, _size, clock):
        gate = setup.module(model, "mlp.gate")

        def forward(before, x):
            if not setup.active(clock):
                return before(x)
            logits = torch.nn.functional.linear(x.reshape(-1, gate.hidden_dim), gate.weight)
            values, index = torch.topk(torch.softmax(logits.float(), -1), gate.top_k + 1, -1)
            values, index = values[:, 1:], index[:, 1:]
            return logits, values / values.sum(-1, keepdim=True), index

        replace_forward(gate, forward)

    return Fault(names_of(setup, "mlp.gate"), set(), (setup.name("mlp.gate"), "output"), plant, discrete=True)


def two_faults(setup: Setup) -> Fault:
    """A small one, and in a later layer one that stands out although its inputs are off already."""
    first_layer = setup.rng.randrange(setup.shape.layers - 1)
    second = dataclasses.replace(setup, layer=setup.rng.randrange(first_layer + 1, setup.shape.layers))
    first = dataclasses.replace(setup, layer=first_layer)
    small = on_output(first, any_linear(first), {"scale"}, lambda y, size: y * (1 + size), sizes=(1e-7, 3.0))
    large = on_output(second, any_linear(second), set(), lambda y, _size: y.roll(1, -1))

    def plant(model, size, clock):
        small.plant(model, size, clock)
        large.plant(model, size, clock)

    return dataclasses.replace(small, plant=plant, first=small, second=large)


def wrong_weights(setup: Setup) -> Fault:
    """An operation has the weights of the same one in another layer."""
    part = any_linear(setup)
    other = (setup.layer + 1) % setup.shape.layers

    def plant(model, _size, clock):
        own, foreign = setup.module(model, part), model.get_submodule(f"{setup.shape.names.layers}.{other}.{part}")
        replace_forward(own, lambda before, x: type(own).forward(foreign, x) if setup.active(clock) else before(x))

    return Fault(names_of(setup, part), {"wrong-weights"}, (setup.name(part), "output"), plant)


_GROUPED = {"heads": (8,), "key_heads": (2, 4), "hidden": (64, 96, 128)}
_SMALL_VALUES = {"embedding": (0.02,), "epsilon": (1e-5, 1e-4), "outliers": (0,)}

KINDS = {
    "transposed": Kind(transposed, DENSE),
    "permuted-axes": Kind(permuted_axes, prompt_only=True),
    "heads-tiled": Kind(heads_tiled, LLAMA_LIKE, shape=_GROUPED),
    "heads-order": Kind(heads_order, LLAMA_LIKE),
    "fused-order": Kind(fused_order, ("gpt2", "phi3")),
    "gate-up-swapped": Kind(gate_up_swapped, ("llama", "qwen2")),
    "rope-pairing": Kind(rope_pairing, LLAMA_LIKE),
    "query-position": Kind(query_position, LLAMA_LIKE),
    "position": Kind(position),
    "token-shift": Kind(token_shift, prompt_only=True),
    "missing-residual": Kind(missing_residual),
    "missing-bias": Kind(missing_bias, ("qwen2", "gpt2")),
    "missing-norm-bias": Kind(missing_norm_bias, ("gpt2",)),
    "plus-one": Kind(plus_one, ("gemma",)),
    "one-shard": Kind(one_shard, DENSE),
    "embedding-scale": Kind(embedding_scale, ("gemma",)),
    "scale": Kind(scale, noise_share=0.5),
    "attention-scale": Kind(attention_scale),
    "attention-temperature": Kind(attention_temperature, noise_share=0.5),
    "rope-base": Kind(rope_base, LLAMA_LIKE, noise_share=0.5),
    "coarse-weights": Kind(coarse_weights, noise_share=0.5),
    "epsilon": Kind(norm_epsilon, noise_share=0.5),
    "epsilon-place": Kind(epsilon_place, LLAMA_LIKE, FLOAT32, shape=_SMALL_VALUES),
    "precision": Kind(precision),
    "accumulation": Kind(accumulation, DENSE, FLOAT32),
    "activation": Kind(activation),
    "saturation": Kind(saturation, noise_share=0.5),
    "overflow": Kind(overflow, noise_share=0),
    "flush-to-zero": Kind(flush_to_zero, noise_share=0.5),
    "mask": Kind(mask_missing, prompt_only=True),
    "padding-seen": Kind(padding_seen, padded=True),
    "stale-cache": Kind(stale_cache, decode_only=True),
    "one-head": Kind(one_head, padded=None),
    "one-row": Kind(one_row, prompt_only=True, noise_share=0.5),
    "one-channel": Kind(one_channel, noise_share=0.5),
    "one-expert": Kind(one_expert, ("mixtral",)),
    "experts-swapped": Kind(experts_swapped, ("mixtral",)),
    "router-choice": Kind(router_choice, ("mixtral",), noise_share=0),
    "wrong-weights": Kind(wrong_weights),
    "two-faults": Kind(two_faults, noise_share=0),
}
