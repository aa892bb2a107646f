"""Norms of strided tensors, of heads and of gathered sums, against torch and transformers."""

import pytest

torch = pytest.importorskip("torch")
cohere = pytest.importorskip("transformers.models.cohere.modeling_cohere")
import torch.nn.functional as F
from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, whole
from mutants import mutants_of

I32 = torch.int32


def strided(kind, x, weights, strides, offset=0, **param):
    inputs = [x, *weights, torch.tensor(strides), torch.tensor([offset])]
    (expected,) = golden.run(
        f"{kind}NormWithStrideOperation", {"layerType": 1, "normParam": {"epsilon": 1e-4, **param}}, inputs
    )
    return expected


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "strides"), [((4, 6), (6, 1)), ((3, 2, 8), (8, 24, 1))])
def test_norms_of_strided_tensors(shape, strides, dtype):
    x, width = normal(*shape, dtype=dtype, scale=0.1), shape[-1]
    gamma, beta = normal(width, dtype=dtype, seed=1), normal(width, dtype=dtype, seed=2)
    look = x.as_strided(shape, strides)
    for kind, weights, function in [
        ("Rms", [gamma], lambda t, w, eps=1e-4: F.rms_norm(t, (width,), *w, eps)),
        ("Layer", [gamma, beta], lambda t, w, eps=1e-4: F.layer_norm(t, (width,), *w, eps)),
    ]:
        expected = strided(kind, x, weights, strides)
        assert_agrees(expected, function(look.double(), [w.double() for w in weights]))
        single = [w.float() for w in weights]
        dense = function(look.float(), single)
        assert_sound(expected, dense.to(x.dtype))
        assert_sound(expected, dense.contiguous().as_strided(shape, strides).to(x.dtype))  # as x lies
        assert bool(expected.forms) == (strides != x.stride())
        assert_caught(expected, function(look.float(), single, eps=1e-1).to(x.dtype))
        assert_caught(expected, function(look.float().flip(0), single).to(x.dtype))
        assert_caught(expected, function(look.float(), [w.flip(-1) for w in single]).to(x.dtype))
        if strides != x.stride():  # the strides not followed
            turned = function(x.float(), single).transpose(0, 1).contiguous().view(shape).roll(1, 0)
            assert_caught(expected, turned.to(x.dtype))


