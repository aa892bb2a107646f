"""LinearParallelOperation against torch in float64 on the inputs of all ranks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, numbers, to_fractal, whole
from mutants import mutants_of

ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, PURE = range(4)


def run(ranks, rank=0, outputs=None, fractal=(), **param):
    param = {"rank": rank, "rankSize": len(ranks), "rankRoot": 0, "backend": "lcoc", **param}
    given = golden.run("LinearParallelOperation", param, ranks[rank], outputs=outputs, ranks=ranks, fractal=fractal)
    return given[0] if len(given) == 1 else given


def made(size, rows=6, depth=32, columns=10, dtype="float16"):
    """x and weight of each rank, the weight as [n, k]."""
    return [
        [normal(rows, depth, dtype=dtype, seed=r), normal(columns, depth, dtype=dtype, seed=99 + r)]
        for r in range(size)
    ]


def exact(ranks):
    return [x.double() @ weight.double().T for x, weight, *_ in ranks]


def narrow(ranks):
    """What each rank sends: its product in the type of x."""
    return [(x.float() @ weight.float().T).to(x.dtype) for x, weight, *_ in ranks]


def summed(parts):
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("backend", ["hccl", "lccl", "lcoc", "mc2"])
def test_all_reduce(backend, residual, size, dtype):
    ranks = made(size, dtype=dtype)
    extra = normal(6, 10, dtype=dtype, seed=7, scale=5)
    if residual:
        ranks = [[*inputs, extra + r] for r, inputs in enumerate(ranks)]
    own = ranks[size - 1][2].double() if residual else 0
    # The first two backends know one type and ignore what is written there.
    kind = 2 if backend in ("hccl", "lccl") else ALL_REDUCE
    y = run(ranks, size - 1, backend=backend, type=kind, hasResidual=residual)
    assert_agrees(y, sum(exact(ranks)) + own)
    add = ranks[size - 1][2] if residual else torch.zeros(6, 10).to(FLOATS[dtype])
    assert_sound(y, summed(narrow(ranks)) + add)  # each rank rounds, and each sum
    single = sum(x.float() @ weight.float().T for x, weight, *_ in ranks)
    assert_sound(y, (single + add.float()).to(FLOATS[dtype]))  # rounded once
    assert_caught(y, summed([*narrow(ranks), narrow(ranks)[0]]) + add)  # one rank twice
    if size > 1:
        assert_caught(y, summed(narrow(ranks)[:-1]) + add)  # one rank missing
    if residual:
        assert_caught(y, summed(narrow(ranks)) + 2 * add)  # the residual twice
        assert_caught(y, summed(narrow(ranks)))  # no residual


@pytest.mark.parametrize("shape", [(6, 32), (1, 6, 32), (3, 2, 32)])
@pytest.mark.parametrize("residual", [False, True])
def test_reduce_scatter(residual, shape):
    ranks = [[normal(*shape, seed=r), normal(32, 10, seed=99 + r)] for r in range(3)]
    total = sum(x.double() @ weight.double() for x, weight in ranks)
    for rank in range(3):
        chunks = total.chunk(3, 1 if shape[0] == 1 else 0)
        extra = normal(*chunks[0].shape, seed=7)
        given = [[*inputs, extra] for inputs in ranks] if residual else ranks
        y = run(given, rank, type=REDUCE_SCATTER, transWeight=False, hasResidual=residual)
        oracle = chunks[rank] + (extra.double() if residual else 0)
        assert_agrees(y, oracle)
        assert_sound(y, oracle.float().half())
        other = chunks[(rank + 1) % 3] + (extra.double() if residual else 0)
        assert_caught(y, other.half())  # another rank's rows
        assert_caught(y, (ranks[rank][0].double() @ ranks[rank][1].double()).reshape(3, *oracle.shape)[rank].half())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("keep", [False, True])
def test_all_gather(keep, dtype):
    ranks = made(3, dtype=dtype)
    gathered = torch.cat([x for x, _ in ranks])
    outputs = run(ranks, 1, type=ALL_GATHER, keepIntermediate=keep)
    y = outputs[0] if keep else outputs
    assert_agrees(y, gathered.double() @ ranks[1][1].double().T)
    single = gathered.float() @ ranks[1][1].float().T
    assert_sound(y, single.to(FLOATS[dtype]))
    assert_caught(y, (gathered.float() @ ranks[0][1].float().T).to(FLOATS[dtype]))  # another rank's weight
    assert_caught(y, (gathered.flip(0).float() @ ranks[1][1].float().T).to(FLOATS[dtype]))  # another order
    assert_caught(y, torch.cat([single[6:12]] * 3).to(FLOATS[dtype]))  # only its own rows
    if keep:
        assert_agrees(outputs[1], gathered, tolerance=0)
        assert (outputs[1].bound(dtype) == 0).all()
    extra = normal(18, 10, dtype=dtype, seed=5)
    y = run([[*inputs, extra] for inputs in ranks], 1, type=ALL_GATHER, hasResidual=True)
    assert_agrees(y, gathered.double() @ ranks[1][1].double().T + extra.double())


def test_pure_linear_needs_no_other_rank():
    x, weight = made(1)[0]
    y = golden.run("LinearParallelOperation", {"backend": "lcoc", "type": PURE, "rankSize": 8}, [x, weight])[0]
    assert_agrees(y, x.double() @ weight.double().T)
    stored = to_fractal(weight, 16)
    y = run([[x, stored]], type="PURE_LINEAR", outputs=[("float16", (6, 10))])
    assert_agrees(y, x.double() @ weight.double().T)


def packed(scale):
    return numbers(scale).astype(np.float32).view(np.uint32).astype(np.int64)


@pytest.mark.parametrize("kind,count", [(0, 1), (1, 10)])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("pack", [False, True])
def test_weights_of_int8_are_made_real_first(pack, with_bias, kind, count):
    x, weight = normal(6, 32, dtype="bfloat16"), whole(-128, 128, 32, 10)
    bias = normal(count, seed=1, scale=5) if with_bias else None
    scale = normal(count, dtype="float32" if pack else "bfloat16", seed=2, scale=0.01)
    if pack:
        scale = scale.half().float()  # its low bits are zero
    inputs = [x, weight, bias, packed(scale) if pack else scale]
    y = run([inputs], type=PURE, quantType=kind, transWeight=False)
    shift = bias.float() if with_bias else 0
    real = ((weight.float() + shift) * scale.float()).bfloat16()
    assert_agrees(y, x.double() @ real.double())
    assert y.forms == {}
    assert_sound(y, (x.float() @ real.float()).bfloat16())
    assert_caught(y, (x.float() @ (weight.float() + shift)).bfloat16())  # no scale
    assert_caught(y, (x.float() @ ((weight.float() + shift) * scale.float().flip(0) * 1.02)).bfloat16())
    assert_caught(y, (x.float() @ ((weight.float() + shift + 1) * scale.float())).bfloat16())  # off by one step


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_groups_of_rows_share_a_scale(biased, turn):
    x, weight = normal(6, 40), whole(-128, 128, 40, 10)
    scale = normal(3, 10, seed=2, scale=0.01)  # of 16, 16 and 8 rows
    bias = normal(3, 10, seed=3, scale=4) if biased else None
    rows = torch.arange(40) // 16
    inputs = [x, weight.T.contiguous() if turn else weight, bias, scale]
    y = run([inputs], type=PURE, quantType="QUANT_TYPE_PER_GROUP", quantGroupSize=16, transWeight=turn)
    shift = bias[rows].float() if biased else 0
    real = ((weight.float() + shift) * scale[rows].float()).half()
    assert_agrees(y, x.double() @ real.double())
    assert_sound(y, (x.float() @ real.float()).half())
    for wrong in (torch.arange(40) % 3, (torch.arange(40) + 1) // 16 % 3, torch.zeros(40, dtype=int)):
        assert_caught(y, (x.float() @ ((weight.float() + shift) * scale[wrong].float())).half())  # another group


@pytest.mark.parametrize("kind,count", [(0, 1), (1, 10), (3, 10)])
@pytest.mark.parametrize("out", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [1, 3])
def test_products_of_int8(size, out, kind, count):
    code = 1 if out == "float16" else 27
    ranks, exacts, rounded = [], [], []
    for r in range(size):
        x, weight = whole(-128, 128, 6, 32, seed=r), whole(-128, 128, 10, 32, seed=50 + r)
        bias = whole(-999, 999, 10, dtype=torch.int32, seed=r)
        scale = normal(count, dtype="float32", seed=r, scale=0.01).half().float()
        rows = normal(6, dtype="float32", seed=9 + r).abs()
        residual = normal(6, 10, dtype=out, seed=r)
        inputs = [x, weight, bias, packed(scale) if out == "float16" and kind != 3 else scale, residual]
        ranks.append([*inputs, rows] if kind == 3 else inputs)
        value = (numbers(x) @ numbers(weight).T + numbers(bias)) * numbers(scale)
        value = value * (numbers(rows)[:, None] if kind == 3 else 1)
        exacts.append(value)
        rounded.append(torch.tensor(value).to(FLOATS[out]))
    y = run(ranks, size - 1, [(out, (6, 10))], quantType=kind, outDataType=code, hasResidual=True)
    residual = ranks[-1][4]
    assert_agrees(y, sum(exacts) + numbers(residual))
    assert_sound(y, summed(rounded) + residual)
    assert_sound(y, torch.tensor(sum(exacts) + numbers(residual)).to(FLOATS[out]))
    assert_caught(y, summed(rounded) * 1.05 + residual)
    assert_caught(y, summed(rounded))
    unbiased = [(numbers(r[0]) @ numbers(r[1]).T) * 0.01 for r in ranks]
    assert_caught(y, torch.tensor(sum(unbiased)).to(FLOATS[out]))


@mutants_of("LinearParallelOperation")
def wrong_linear_parallels(trial):
    ranks = [[*inputs, normal(6, 10, seed=7 + r, scale=5)] for r, inputs in enumerate(made(3))]
    parts, own, other = narrow(ranks), ranks[1][2], ranks[0][2]
    param = {"rank": 1, "rankSize": 3, "backend": "lcoc", "type": ALL_REDUCE, "hasResidual": True}
    (y,) = trial.run(param, ranks[1], ranks=ranks)
    trial.sound(y, summed(parts) + own)
    trial.caught("one rank missing", y, summed(parts[:2]) + own)
    trial.caught("one rank twice", y, summed([*parts, parts[0]]) + own)
    trial.caught("no residual", y, summed(parts))
    trial.caught("the residual of every rank", y, summed([*parts, *(inputs[2] for inputs in ranks)]))
    trial.caught("the residual of another rank", y, summed(parts) + other)
    trial.caught("the average in place of the sum", y, summed(parts) / 3 + own)
    plain = [inputs[:2] for inputs in ranks]
    (y,) = trial.run({**param, "type": REDUCE_SCATTER, "hasResidual": False}, plain[1], ranks=plain)
    trial.caught("the rows of another rank", y, summed(parts)[:2])
    (y,) = trial.run({**param, "type": ALL_GATHER, "hasResidual": False}, plain[1], ranks=plain)
    weight = ranks[1][1].float().T
    backwards = torch.cat([inputs[0] for inputs in ranks[::-1]])
    trial.caught("ranks gathered in another order", y, (backwards.float() @ weight).half())


def test_an_empty_bias_and_scales_with_low_bits():
    x, weight, scale = whole(-9, 9, 6, 32), whole(-9, 9, 10, 32), normal(10, dtype="float32")
    y = run([[x, weight, None, packed(scale)]], type=PURE, quantType=1, outDataType=1, outputs=[("float16", (6, 10))])
    assert list(y.forms) == ["scales in float32", "scales cut to 19 bits"]
    product = numbers(x) @ numbers(weight).T
    short = (scale.view(torch.int32) & ~0x1FFF).view(torch.float32)
    for each in (scale, short):
        assert_sound(y, torch.tensor(product * numbers(each)).half())
    assert np.allclose(y.forms["scales cut to 19 bits"], product * numbers(short), rtol=1e-13)
    half = normal(6, 32)
    y = run([[half, weight, None, packed(scale)]] * 2, quantType=1)
    for each in (scale, short):
        real = (weight.float() * each[:, None]).half().float()
        assert_sound(y, (2 * (half.float() @ real.T)).half())


X, W, W8 = normal(6, 32), normal(10, 32, seed=1), whole(-9, 9, 10, 32)


@pytest.mark.parametrize(
    "ranks,param,words",
    [
        ([[X, W]], {"rankSize": 2}, "Cannot find data on rank 1! LinearParallelOperation needs"),
        ([[X, W]], {"type": 4}, "type 4, whose groups of ranks .* not recorded: no golden"),
        ([[X, W]], {"type": 5}, "type 5, which has not been checked against a result .*: no golden"),
        ([[X, W]], {"type": "GMM_REDUCE_SCATTER_ALLTOALLVC"}, "type 6, which has not been checked"),
        ([[X, W]], {"type": -1}, "type -1, which"),
        ([[X, W]], {"backend": "other"}, "backend other: no golden"),
        ([[X, W]], {"backend": "hccl", "quantType": 0}, "backend hccl: no golden"),
        ([[X, W], [X, normal(9, 32)]], {}, "shape \\[6, 10\\] on rank 0 and \\[6, 9\\] on rank 1"),
        ([[X, W], [normal(6, 31), W]], {}, "whose rows have 31 numbers"),
        ([[X, W], [X[:5], W]], {"type": 2}, "has the shape \\[6, 32\\] on rank 0"),
        ([[X[:5], W]] * 2, {"type": 1}, "cannot be dealt out to 2 ranks"),
        ([[X, W]], {"hasResidual": True}, "residual\\) was not recorded"),
        ([[X, W, normal(5, 10)]], {"hasResidual": True}, "residual of shape \\[5, 10\\]"),
        ([[X, W, X]], {"hasResidual": True, "type": 3}, "PURE_LINEAR with a residual"),
        ([[X, W8]], {}, "weight of type int8"),
        ([[X, W, None, X[0]]], {"quantType": 0}, "weight of type float16"),
        ([[X, W8, None, normal(7)]], {"quantType": 1}, "scale has 7 elements"),
        ([[X, W8, normal(7), normal(10)]], {"quantType": 1}, "bias 7 for a weight of 32 x 10"),
        ([[X, W8, None, normal(2, 10)]], {"quantType": 2}, "quantGroupSize is 0"),
        ([[X, W8, None, normal(2, 10)]], {"quantType": 2, "quantGroupSize": 8}, "in 4 groups"),
        ([[X, W8, None, normal(10), normal(6)]], {"quantType": 3}, "PER_TOKEN with x of type float16"),
        ([[W8, W8, None, normal(2, 10)]], {"quantType": 2, "quantGroupSize": 16}, "PER_GROUP of a product of int8"),
        ([[W8, W8, None, normal(10), normal(6)]], {"quantType": 3}, "perTokenScale has 6 elements"),
    ],
)
def test_what_cannot_be_computed_says_so(ranks, param, words):
    with pytest.raises(Exception, match=words):
        run(ranks, **param)
