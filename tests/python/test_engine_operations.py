"""Every operation of the embedded acceleration library against torch in double precision, in every type."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from ait_engine import EngineError, Operation
from engine_library import ait_engine

FLOATING = [torch.float32, torch.float16, torch.bfloat16]
# Half a unit in the last place of each type: the error of one rounding to nearest.
ROUNDOFF = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
SMALLEST = {torch.float32: 0.0, torch.float16: 2.0**-25, torch.bfloat16: 0.0}
# Sums of up to a few hundred fp32 products in vector lanes, exp of 1 or 2 ulp: far below this many roundings.
FP32_STEPS = 32


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(20240501)


def close(actual, exact, magnitude=None):
    """The result is the exact value computed in fp32 and rounded once; `magnitude` bounds the terms that were added."""
    assert actual.shape == exact.shape
    magnitude = exact.abs() if magnitude is None else magnitude
    bound = ROUNDOFF[actual.dtype] * 1.01 * exact.abs() + SMALLEST[actual.dtype] + FP32_STEPS * 2.0**-24 * magnitude
    error = (actual.double() - exact).abs()
    assert (error <= bound).all(), f"off by {(error / bound).max().item():.2f} times the bound"


def exactly(actual, expected):
    assert actual.dtype == expected.dtype
    assert torch.equal(actual, expected)


floating = pytest.mark.parametrize("dtype", FLOATING, ids=str)


@floating
@pytest.mark.parametrize("rows", [1, 3, 4, 9])
@pytest.mark.parametrize("bias", [False, True])
def test_linear(dtype, rows, bias):
    x, w, b = torch.randn(rows, 83).to(dtype), torch.randn(37, 83).to(dtype), torch.randn(37).to(dtype)
    exact = x.double() @ w.double().T
    magnitude = x.double().abs() @ w.double().abs().T
    if bias:
        exact, magnitude = exact + b.double(), magnitude + b.double().abs()
    close(Operation("LinearOperation", hasBias=bias)(x, w, *([b] if bias else [])), exact, magnitude)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_linear_transposed(transpose_a, transpose_b):
    x, w = torch.randn(5, 24), torch.randn(24, 7)
    linear = Operation("LinearOperation", hasBias=False, transposeA=transpose_a, transposeB=transpose_b)
    y = linear(x.T.contiguous() if transpose_a else x, w.T.contiguous() if transpose_b else w)
    close(y, x.double() @ w.double(), x.double().abs() @ w.double().abs())


def test_linear_batched():
    x, w = torch.randn(3, 4, 16), torch.randn(3, 6, 16)
    y = Operation("LinearOperation", hasBias=False)(x, w)
    close(y, torch.einsum("bmk,bnk->bmn", x.double(), w.double()), torch.full((3, 4, 6), 16.0))
    flat = Operation("LinearOperation", hasBias=False)(x, w[0])
    assert flat.shape == (3, 4, 6)


def test_linear_large_enough_for_several_blocks_and_threads():
    x, w = torch.randn(150, 1500), torch.randn(257, 1500)
    y = Operation("LinearOperation", hasBias=False)(x, w)
    close(y, x.double() @ w.double().T, x.double().abs() @ w.double().abs().T)


@pytest.mark.parametrize("out", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("per_token", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_int8(out, per_token, bias):
    x = torch.randint(-128, 128, (5, 77), dtype=torch.int8)
    w = torch.randint(-128, 128, (13, 77), dtype=torch.int8)
    b = torch.randint(-10000, 10000, (13,), dtype=torch.int32)
    scale, token_scale = torch.rand(13) * 1e-3, torch.rand(5)
    exact = (x.long() @ w.long().T).double()
    if bias:
        exact += b.double()
    exact *= scale.double()
    if per_token:
        exact *= token_scale.double()[:, None]
    code = 1 if out == torch.float16 else 27
    linear = Operation("LinearOperation", hasBias=bias, outDataType=code, quantMode=2 if per_token else 1)
    inputs = [x, w] + ([b] if bias else []) + [scale] + ([token_scale] if per_token else [])
    y = linear(*inputs)
    assert y.dtype == out
    close(y, exact)


def test_linear_int8_with_scales_in_64_bit_words():
    x = torch.randint(-128, 128, (2, 8), dtype=torch.int8)
    w = torch.randint(-128, 128, (3, 8), dtype=torch.int8)
    scale = torch.rand(3)
    words = torch.from_numpy(scale.numpy().view(np.uint32).astype(np.int64) | (0x5A << 40))
    y = Operation("LinearOperation", hasBias=False, outDataType=1)(x, w, words)
    close(y, (x.long() @ w.long().T).double() * scale.double())


def rms_norm(x, gamma, epsilon):
    x = x.double()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * gamma.double()


@floating
def test_rms_norm(dtype):
    x, gamma = torch.randn(7, 100).to(dtype), torch.randn(100).to(dtype)
    norm = Operation("RmsNormOperation", layerType=1, normParam={"epsilon": 1e-5})
    close(norm(x, gamma), rms_norm(x, gamma, 1e-5))
    gemma = Operation("RmsNormOperation", layerType=1, normParam={"epsilon": 1e-5, "modelType": 1})
    # 1 + gamma may cancel: its error is one of the terms, not of the result.
    close(gemma(x, gamma), rms_norm(x, 1 + gamma.double(), 1e-5), rms_norm(x, 1 + gamma.double().abs(), 1e-5).abs())


@floating
@pytest.mark.parametrize("bias", [False, True])
def test_rms_norm_with_residual(dtype, bias):
    x, residual, gamma, b = (torch.randn(*s).to(dtype) for s in [(5, 64), (5, 64), (64,), (64,)])
    total = x.double() + residual.double() + (b.double() if bias else 0)
    inputs = [x] + ([b] if bias else []) + [residual, gamma]
    magnitude = torch.full((5, 64), 60.0)
    y, s = Operation("RmsNormOperation", layerType=2, preNormParam={"hasBias": bias})(*inputs)
    close(y, rms_norm(total, gamma, 1e-5), magnitude)
    close(s, total, magnitude)
    post = Operation("RmsNormOperation", layerType=3, postNormParam={"hasBias": bias})(*inputs)
    exactly(post, y)


def test_rms_norm_quantised():
    x, gamma, beta = torch.randn(6, 64).half(), torch.randn(64).half(), torch.randn(64).half()
    exact = rms_norm(x, gamma, 1e-5) + beta.double()
    scale, offset = torch.tensor([0.03]).half(), torch.tensor([3], dtype=torch.int8)
    static = Operation("RmsNormOperation", layerType=1, normParam={"quantType": 2})
    q = static(x, gamma, beta, scale, offset)
    within_one(q, (exact / scale.double() + 3).round().clamp(-128, 127))
    dynamic = Operation("RmsNormOperation", layerType=1, normParam={"quantType": 2, "dynamicQuantType": 1})
    q, s = dynamic(x, gamma, beta)
    expected = exact.abs().amax(-1) / 127
    assert torch.allclose(s.double(), expected, rtol=1e-5)
    within_one(q, (exact / expected[:, None]).round())


def within_one(actual, expected):
    """Equal but for values that lie on the edge between two integers."""
    assert actual.dtype == torch.int8
    difference = (actual.double() - expected).abs()
    assert difference.max() <= 1
    assert (difference > 0).double().mean() < 0.01


@floating
def test_layer_norm(dtype):
    x, residual = torch.randn(4, 3, 50).to(dtype), torch.randn(4, 3, 50).to(dtype)
    gamma, beta = torch.randn(50).to(dtype), torch.randn(50).to(dtype)
    magnitude = torch.full((4, 3, 50), 60.0)
    norm = Operation("LayerNormOperation", layerType=1, normParam={"epsilon": 1e-5, "beginNormAxis": 2})
    exact = F.layer_norm(x.double(), (50,), gamma.double(), beta.double(), 1e-5)
    close(norm(x, gamma, beta), exact, magnitude)
    zoomed = x.double() + 0.5 * residual.double()
    pre = Operation("LayerNormOperation", layerType=2, preNormParam={"zoomScaleValue": 0.5})
    y, s = pre(x, residual, gamma, beta)
    close(y, F.layer_norm(zoomed, (50,), gamma.double(), beta.double(), 1e-5), magnitude)
    close(s, zoomed, magnitude)
    post = Operation("LayerNormOperation", layerType=3, postNormParam={"zoomScaleValue": 0.5})
    exactly(post(x, residual, gamma, beta), y)


@floating
@pytest.mark.parametrize("coefficient", [2, 4, 16])
def test_rope(dtype, coefficient):
    tokens, heads, kv_heads, size = 5, 4, 2, 16
    q, k = torch.randn(tokens, heads * size).to(dtype), torch.randn(tokens, kv_heads * size).to(dtype)
    angle = torch.rand(tokens, size)
    cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)

    def rotated(x, count):
        x = x.double().reshape(tokens, count, coefficient // 2, 2, size // coefficient)
        return torch.stack((-x[..., 1, :], x[..., 0, :]), -2).reshape(tokens, count, size)

    def exact(x, count):
        plain = x.double().reshape(tokens, count, size)
        return (plain * cos.double()[:, None] + rotated(x, count) * sin.double()[:, None]).reshape(x.shape)

    rope = Operation("RopeOperation", rotaryCoeff=coefficient)
    a, b = rope(q, k, cos, sin, torch.tensor([tokens], dtype=torch.int32))
    close(a, exact(q, heads), torch.full(q.shape, 4.0))
    close(b, exact(k, kv_heads), torch.full(k.shape, 4.0))


def attention(q, k, v, scale, mask):
    """One sequence: q [n, heads, d], k and v [m, kv heads, d]; double."""
    group = q.shape[1] // k.shape[1]
    k, v = (t.double().repeat_interleave(group, 1) for t in (k, v))
    scores = torch.einsum("nhd,mhd->hnm", q.double(), k) * scale + mask
    return torch.einsum("hnm,mhd->nhd", scores.softmax(-1), v)


# Scores are of the order of 1 and weights add up to 1: what is summed is at most the largest value.
ATTENTION_MAGNITUDE = 8.0


@floating
@pytest.mark.parametrize("mask_type", [0, 1, 7, 9])
def test_self_attention(dtype, mask_type):
    lengths, heads, kv_heads, size, window = [5, 1, 8], 4, 2, 24, 3
    tokens, longest = sum(lengths), max(lengths)
    q = torch.randn(tokens, heads, size).to(dtype)
    k, v = torch.randn(tokens, kv_heads, size).to(dtype), torch.randn(tokens, kv_heads, size).to(dtype)
    hidden = torch.ones(longest, longest).triu(1)
    # fp16 masks hold numbers to add, the others zeros and ones.
    mask = (hidden * (-10000 if dtype == torch.float16 else 1)).to(dtype)
    op = Operation(
        "SelfAttentionOperation",
        headNum=heads,
        kvHeadNum=kv_heads,
        qkScale=0.2,
        calcType=3,
        maskType=mask_type,
        **({"windowSize": window} if mask_type == 7 else {}),
    )
    inputs = [q, k, v] + ([mask] if mask_type in (1, 7) else []) + [torch.tensor(lengths, dtype=torch.int32)]
    out = op(*inputs)
    start = 0
    for length in lengths:
        rows = slice(start, start + length)
        visible = torch.zeros(length, length, dtype=torch.double)
        if mask_type != 0:
            visible.masked_fill_(torch.ones(length, length).triu(1).bool(), -torch.inf)
        if mask_type == 7:
            visible.masked_fill_(torch.ones(length, length).tril(-window).bool(), -torch.inf)
        exact = attention(q[rows], k[rows], v[rows], float(np.float32(0.2)), visible)
        close(out[rows], exact, torch.full(exact.shape, ATTENTION_MAGNITUDE))
        start += length


def test_self_attention_with_a_mask_for_each_sequence_and_a_query_scale():
    q, k, v = (torch.randn(8, 2, 16) for _ in range(3))
    mask = -10000.0 * (torch.rand(2, 4, 4) > 0.6)
    mask[:, :, 0] = 0
    op = Operation("SelfAttentionOperation", headNum=2, qScale=0.25, calcType=3, maskType=1)
    out = op(q, k, v, mask, torch.tensor([4, 4], dtype=torch.int32))
    for b in range(2):
        rows = slice(4 * b, 4 * b + 4)
        exact = attention(q[rows], k[rows], v[rows], 0.25, mask[b].double())
        close(out[rows], exact, torch.full(exact.shape, ATTENTION_MAGNITUDE))


@floating
def test_cache_and_paged_attention(dtype):
    heads, kv_heads, size, block, blocks = 6, 2, 16, 4, 9
    lengths = [7, 1, 9]
    k_cache, v_cache = (torch.randn(blocks, block, kv_heads, size).to(dtype) for _ in range(2))
    tables = torch.full((3, 3), -1, dtype=torch.int32)
    order = torch.randperm(blocks)[:6].tolist()
    for b, length in enumerate(lengths):
        for j in range(-(-length // block)):
            tables[b, j] = order.pop()
    tokens = sum(lengths)
    k, v = (torch.randn(tokens + 1, kv_heads, size).to(dtype) for _ in range(2))
    slots = [int(tables[b, i // block]) * block + i % block for b, n in enumerate(lengths) for i in range(n)]
    slots.append(-1)
    expected = [k_cache.clone(), v_cache.clone()]
    for i, slot in enumerate(slots[:-1]):
        for cache, rows in zip(expected, (k, v)):
            cache[slot // block, slot % block] = rows[i]
    cached = Operation("ReshapeAndCacheOperation")(k, v, k_cache, v_cache, torch.tensor(slots, dtype=torch.int32))
    exactly(cached[0], expected[0])
    exactly(cached[1], expected[1])
    q = torch.randn(3, heads, size).to(dtype)
    paged = Operation("PagedAttentionOperation", headNum=heads, kvHeadNum=kv_heads, qkScale=0.25)
    out = paged(q, *cached, tables, torch.tensor(lengths, dtype=torch.int32))
    start = 0
    for b, length in enumerate(lengths):
        rows = slice(start, start + length)
        exact = attention(q[b : b + 1], k[rows], v[rows], 0.25, 0)
        close(out[b : b + 1], exact, torch.full(exact.shape, ATTENTION_MAGNITUDE))
        start += length


def test_cache_in_place():
    cache = torch.zeros(2, 4, 1, 8)
    k = torch.randn(1, 1, 8)
    slots = torch.tensor([5], dtype=torch.int32)
    Operation("ReshapeAndCacheOperation")(k, k, cache, cache, slots, out=(cache, cache))
    exactly(cache[1, 1], k[0])


@floating
@pytest.mark.parametrize(
    ("param", "function"),
    [
        ({"activationType": 1}, torch.relu),
        ({"activationType": 2, "geluMode": 0}, lambda x: F.gelu(x, approximate="tanh")),
        ({"activationType": 2, "geluMode": 1}, F.gelu),
        ({"activationType": 3}, lambda x: x * torch.sigmoid(1.702 * x)),
        ({"activationType": 4}, F.silu),
        ({"activationType": 4, "scale": 1.5}, lambda x: x * torch.sigmoid(1.5 * x)),
        ({"activationType": 5}, lambda x: x.log()),
        ({"activationType": 6}, lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1]),
        ({"activationType": 8}, torch.sigmoid),
        ({"activationType": 9}, lambda x: x * torch.sigmoid(1.702 * x)),
    ],
    ids=["relu", "gelu tanh", "gelu", "fast gelu", "swish", "scaled swish", "log", "swiglu", "sigmoid", "faster gelu"],
)
def test_activation(dtype, param, function):
    x = (3 * torch.randn(5, 38)).to(dtype)
    if param["activationType"] == 5:
        x = x.abs() + 1
    exact = function(x.double())
    # 1 + tanh and 1 + erf cancel for negative x: what was summed is x itself.
    magnitude = x.double().abs()[..., : exact.shape[-1]] + exact.abs()
    close(Operation("ActivationOperation", **param)(x), exact, magnitude)


def test_swish_of_extreme_values():
    x = torch.tensor([-torch.inf, -1e30, -200.0, -89.0, 0.0, 89.0, 200.0, torch.inf, torch.nan])
    y = Operation("ActivationOperation", activationType=4)(x)
    expected = F.silu(x.double()).float()
    assert torch.equal(y.isnan(), expected.isnan())
    assert torch.allclose(y.nan_to_num(), expected.nan_to_num(), rtol=1e-5, atol=1e-30)


@floating
@pytest.mark.parametrize(
    ("kind", "function"),
    [(8, torch.add), (9, torch.mul), (10, torch.div), (15, torch.sub)],
    ids=["add", "mul", "div", "sub"],
)
@pytest.mark.parametrize("other", [(6, 5, 33), (33,), (5, 1)], ids=str)
def test_elewise_of_two(dtype, kind, function, other):
    x, y = torch.randn(6, 5, 33).to(dtype), torch.randn(*other).to(dtype)
    exact = function(x.double(), y.double())
    close(Operation("ElewiseOperation", elewiseType=kind)(x, y), exact)


@pytest.mark.parametrize(("kind", "function"), [(8, torch.add), (9, torch.mul), (15, torch.sub)])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_elewise_of_integers(kind, function, dtype):
    x, y = torch.randint(-1000, 1000, (7, 3), dtype=dtype), torch.randint(-1000, 1000, (3,), dtype=dtype)
    exactly(Operation("ElewiseOperation", elewiseType=kind)(x, y), function(x, y))


@pytest.mark.parametrize(
    ("kind", "function"),
    [(11, torch.logical_and), (12, torch.logical_or), (13, torch.lt), (14, torch.gt), (16, torch.eq)],
)
def test_elewise_predicates(kind, function):
    x, y = (torch.randint(0, 3, (50,), dtype=torch.int8) for _ in range(2))
    exactly(Operation("ElewiseOperation", elewiseType=kind)(x, y), function(x, y).to(torch.int8))
    if kind == 11:
        exactly(Operation("ElewiseOperation", elewiseType=7)(x), (x == 0).to(torch.int8))


@floating
@pytest.mark.parametrize(
    ("param", "function"),
    [
        ({"elewiseType": 2, "mulsParam": {"varAttr": 0.5}}, lambda x: 0.5 * x),
        ({"elewiseType": 3}, torch.cos),
        ({"elewiseType": 4}, torch.sin),
        ({"elewiseType": 5}, torch.neg),
        ({"elewiseType": 20}, torch.tanh),
    ],
    ids=["muls", "cos", "sin", "neg", "tanh"],
)
def test_elewise_of_one(dtype, param, function):
    x = torch.randn(9000).to(dtype)
    close(Operation("ElewiseOperation", **param)(x), function(x.double()), torch.ones(9000))


@pytest.mark.parametrize(
    ("code", "dtype"),
    [(0, torch.float32), (1, torch.float16), (27, torch.bfloat16), (3, torch.int32), (9, torch.int64)],
)
@pytest.mark.parametrize("source", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64], ids=str)
def test_elewise_cast(code, dtype, source):
    x = (50 * torch.randn(5000)).to(source)
    exactly(Operation("ElewiseOperation", elewiseType=1, outTensorType=code)(x), x.to(dtype))


def test_narrowing_agrees_with_torch_on_every_kind_of_value():
    special = torch.tensor(
        [0.0, -0.0, torch.inf, -torch.inf, torch.nan, 65504, 65519.9, 65520, 1e-8, 6e-8, 3e38, -1e-41]
    )
    x = torch.cat((special, torch.randn(4000) * 10.0 ** torch.randint(-9, 6, (4000,))))
    for code, dtype in ((1, torch.float16), (27, torch.bfloat16)):
        narrow = Operation("ElewiseOperation", elewiseType=1, outTensorType=code)
        for shift in range(3):  # other lanes of the vectors
            y = narrow(x[shift:].clone())
            expected = x[shift:].to(dtype)
            assert torch.equal(y.isnan(), expected.isnan())
            kept = ~expected.isnan()
            assert torch.equal(y[kept].view(torch.int16), expected[kept].view(torch.int16))


def test_elewise_quantisation():
    x = torch.randn(7, 40).half()
    q = Operation("ElewiseOperation", elewiseType=6, quantParam={"inputScale": 20.0, "inputOffset": 5})(x)
    within_one(q, (x.double() * 20 + 5).round().clamp(-128, 127))
    q, scale = Operation("ElewiseOperation", elewiseType=19)(torch.cat((x, torch.zeros(1, 40).half())))
    expected = x.double().abs().amax(-1) / 127
    assert torch.allclose(scale[:-1].double(), expected, rtol=1e-6)
    within_one(q[:-1], (x.double() / expected[:, None]).round())
    assert scale[-1] == 0 and (q[-1] == 0).all()
    channel, offset = (torch.rand(40) / 20 + 0.01).half(), torch.randint(-5, 5, (40,), dtype=torch.int8)
    q = Operation("ElewiseOperation", elewiseType=17)(x, channel, offset)
    within_one(q, (x.double() / channel.double() + offset.double()).round().clamp(-128, 127))
    back = Operation("ElewiseOperation", elewiseType=18)(q, channel, offset)
    close(back, (q.double() - offset.double()) * channel.double(), torch.full((7, 40), 10.0))


@floating
@pytest.mark.parametrize("axes", [[-1], [0], [1], [1, 2], [0, 1, 2]], ids=str)
def test_softmax(dtype, axes):
    x = (4 * torch.randn(3, 5, 19)).to(dtype)
    # Several axes count as one long one.
    joined = x.double().flatten(axes[0], axes[-1]) if len(axes) > 1 else x.double()
    exact = joined.softmax(axes[0]).reshape(x.shape)
    close(Operation("SoftmaxOperation", axes=axes)(x), exact)


@pytest.mark.parametrize("dtype", [*FLOATING, torch.int8, torch.int32, torch.int64], ids=str)
def test_moves_are_exact(dtype):
    x = torch.randint(-100, 100, (4, 6, 5)).to(dtype)
    indices = torch.tensor([[3, 0], [2, 2]])
    exactly(Operation("GatherOperation")(x, indices), x[indices])
    exactly(Operation("GatherOperation", axis=1)(x, indices.int()), x[:, indices])
    for dim in (0, 1, -1):
        exactly(Operation("ConcatOperation", concatDim=dim)(x, x), torch.cat((x, x), dim))
    for parts, dim in ((2, 0), (3, 1), (2, -2)):
        for piece, expected in zip(Operation("SplitOperation", splitDim=dim, splitNum=parts)(x), x.chunk(parts, dim)):
            exactly(piece, expected.contiguous())
    sizes = [1, 3, 2]
    for piece, expected in zip(
        Operation("SplitOperation", splitDim=1, splitNum=3, splitSizes=sizes)(x), x.split(sizes, 1)
    ):
        exactly(piece, expected.contiguous())
    for perm in ([0, 1, 2], [2, 0, 1], [1, 0, 2]):
        exactly(Operation("TransposeOperation", perm=perm)(x), x.permute(perm).contiguous())


def test_numpy_goes_in_and_out():
    x = np.arange(6, dtype=np.float16).reshape(2, 3)
    y = Operation("ElewiseOperation", elewiseType=8)(x, x)
    assert isinstance(y, np.ndarray) and y.dtype == np.float16
    np.testing.assert_array_equal(y, x + x)


def test_parameters_read_back_as_atb_writes_them():
    assert Operation("LinearOperation").param == {
        "enAccum": False,
        "hasBias": True,
        "matmulType": 0,
        "outDataType": -1,
        "quantMode": 0,
        "transposeA": False,
        "transposeB": True,
    }
    norm = Operation("RmsNormOperation", layerType=1, normParam={"epsilon": 1e-5})
    assert norm.param["normParam"]["epsilon"] == 9.999999747378752e-06


def test_every_type_has_an_operation():
    assert len(ait_engine.operation_types()) == 16


@pytest.mark.parametrize(
    ("type_name", "param", "words"),
    [
        ("NoSuchOperation", {}, "no operation type"),
        ("LinearOperation", {"hasbias": True}, 'no parameter "hasbias"'),
        ("LinearOperation", {"hasBias": 1}, "true or false"),
        ("LinearOperation", {"enAccum": True}, "not supported"),
        ("RmsNormOperation", {}, "layerType"),
        ("RmsNormOperation", {"layerType": 1, "normParam": {"eps": 1}}, 'no parameter "eps"'),
        ("SelfAttentionOperation", {"headNum": 3, "kvHeadNum": 2, "calcType": 3}, "multiple"),
        ("TransposeOperation", {"perm": [0, 0]}, "every dimension once"),
        ("RopeOperation", {"rotaryCoeff": 3}, "even"),
    ],
)
def test_bad_parameters_are_refused(type_name, param, words):
    with pytest.raises(EngineError, match=words):
        Operation(type_name, **param)


def test_bad_tensors_are_refused():
    x = torch.randn(2, 8)
    with pytest.raises(EngineError, match="takes 2 inputs, not 1"):
        Operation("LinearOperation", hasBias=False)(x)
    with pytest.raises(EngineError, match="do not fit together"):
        Operation("LinearOperation", hasBias=False)(x, torch.randn(3, 7))
    with pytest.raises(EngineError, match="cannot multiply"):
        Operation("LinearOperation", hasBias=False)(x, torch.randn(3, 8).half())
    with pytest.raises(EngineError, match="outside 0..1"):
        Operation("GatherOperation")(x, torch.tensor([2]))
    with pytest.raises(EngineError, match="slot 8"):
        cache = torch.zeros(2, 4, 1, 8)
        k = torch.randn(1, 1, 8)
        Operation("ReshapeAndCacheOperation")(k, k, cache, cache, torch.tensor([8], dtype=torch.int32))
    paged = Operation("PagedAttentionOperation", headNum=1)
    cache, q = torch.zeros(2, 4, 1, 8), torch.randn(1, 1, 8)
    with pytest.raises(EngineError, match="names no block"):
        paged(q, cache, cache, torch.tensor([[7]], dtype=torch.int32), torch.tensor([3], dtype=torch.int32))
    with pytest.raises(EngineError, match="exceeds its block table"):
        paged(q, cache, cache, torch.tensor([[1]], dtype=torch.int32), torch.tensor([5], dtype=torch.int32))
    attend = Operation("SelfAttentionOperation", headNum=1, calcType=3)
    with pytest.raises(EngineError, match="add up"):
        attend(torch.randn(3, 1, 8), torch.randn(3, 1, 8), torch.randn(3, 1, 8), torch.tensor([2], dtype=torch.int32))
    with pytest.raises(EngineError, match="communicator"):
        Operation("AllReduceOperation", rank=0, rankSize=1)(x)


def test_output_must_be_as_inferred():
    x = torch.randn(2, 3)
    with pytest.raises(EngineError, match="should be float"):
        Operation("ElewiseOperation", elewiseType=8)(x, x, out=torch.empty(3, 2))