def test_the_modes_of_norms_of_strided_tensors():
    x, gamma = normal(4, 6), normal(6, seed=1)
    expected = strided("Rms", x, [gamma], (6, 1), modelType=1)
    assert_agrees(expected, F.rms_norm(x.double(), (6,), 1 + gamma.double(), 1e-4))
    expected = strided("Rms", x, [gamma], (6, 1), precisionMode=1)
    assert_sound(expected, F.rms_norm(x.float(), (6,), None, 1e-4).half() * gamma)
    x, gamma = normal(2, 3, 4), normal(3, 4, seed=1)
    expected = strided("Layer", x, [gamma, gamma], (12, 4, 1))
    assert_agrees(expected, F.layer_norm(x.double(), (3, 4), gamma.double(), gamma.double(), 1e-4))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "weight"), [((5, 3, 16), (3, 16)), ((5, 16), (16,)), ((2, 5, 3, 33), (3, 33)), ((4, 1, 7), (1, 7))]
)
def test_cohere_layer_norm(shape, weight, dtype):
    x, scale = normal(*shape, dtype=dtype) + 1, normal(*weight, dtype=dtype, seed=1)
    (expected,) = golden.run("CohereLayerNormOperation", {"epsilon": 1e-3}, [x, scale])

    def kernel(kind, x=x, scale=scale, epsilon=1e-3, correction=0):
        x, scale = x.to(kind), scale.to(kind)
        mean = x.mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(x.var(-1, keepdim=True, correction=correction) + epsilon) * scale

    assert_agrees(expected, kernel(torch.float64))
    layer = cohere.CohereLayerNorm(weight, eps=1e-3)
    layer.weight.data = scale.float()
    assert_sound(expected, layer(x.float()).detach().to(x.dtype))
    assert_sound(expected, kernel(torch.float32).to(x.dtype))
    if len(weight) == 2 and weight[0] > 1:
        assert_caught(expected, kernel(torch.float32, scale=scale.flip(0)).to(x.dtype))  # weights of other heads
    assert_caught(expected, kernel(torch.float32, correction=1).to(x.dtype))
    assert_caught(expected, kernel(torch.float32, epsilon=1e-1).to(x.dtype))
    assert_caught(expected, (x.float() * scale.float()).to(x.dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gather_pre_rms_norm(dtype):
    x, residual = normal(5, 32, dtype=dtype), normal(9, 32, dtype=dtype, seed=1)
    rows, gamma = whole(0, 9, 5, dtype=I32, seed=2), normal(1, 32, dtype=dtype, seed=3)
    outputs = [("float32", (5, 32)), (dtype, (5, 32))]
    y, s = golden.run("GatherPreRmsNormOperation", {"epsilon": 1e-3}, [x, residual, rows, gamma], outputs=outputs)

    def kernel(kind, rows=rows, epsilon=1e-3):
        total = x.to(kind) + residual.to(kind)[rows.long()]
        return F.rms_norm(total, (32,), gamma[0].to(kind), epsilon), total

    assert_agrees(y, kernel(torch.float64)[0])
    assert_agrees(s, kernel(torch.float64)[1])
    normed, total = kernel(torch.float32)
    assert_sound(y, normed)
    assert_sound(s, total.to(x.dtype))
    assert_caught(y, normed.to(x.dtype))  # rounded to the type of x
    assert_caught(y, kernel(torch.float32, epsilon=0)[0])
    assert_caught(s, kernel(torch.float32, rows=rows.roll(1))[1].to(x.dtype))
    assert_caught(s, x)  # nothing added
    assert_caught(y, F.rms_norm(total.to(x.dtype).float(), (32,), gamma[0].float(), 1e-3))  # of the rounded sum


def wrong_strided_norms(trial, weights, norm):
    x, strides = normal(3, 2, 8, scale=0.1), (8, 24, 1)
    look, single = x.as_strided(x.shape, strides).float(), [w.float() for w in weights]
    param = {"layerType": 1, "normParam": {"epsilon": 1e-4}}
    (y,) = trial.run(param, [x, *weights, torch.tensor(strides), torch.tensor([0])])
    trial.sound(y, norm(look, (8,), *single, 1e-4).half())
    trial.caught("another epsilon", y, norm(look, (8,), *single, 1e-3).half())
    trial.caught("no gamma", y, norm(look, (8,), *[torch.ones(8), *single[1:]], 1e-4).half())
    trial.caught("the strides not followed", y, norm(x.float(), (8,), *single, 1e-4).roll(1, 0).half())
    trial.caught("normed along another axis", y, norm(look.reshape(-1), (48,), eps=1e-4).view(3, 2, 8).half())


@mutants_of("RmsNormWithStrideOperation")
def wrong_strided_rms_norms(trial):
    wrong_strided_norms(trial, [normal(8, seed=1)], F.rms_norm)


@mutants_of("LayerNormWithStrideOperation")
def wrong_strided_layer_norms(trial):
    wrong_strided_norms(trial, [normal(8, seed=1), normal(8, seed=2)], F.layer_norm)


@mutants_of("CohereLayerNormOperation")
def wrong_cohere_layer_norms(trial):
    x, weight = normal(5, 3, 16) + 1, normal(3, 16, seed=1)
    (y,) = trial.run({"epsilon": 1e-3}, [x, weight])
    single, scale = x.float(), weight.float()
    centred = single - single.mean(-1, keepdim=True)
    variance = single.var(-1, keepdim=True, correction=0)
    trial.sound(y, (centred * torch.rsqrt(variance + 1e-3) * scale).half())
    trial.caught("weights of another head", y, (centred * torch.rsqrt(variance + 1e-3) * scale.flip(0)).half())
    unbiased = single.var(-1, keepdim=True)
    trial.caught("divided by one too few", y, (centred * torch.rsqrt(unbiased + 1e-3) * scale).half())
    trial.caught("the mean not taken off", y, (single * torch.rsqrt(variance + 1e-3) * scale).half())
    trial.caught("epsilon outside of the root", y, (centred / (variance.sqrt() + 1e-3) * scale).half())


@mutants_of("GatherPreRmsNormOperation")
def wrong_gather_pre_rms_norms(trial):
    x, residual, gamma = normal(5, 32), normal(9, 32, seed=1), normal(1, 32, seed=3)
    rows = torch.tensor([7, 0, 3, 3, 8], dtype=I32)
    outputs = [("float32", (5, 32)), ("float16", (5, 32))]
    y, s = trial.run({"epsilon": 1e-3}, [x, residual, rows, gamma], outputs=outputs)
    total = x.float() + residual.float()[rows.long()]
    norm = lambda values, epsilon=1e-3: F.rms_norm(values, (32,), gamma[0].float(), epsilon)
    trial.sound(y, norm(total))
    trial.sound(s, total.half())
    trial.caught("the result rounded to half", y, norm(total).half())
    trial.caught("no epsilon", y, norm(total, 0.0))
    trial.caught("the rounded sum normed", y, norm(total.half().float()))
    trial.caught("rows of the next token added", s, (x.float() + residual.float()[rows.roll(1).long()]).half())
    trial.caught("the residual missing", s, x)


def test_what_cannot_be_computed_says_so():
    x, gamma, offset = normal(4, 6), normal(6), torch.tensor([0])
    strides = torch.tensor([6, 1])
    rows = whole(0, 4, 4, dtype=I32)
    plain = {"layerType": 1, "normParam": {}}
    for name, param, inputs, words in [
        ("RmsNormWithStride", {"layerType": 2}, [x, gamma, strides, offset], "layerType 2 with quantType 0"),
        (
            "RmsNormWithStride",
            {"layerType": 1, "normParam": {"quantType": 2}},
            [x, gamma, strides, offset],
            "quantType 2",
        ),
        ("RmsNormWithStride", {"layerType": 1, "normParam": {"rstd": True}}, [x, gamma, strides, offset], "rstd"),
        ("RmsNormWithStride", plain, [x, gamma, strides[:1], offset], "has the strides"),
        ("RmsNormWithStride", plain, [x, gamma, strides, offset - 1], "leaves the 24 elements"),
        ("RmsNormWithStride", plain, [x, gamma, strides * (1 << 50), offset], "leaves the 24 elements"),
        ("RmsNormWithStride", plain, [x, normal(5), strides, offset], "gamma has 5 elements"),
        ("LayerNormWithStride", plain, [x, normal(5), gamma, strides, offset], "is not that of the last dimensions"),
        ("CohereLayerNorm", {}, [x, normal(5)], "weight of shape"),
        ("CohereLayerNorm", {}, [x, normal(1)], "weight of shape"),
        ("GatherPreRmsNorm", {}, [x, x, rows + 4, gamma], "which is not between 0 and 4"),
        ("GatherPreRmsNorm", {}, [x, x, rows[:3], gamma], "there are 3 indices for 4 rows"),
        ("GatherPreRmsNorm", {}, [x, normal(4, 5), rows, gamma], "are not as long as those of x"),
    ]:
        with pytest.raises(Exception, match=words):
            golden.run(name + "Operation", param, inputs)
