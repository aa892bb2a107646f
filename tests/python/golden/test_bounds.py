"""The bounds of sums: whatever order a sound kernel adds up in, it stays inside; one that adds up in a narrow type does
not.

docs/opcheck.md (Two verdicts) derives the bounds that are held against kernels here.
"""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden_oracle import FLOATS, assert_caught, golden, share

SINGLE = np.float32
LENGTHS = [1, 2, 3, 17, 64, 256, 1000, 4096, 16384]
ROWS = 8  # of x and of the weight


def one_by_one(terms_of, length, shape):
    """A single sum, to which every term is added in its turn."""
    total = np.zeros(shape, SINGLE)
    for k in range(length):
        total += terms_of(slice(k, k + 1))[..., 0]
    return total


def sixteen_at_a_time(terms_of, length, shape):
    """As a matrix unit: exact sums of 16 products, each added to a sum in float32."""
    total = np.zeros(shape, SINGLE)
    for k in range(0, length, 16):
        total += terms_of(slice(k, k + 16), np.float64).sum(-1).astype(SINGLE)
    return total


def sixteen_cut_off(terms_of, length, shape):
    """The same where the sum is not rounded, but what does not fit is cut off."""
    total = np.zeros(shape)
    for k in range(0, length, 16):
        exact = total + terms_of(slice(k, k + 16), np.float64).sum(-1)
        near = exact.astype(SINGLE)
        total = np.where(abs(near) > abs(exact), np.nextafter(near, SINGLE(0)), near).astype(float)
    return total


def in_lanes(terms_of, length, shape):
    """32 sums beside each other, joined two by two at the end."""
    lanes = np.zeros((*shape, 32), SINGLE)
    for k in range(0, length, 32):
        terms = terms_of(slice(k, k + 32))
        lanes[..., : terms.shape[-1]] += terms
    while lanes.shape[-1] > 1:
        lanes = lanes[..., ::2] + lanes[..., 1::2]
    return lanes[..., 0]


