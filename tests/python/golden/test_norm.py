"""RmsNormOperation and LayerNormOperation against torch.nn.functional."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F
from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, numbers
from mutants import mutants_of

SHAPES = [(3, 16), (2, 5, 33), (1, 128), (4, 1, 2, 8)]


def rms(kind, key, inputs, outputs=None, **param):
    return golden.run("RmsNormOperation", {"layerType": kind, key: {"epsilon": 1e-6, **param}}, inputs, outputs=outputs)


def layer(kind, key, inputs, outputs=None, **param):
    return golden.run(
        "LayerNormOperation", {"layerType": kind, key: {"epsilon": 1e-5, **param}}, inputs, outputs=outputs
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rms_norm(shape, dtype):
    x, gamma = normal(*shape, dtype=dtype, scale=3), normal(shape[-1], dtype=dtype, seed=1)
    width = shape[-1:]
    (expected,) = rms(1, "normParam", [x, gamma])
    assert_agrees(expected, F.rms_norm(x.double(), width, gamma.double(), 1e-6))
    assert_sound(expected, F.rms_norm(x.float(), width, gamma.float(), 1e-6).to(x.dtype))
    (expected,) = rms(1, "normParam", [x, gamma], modelType=1)
    assert_agrees(expected, F.rms_norm(x.double(), width, 1 + gamma.double(), 1e-6))
    if dtype == "float16":
        (expected,) = rms(1, "normParam", [x, gamma], precisionMode=1)
        assert_sound(expected, F.rms_norm(x.float(), width, None, 1e-6).half() * gamma)


def test_rms_norm_gives_its_reciprocal_root():
    x, gamma = normal(2, 3, 4, 5, dtype="float32"), normal(4, 5, dtype="float32", seed=1)
    y, rstd = rms(1, "normParam", [x, gamma], rstd=True)
    assert_agrees(y, F.rms_norm(x.double(), (4, 5), gamma.double(), 1e-6))
    oracle = torch.rsqrt(x.double().pow(2).mean((-1, -2), keepdim=True) + 1e-6)
    assert_agrees(rstd, oracle)
    assert_sound(rstd, torch.rsqrt(x.pow(2).mean((-1, -2), keepdim=True) + 1e-6), "float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("bias", [False, True])
def test_rms_norm_of_a_sum(dtype, bias):
    x, res, b, gamma = (normal(*s, dtype=dtype, seed=i) for i, s in enumerate([(6, 32), (6, 32), (32,), (32,)]))
    inputs = [x, b, res, gamma] if bias else [x, res, gamma]
    total = x.double() + res.double() + (b.double() if bias else 0)
    single = x.float() + (b.float() if bias else 0) + res.float()
    y, s = rms(2, "preNormParam", inputs, hasBias=bias)
    assert_agrees(s, total)
    assert_agrees(y, F.rms_norm(total, (32,), gamma.double(), 1e-6))
    assert_sound(s, single.to(x.dtype))
    assert_sound(y, F.rms_norm(single, (32,), gamma.float(), 1e-6).to(x.dtype))
    (y,) = rms(3, "postNormParam", inputs, hasBias=bias)
    assert_agrees(y, F.rms_norm(total, (32,), gamma.double(), 1e-6))


def saturated(steps):
    return np.clip(np.rint(steps), -128, 127)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rms_norm_to_int8(dtype):
    x, res, gamma, beta = (normal(*s, dtype=dtype, seed=i) for i, s in enumerate([(6, 32), (6, 32), (32,), (32,)]))
    scale, offset = torch.tensor([0.03]).to(x.dtype), torch.tensor([4], dtype=torch.int8)

    def steps(values, with_beta=True):
        y = F.rms_norm(values, (32,), gamma.to(values.dtype), 1e-6) + (beta.to(values.dtype) if with_beta else 0)
        return numbers(y) / numbers(scale) + 4

    outputs = [("int8", (6, 32))]
    (q,) = rms(1, "normParam", [x, gamma, beta, scale, offset], outputs, quantType=2)
    assert_agrees(q, np.clip(steps(x.double()), -128, 127))
    assert_sound(q, saturated(steps(x.float())), "int8")
    assert_caught(q, saturated(steps(x.float(), False)), "int8")
    total = x.double() + res.double()
    q, s = rms(2, "preNormParam", [x, res, gamma, beta, scale, offset], [*outputs, (dtype, (6, 32))], quantType=2)
    assert_agrees(q, np.clip(steps(total), -128, 127))
    assert_agrees(s, total)
    q, y = rms(3, "postNormParam", [x, res, gamma, scale, offset], [*outputs, (dtype, (6, 32))], quantType=2)
    assert_agrees(q, np.clip(steps(total, False), -128, 127))
    assert_agrees(y, F.rms_norm(total, (32,), gamma.double(), 1e-6))

    normed = numbers(F.rms_norm(x.double(), (32,), gamma.double(), 1e-6) + beta.double())
    largest = np.abs(normed).max(-1)
    q, s = rms(1, "normParam", [x, gamma, beta], [*outputs, ("float32", (6,))], quantType=2, dynamicQuantType=1)
    assert_agrees(s, largest / 127)
    assert_agrees(q, normed / (largest / 127)[:, None])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-1, 1, 2])
def test_layer_norm(axis, dtype):
    x = normal(3, 4, 20, dtype=dtype, scale=2) + 5
    normed = x.shape[axis:] if axis > 0 else x.shape[-1:]
    gamma, beta = normal(*normed, dtype=dtype, seed=1), normal(*normed, dtype=dtype, seed=2)
    (expected,) = layer(1, "normParam", [x, gamma, beta], beginNormAxis=axis)
    assert_agrees(expected, F.layer_norm(x.double(), normed, gamma.double(), beta.double(), 1e-5))
    assert_sound(expected, F.layer_norm(x.float(), normed, gamma.float(), beta.float(), 1e-5).to(x.dtype))


def test_layer_norm_of_a_sum():
    x, res, gamma, beta = (normal(*s, seed=i) for i, s in enumerate([(6, 32), (6, 32), (32,), (32,)]))
    total = x.double() + 0.5 * res.double()
    oracle = F.layer_norm(total, (32,), gamma.double(), beta.double(), 1e-5)
    y, s = layer(2, "preNormParam", [x, res, gamma, beta], zoomScaleValue=0.5)
    assert_agrees(y, oracle)
    assert_agrees(s, total)
    (y,) = layer(3, "postNormParam", [x, res, gamma, beta], zoomScaleValue=0.5)
    assert_agrees(y, oracle)
    single = x.float() + 0.5 * res.float()
    assert_sound(y, F.layer_norm(single, (32,), gamma.float(), beta.float(), 1e-5).half())


def test_layer_norm_to_int8():
    x, res, gamma, beta = (normal(*s, seed=i) for i, s in enumerate([(6, 32), (6, 32), (32,), (32,)]))
    scale, offset = torch.tensor([30.0]).half(), torch.tensor([-2], dtype=torch.int8)
    half = F.layer_norm(x.float(), (32,), gamma.float(), beta.float(), 1e-5).half()
    (q,) = layer(1, "normParam", [x, gamma, beta, scale, offset], [("int8", (6, 32))], quantType=2)
    assert_sound(q, saturated(numbers(half * scale + offset.half())), "int8")
    assert_sound(q, saturated(numbers(half) * 30 - 2), "int8")
    assert_caught(q, saturated(numbers(half) / 30 - 2), "int8")  # divided in place of multiplied
    half = F.layer_norm(x.float() + res.float(), (32,), gamma.float(), beta.float(), 1e-5).half()
    for types in (("int8", "float16"), ("float16", "int8")):
        outputs = layer(
            3, "postNormParam", [x, res, gamma, beta, scale, offset], [(t, (6, 32)) for t in types], quantType=2
        )
        by_type = dict(zip(types, outputs))
        assert_sound(by_type["float16"], half, "float16")
        assert_sound(by_type["int8"], saturated(numbers(half) * 30 - 2), "int8")
    q, s = layer(1, "normParam", [x, gamma, beta], [("int8", (6, 32)), ("float32", (6,))], quantType=2)
    half = F.layer_norm(x.float(), (32,), gamma.float(), beta.float(), 1e-5).half().float()
    assert_sound(s, half.abs().amax(-1) / 127, "float32")
    assert_sound(q, torch.round(half / (half.abs().amax(-1, keepdim=True) / 127)), "int8")
    assert "inferred" in s.notes[0]


@mutants_of("RmsNormOperation")
def wrong_rms_norms(trial):
    x, gamma = normal(32, 256, scale=0.02), normal(256, seed=1)
    single, weight = x.float(), gamma.float()
    (y,) = trial.run({"layerType": 1, "normParam": {"epsilon": 1e-4}}, [x, gamma])
    mean = single.pow(2).mean(-1, keepdim=True)
    trial.sound(y, (single * torch.rsqrt(mean + 1e-4) * weight).half())
    trial.caught("epsilon outside of the root", y, (single / (mean.sqrt() + 1e-4) * weight).half())
    trial.caught("no epsilon", y, (single * torch.rsqrt(mean) * weight).half())
    trial.caught("no gamma", y, (single * torch.rsqrt(mean + 1e-4)).half())
    trial.caught("divided by one too few", y, (single * torch.rsqrt(mean * 256 / 255 + 1e-4) * weight).half())
    centred = single - single.mean(-1, keepdim=True)
    trial.caught("the mean taken off", y, (centred * torch.rsqrt(mean + 1e-4) * weight).half())
    narrow = sum(x[:, i : i + 1] ** 2 for i in range(256)).float() / 256
    trial.caught("squares added up in half", y, (single * torch.rsqrt(narrow + 1e-4) * weight).half())
    (y,) = trial.run({"layerType": 1, "normParam": {"epsilon": 1e-4, "modelType": 1}}, [x, gamma])
    trial.caught("gamma without the one of Gemma", y, (single * torch.rsqrt(mean + 1e-4) * weight).half())
    residual = normal(32, 256, seed=3, scale=0.02)
    y, s = trial.run({"layerType": 2, "preNormParam": {"epsilon": 1e-4}}, [x, residual, gamma])
    trial.caught("the residual missing", s, x)
    rounded = (x + residual).bfloat16().float()
    trial.caught("the sum rounded to bfloat16", y, F.rms_norm(rounded, (256,), weight, 1e-4).half())
    large = normal(32, 256, scale=10)
    (y,) = trial.run({"layerType": 1, "normParam": {"epsilon": 1e-5}}, [large, gamma])
    wrong = F.rms_norm(large.float(), (256,), weight, 1e-6).half()
    trial.missed("another epsilon, where both are nothing beside the squares", y, wrong)


@mutants_of("LayerNormOperation")
def wrong_layer_norms(trial):
    x, gamma, beta = normal(32, 256, scale=0.02), normal(256, seed=1), normal(256, seed=2)
    single, weight, shift = x.float(), gamma.float(), beta.float()
    (y,) = trial.run({"layerType": 1, "normParam": {"epsilon": 1e-5, "beginNormAxis": -1}}, [x, gamma, beta])
    centred = single - single.mean(-1, keepdim=True)
    root = torch.rsqrt(single.var(-1, keepdim=True, correction=0) + 1e-5)
    trial.sound(y, (centred * root * weight + shift).half())
    unbiased = torch.rsqrt(single.var(-1, keepdim=True) + 1e-5)
    trial.caught("divided by one too few", y, (centred * unbiased * weight + shift).half())
    trial.caught("the mean not taken off", y, (single * root * weight + shift).half())
    trial.caught("no beta", y, (centred * root * weight).half())
    outside = single.var(-1, keepdim=True, correction=0).sqrt() + 1e-5
    trial.caught("epsilon outside of the root", y, (centred / outside * weight + shift).half())
    trial.caught("gamma and beta swapped", y, (centred * root * shift + weight).half())


def test_infinities_and_nan_stay_in_their_rows():
    x, gamma = normal(4, 32, dtype="float32"), normal(32, dtype="float32", seed=1)
    x[1, 3], x[2, 5] = float("inf"), float("nan")
    (y,) = rms(1, "normParam", [x, gamma])
    (z,) = layer(1, "normParam", [x, gamma, gamma], beginNormAxis=-1)
    for expected, oracle in (
        (y, F.rms_norm(x.double(), (32,), gamma.double(), 1e-6)),
        (z, F.layer_norm(x.double(), (32,), gamma.double(), gamma.double(), 1e-5)),
    ):
        assert_agrees(expected, oracle)
        assert_sound(expected, oracle.float())
        assert np.isfinite(expected.bound("float32")[[0, 3]]).all()
    assert (y.bound("float32")[1][np.isfinite(y.values[1])] < 1e-30).all()


def test_what_cannot_be_computed_says_so():
    x = normal(2, 6)
    for kind, inputs, words in [
        (0, [x, normal(6)], "layerType 0"),
        (1, [x, normal(5)], "gamma has 5 elements"),
        (1, [x], "gamma"),
    ]:
        with pytest.raises(Exception, match=words):
            rms(kind, "normParam", inputs)
    with pytest.raises(Exception, match="quantType 1"):
        rms(1, "normParam", [x, normal(6)], quantType=1)
    with pytest.raises(Exception, match="no dimension"):
        layer(1, "normParam", [x, normal(6), normal(6)], beginNormAxis=7)
