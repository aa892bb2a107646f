"""Attention of one sequence: torch's own in float64, and a kernel as devices run it, sound or wrong in one way.

Queries are [rows, heads, size], keys and values [rows, key heads, size], a mask is what is added to the scores and
broadcasts to [heads, queries, keys].
"""

import numpy as np
import torch
import torch.nn.functional as F

INFINITY = float("inf")


def per_head(q, k, v, dtype):
    """[heads, rows, size] of each, keys and values once for each head of the queries."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.to(dtype).movedim(1, 0) for x in (q, k, v))
    return q, k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)


def exact(q, k, v, scale, mask=None):
    """torch.nn.functional.scaled_dot_product_attention in float64."""
    q, k, v = per_head(q, k, v, torch.float64)
    if mask is not None:
        mask = torch.as_tensor(mask, dtype=torch.float64).expand(q.shape[0], q.shape[1], k.shape[1])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale).movedim(0, 1)


def device(q, k, v, scale, mask=None, block=128, weights=None, out=None, wrong=None):
    """A kernel in float32 that takes some keys at a time, with a running maximum and weights in the type of the values.

    wrong: "sum" adds up in the type of the values, "maximum" does not subtract it.
    """
    weights, out = weights or v.dtype, out or q.dtype
    narrow = v.dtype if wrong == "sum" else torch.float32
    q, k, v = per_head(q, k, v, torch.float32)
    mask = torch.zeros(()) if mask is None else torch.as_tensor(mask, dtype=torch.float32)
    mask = mask.expand(q.shape[0], q.shape[1], k.shape[1])
    total = torch.zeros(*q.shape[:2], 1)
    largest = torch.full_like(total, -3e38)
    sums = torch.zeros(*q.shape[:2], v.shape[2], dtype=narrow)
    for first in range(0, k.shape[1], block):
        part = slice(first, first + block)
        scores = q @ k[:, part].transpose(1, 2) * scale + mask[:, :, part]
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        if wrong == "maximum":
            new = torch.zeros_like(new)
        e = torch.exp(scores - new)
        old = torch.exp(largest - new) if first else torch.zeros_like(new)
        total = total * old + e.sum(-1, keepdim=True)
        if wrong == "sum":
            sums = sums * old.to(narrow)
            for j in range(e.shape[2]):
                sums = sums + (e[:, :, j : j + 1].to(narrow) * v[:, first + j : first + j + 1].to(narrow))
        else:
            sums = sums * old + e.to(weights).float() @ v[:, part]
        largest = new
    return (sums.float() / total).to(out).movedim(0, 1)


def causal(queries, keys, first=0):
    """-inf for keys after each query, the first of which has this position."""
    return torch.full((queries, keys), -INFINITY).triu(1 + first)


def fractal(matrices, width=16):
    """[b, m, n] in FRACTAL_NZ: [b, n / width, m filled up to 16, width]."""
    b, m, n = matrices.shape
    padded = F.pad(matrices, (0, -n % width, 0, -m % 16))
    return padded.reshape(b, m + -m % 16, -1, width).transpose(1, 2).contiguous()


def blocks(rows, order, size=8, garbage=55.0):
    """Caches [blocks, size, …] of rows in shuffled blocks, and the table that finds them; it has room for one more."""
    count = sum(-(-len(own) // size) for own in rows)
    numbers = iter(np.random.default_rng(order).permutation(count + 3))
    cache = torch.full((count + 3, size, *rows[0].shape[1:]), garbage).to(rows[0].dtype)
    table = torch.full((len(rows), max(-(-len(own) // size) for own in rows) + 1), -1, dtype=torch.int32)
    for b, own in enumerate(rows):
        for i, first in enumerate(range(0, len(own), size)):
            part = own[first : first + size]
            table[b, i] = int(next(numbers))
            cache[table[b, i], : len(part)] = part
    return cache, table


def int32(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


__all__ = ["INFINITY", "blocks", "causal", "device", "exact", "fractal", "int32"]
