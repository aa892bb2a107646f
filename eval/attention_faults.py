"""The kinds of faults between the projections of an attention."""

from __future__ import annotations

import torch
from faults import Fault, Setup
from patches import replace_function
from planting import on_attention


def permuted_axes(setup: Setup) -> Fault:
    """Heads and positions are not swapped back after attention."""

    def change(core, query, key, value, mask, scaling, _size):
        out = core(query, key, value, mask, scaling)
        return out.transpose(1, 2).reshape(out.shape)

    return on_attention(setup, {"permuted-axes", "transposed", "heads-order"}, change)


def heads_tiled(setup: Setup) -> Fault:
    """Key heads are repeated as a whole and not one by one."""
    groups = setup.shape.heads // setup.shape.key_heads

    def change(core, query, key, value, mask, scaling, _size):
        batch, heads, length, size = query.shape
        regrouped = query.view(batch, groups, heads // groups, length, size).transpose(1, 2).reshape(query.shape)
        out = core(regrouped, key, value, mask, scaling)
        back = out.view(batch, length, heads // groups, groups, size).transpose(2, 3)
        return back.reshape(out.shape)

    return on_attention(setup, {"heads-order"}, change)


def rope_pairing(setup: Setup) -> Fault:
    """Neighbours are turned and not halves."""

    def neighbours(x):
        return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)

    def plant(model, _size, clock):
        def function(original, q, k, cos, sin, **kwargs):
            if not setup.active(clock):
                return original(q, k, cos, sin, **kwargs)
            half = cos.shape[-1] // 2
            cos, sin = (each[..., :half].repeat_interleave(2, -1).unsqueeze(1) for each in (cos, sin))
            return q * cos + neighbours(q) * sin, k * cos + neighbours(k) * sin

        replace_function(setup.shape, setup.module(model, setup.attention), "apply_rotary_pos_emb", function)

    place = (setup.name(setup.shape.names.output_projection), "input")
    return Fault({"root." + setup.name(setup.attention)}, {"rope-pairing"}, place, plant)


def query_position(setup: Setup) -> Fault:
    """The queries of one layer are one position further than the keys."""

    def plant(model, _size, clock):
        rotary = model.model.rotary_emb

        def function(original, q, k, cos, sin, **kwargs):
            if not setup.active(clock):
                return original(q, k, cos, sin, **kwargs)
            step = rotary.inv_freq.repeat(2)
            angle = torch.atan2(sin.float(), cos.float()) + step
            turned = original(q, k, angle.cos().to(cos.dtype), angle.sin().to(sin.dtype), **kwargs)[0]
            return turned, original(q, k, cos, sin, **kwargs)[1]

        replace_function(setup.shape, setup.module(model, setup.attention), "apply_rotary_pos_emb", function)

    place = (setup.name(setup.shape.names.output_projection), "input")
    return Fault({"root." + setup.name(setup.attention)}, {"position"}, place, plant)


def attention_scale(setup: Setup) -> Fault:
    """The scores are not divided by the root of the head's size, or twice."""
    power = setup.rng.choice((0.0, 2.0))

    def change(core, query, key, value, mask, scaling, _size):
        return core(query, key, value, mask, scaling**power)

    return on_attention(setup, {"scale", "missing-factor"}, change)


def attention_temperature(setup: Setup) -> Fault:
    """The scores are a little too large."""

    def change(core, query, key, value, mask, scaling, size):
        return core(query, key, value, mask, scaling * (1 + size))

    return on_attention(setup, {"scale", "missing-factor"}, change, sizes=(1e-6, 10.0))


def _through_mask(core, query, key, value, scaling, allowed):
    """`allowed(queries, keys)` of positions says who sees whom."""
    length = key.shape[-2]
    queries, keys = torch.arange(length - query.shape[-2], length)[:, None], torch.arange(length)[None]
    seen = allowed(queries, keys).expand(query.shape[-2], length)
    mask = torch.zeros(seen.shape, dtype=query.dtype).masked_fill(~seen, torch.finfo(query.dtype).min)
    return core(query, key, value, mask[None, None], scaling)


def mask_missing(setup: Setup) -> Fault:
    """Every position sees all others, one more, or only its nearest."""
    variants = {
        "none": lambda queries, keys: keys >= 0,
        "one more": lambda queries, keys: keys <= queries + 1,
        "window": lambda queries, keys: (keys <= queries) & (keys > queries - 3),
    }
    allowed = variants[setup.rng.choice(("none", "one more", "window"))]

    def change(core, query, key, value, mask, scaling, _size):
        return _through_mask(core, query, key, value, scaling, allowed)

    return on_attention(setup, {"masked-region"}, change)


def padding_seen(setup: Setup) -> Fault:
    """The keys of padding are not masked."""

    def change(core, query, key, value, mask, scaling, _size):
        return _through_mask(core, query, key, value, scaling, lambda queries, keys: keys <= queries)

    return on_attention(setup, {"masked-region"}, change)


def stale_cache(setup: Setup) -> Fault:
    """The newest keys and values have not arrived: those of the position before, or nothing, stand there."""
    zero = setup.rng.random() < 0.5
    slot = -1 if setup.rng.random() < 0.7 else -3

    def change(core, query, key, value, mask, scaling, _size):
        key, value = key.clone(), value.clone()
        key[..., slot, :] = 0 if zero else key[..., slot - 1, :]
        value[..., slot, :] = 0 if zero else value[..., slot - 1, :]
        return core(query, key, value, mask, scaling)

    return on_attention(setup, {"stale-cache"}, change)


def one_head(setup: Setup) -> Fault:
    head, size = setup.rng.randrange(setup.shape.heads), setup.head_size
    how = setup.rng.choice(("scaled", "zero", "other"))

    def change(core, query, key, value, mask, scaling, amount):
        out = core(query, key, value, mask, scaling).clone()
        if how == "scaled":
            out[:, :, head] *= 1 + amount
        elif how == "zero":
            out[:, :, head] = 0
        else:
            out[:, :, head] = out[:, :, head - 1]
        return out

    part = lambda y: y[..., head * size : (head + 1) * size]
    # What else is true of it; nobody can tell a head that is missing from a shard of one head.
    also = {"scaled": {"scale"}, "zero": {"zero", "one-shard"}, "other": {"heads-order"}}[how]
    return on_attention(setup, {"one-head"} | also, change, part=part, sizes=(1e-7, 3.0) if how == "scaled" else None)