def in_four_parts(terms_of, length, shape):
    """Parts of the depth on several cores, added at the end."""
    edges = [length * i // 4 for i in range(5)]
    parts = [
        one_by_one(lambda s, first=first: terms_of(slice(s.start + first, s.stop + first)), last - first, shape)
        for first, last in zip(edges, edges[1:])
    ]
    return ((parts[3] + parts[2]) + parts[1]) + parts[0]


def backwards(terms_of, length, shape):
    return one_by_one(lambda s: terms_of(slice(length - s.stop, length - s.start)), length, shape)


ORDERS = [one_by_one, sixteen_at_a_time, sixteen_cut_off, in_lanes, in_four_parts, backwards]


def numbers_of(kind, length, seed):
    """x and weight, [ROWS, length] each."""
    random = np.random.default_rng(seed)
    x, weight = (random.standard_normal((ROWS, length)).astype(SINGLE) for _ in range(2))
    if kind == "positive":
        x, weight = abs(x), abs(weight)
    if kind == "few large ones":
        x[:, length // 3] *= 1000
        weight[:, length // 2] *= 100
    if kind == "all negative ones first":
        x, weight = np.sort(x, 1), abs(weight)
    if kind == "waves":
        x = abs(x)
        weight = np.cos(np.pi * np.arange(ROWS)[:, None] * np.arange(length) / length).astype(SINGLE)
    return x, weight


KINDS = ["at random", "positive", "few large ones", "all negative ones first", "waves"]


def products(x, weight):
    """[ROWS, ROWS, terms] of the terms of a product that are asked for."""
    return lambda part, kind=SINGLE: x[:, None, part].astype(kind) * weight[None, :, part].astype(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_products_in_every_order(length, kind):
    for seed in range(8 if length < 1000 else 1):
        x, weight = numbers_of(kind, length, seed)
        (y,) = golden.run("LinearOperation", {"hasBias": False}, [x, weight])
        for kernel in ORDERS:
            used = share(y, kernel(products(x, weight), length, (ROWS, ROWS)), "float32")
            # What every kernel that rounds leaves free is for the one of millions of sums that goes furthest.
            assert used < (0.7 if kernel is sixteen_cut_off else 0.4), kernel.__name__
        assert share(y, torch.from_numpy(x) @ torch.from_numpy(weight).T, "float32") < 0.4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("length", LENGTHS)
def test_narrow_inputs_with_sums_in_float32(length, dtype):
    for kind in KINDS:
        x, weight = (torch.from_numpy(each / 64).to(FLOATS[dtype]) for each in numbers_of(kind, length, 1))
        (y,) = golden.run("LinearOperation", {"hasBias": False}, [x, weight])
        terms_of = products(x.float().numpy(), weight.float().numpy())
        for kernel in ORDERS:
            result = torch.from_numpy(kernel(terms_of, length, (ROWS, ROWS)).astype(SINGLE)).to(x.dtype)
            assert share(y, result) <= 1, kernel.__name__


def summed_in(kind, x, weight, width):
    """`width` products at a time in float32, added up in a narrow type."""
    total = torch.zeros(ROWS, ROWS, dtype=kind)
    for k in range(0, x.shape[1], width):
        total = total + (x[:, k : k + width].float() @ weight[:, k : k + width].float().T).to(kind)
    return total


@pytest.mark.parametrize("width", [1, 16])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [64, 256, 1000, 4096])
def test_sums_in_a_narrow_type_are_caught(length, dtype, width):
    narrow = torch.float16 if dtype == "float32" else FLOATS[dtype]
    for kind in KINDS[:3]:
        x, weight = (torch.from_numpy(each).to(FLOATS[dtype]) for each in numbers_of(kind, length, 2))
        (y,) = golden.run("LinearOperation", {"hasBias": False}, [x, weight])
        assert_caught(y, summed_in(narrow, x, weight, width).to(x.dtype))


@pytest.mark.parametrize("length", [1, 17, 256, 4096])
def test_factors_of_ten_bits_are_caught(length):
    """Matrix units that take float32 and multiply shorter numbers (TF32, HF32)."""
    x, weight = numbers_of("at random", length, 3)
    (y,) = golden.run("LinearOperation", {"hasBias": False}, [x, weight])
    short = [(each.view(np.uint32) & np.uint32(0xFFFFE000)).view(SINGLE) for each in (x, weight)]
    assert_caught(y, short[0].astype(float) @ short[1].astype(float).T, "float32", by=4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_sums_and_running_sums(length, kind):
    x, weight = numbers_of(kind, length, 4)
    terms = x * weight
    terms_of = lambda part, kind=SINGLE: terms[:, part].astype(kind)
    (total,) = golden.run("ReduceOperation", {"reduceType": 3, "axis": [1]}, [terms])
    for kernel in ORDERS:
        if kernel is not sixteen_cut_off:  # no matrix unit
            assert share(total, kernel(terms_of, length, (ROWS,)), "float32") < 0.5, kernel.__name__
    (sums,) = golden.run("CumsumOperation", {"axes": [1]}, [terms])
    steps, running = np.zeros(ROWS, SINGLE), np.empty_like(terms)
    for k in range(length):
        steps = steps + terms[:, k]
        running[:, k] = steps
    assert share(sums, running, "float32") < 0.5
    if length >= 64:
        in_half = np.stack(list(itertools.accumulate(terms.T.astype(np.float16))), 1)
        assert_caught(total, in_half[:, -1], "float32", by=4)
        assert_caught(sums, in_half, "float32", by=4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_norms(length, kind):
    x, _ = numbers_of(kind, length, 5)
    gamma = np.ones(length, SINGLE)
    (rms,) = golden.run("RmsNormOperation", {"layerType": 1, "normParam": {"epsilon": 1e-6}}, [x, gamma])
    (layer,) = golden.run(
        "LayerNormOperation",
        {"layerType": 1, "normParam": {"epsilon": 1e-3, "beginNormAxis": -1}},
        [x, gamma, np.zeros(length, SINGLE)],
    )
    of = lambda values: lambda part, kind=SINGLE: values[:, part].astype(kind)
    for kernel in (one_by_one, in_lanes, in_four_parts, backwards):
        squares = kernel(of(x * x), length, (ROWS,))[:, None]
        root = SINGLE(1) / np.sqrt(squares / SINGLE(length) + SINGLE(1e-6))
        assert share(rms, x * root, "float32") < 0.5, kernel.__name__
        centred = x - kernel(of(x), length, (ROWS,))[:, None] / SINGLE(length)
        squares = kernel(of(centred * centred), length, (ROWS,))[:, None]
        root = SINGLE(1) / np.sqrt(squares / SINGLE(length) + SINGLE(1e-3))
        assert share(layer, centred * root, "float32") < 0.5, kernel.__name__
    if length >= 64 and kind != "few large ones":  # whose squares are infinite
        *_, squares = itertools.accumulate((x.astype(np.float16) ** 2).T)
        assert_caught(rms, x / np.sqrt(squares.astype(float)[:, None] / length + 1e-6), "float32", by=4)


@pytest.mark.parametrize("length", [1000, 16384])
def test_small_terms_that_are_lost_beside_a_large_one(length):
    x = np.full((1, length), 0.2, SINGLE)
    x[0, 0] = 2000  # as some channels of language models are; its square swallows those of all others
    (y,) = golden.run("RmsNormOperation", {"layerType": 1, "normParam": {}}, [x, np.ones(length, SINGLE)])
    squares = one_by_one(lambda part: (x * x)[:, part], length, (1,))
    assert squares == 2000**2
    assert share(y, x / np.sqrt(squares[:, None] / SINGLE(length) + SINGLE(1e-5)), "float32") < 1
    (sums,) = golden.run("CumsumOperation", {"axes": [1]}, [x * x])
    assert share(sums, np.full((1, length), squares[0]), "float32") <= 1
    assert_caught(sums, np.full((1, length), squares[0] + 32), "float32")
