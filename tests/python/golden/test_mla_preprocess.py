"""MlaPreprocessOperation against the same chain of steps in torch: integers in int64, the rest in float64."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, numbers, to_fractal, whole
from mutants import mutants_of

HIDDEN, LATENT, ROPE, QUERY, PLAIN = 96, 32, 16, 64, 24
KV_CACHE, SPLIT, INT8_NZ, NZ = range(4)
EPSILON = 1e-5
SLOTS = [11, 0, -1, 5, 30]


def inputs_of(dtype="float16", heads=3, cache_mode=KV_CACHE, per_token=False, seed=0):
    """By name, in the library's order; weights as matrices, which inputs_in_order() stores as the library does."""
    tokens = len(SLOTS)
    kind = FLOATS[dtype]
    packed = dtype == "float16" and not per_token
    generator = torch.Generator().manual_seed(seed)

    def scales(count):
        return torch.rand(count, generator=generator) * 1e-3 + 1e-4

    def some(*shape, number, scale=1.0):
        return normal(*shape, dtype=dtype, seed=seed + number, scale=scale)

    down, up = LATENT + ROPE + QUERY, heads * (PLAIN + ROPE)
    theta = torch.rand(tokens, ROPE // 2, generator=generator) * 6
    angles = torch.cat([theta, theta], -1)
    latent = whole(-128, 128, 4, 8, 1, LATENT) if cache_mode == INT8_NZ else some(4, 8, 1, LATENT, number=7)
    inputs = {
        "input": some(tokens, HIDDEN, number=1),
        "gamma0": some(HIDDEN, number=2),
        "beta0": some(HIDDEN, number=3, scale=0.1),
        "quantScale0": torch.tensor([0.03]).to(kind),
        "quantOffset0": torch.tensor([-5], dtype=torch.int8),
        "wdqkv": whole(-100, 100, down, HIDDEN, seed=seed),
        "deScale0": scales(down),
        "bias0": whole(-900, 900, down, dtype=torch.int32, seed=seed + 1),
        "gamma1": some(QUERY, number=4),
        "beta1": some(QUERY, number=5, scale=0.1),
        "quantScale1": torch.tensor([-0.02]).to(kind),
        "quantOffset1": torch.tensor([9], dtype=torch.int8),
        "wuq": whole(-100, 100, up, QUERY, seed=seed + 2),
        "deScale1": scales(up),
        "bias1": whole(-900, 900, up, dtype=torch.int32, seed=seed + 3),
        "gamma2": some(LATENT, number=6),
        "cos": angles.cos().to(kind),
        "sin": angles.sin().to(kind),
        "wuk": some(heads, PLAIN, LATENT, number=8),
        "kvCache": some(4, 8, 1, LATENT + ROPE, number=9) if cache_mode == KV_CACHE else latent,
        "kvCacheRope": None if cache_mode == KV_CACHE else some(4, 8, 1, ROPE, number=10),
        "slotMapping": torch.tensor(SLOTS, dtype=torch.int32),
        "ctkvScale": torch.tensor([0.02]).to(kind) if cache_mode == INT8_NZ else None,
        "qNopeScale": some(1, heads, 1, number=11, scale=4.0) if cache_mode == INT8_NZ else None,
    }
    if packed:  # of which the unit that dequantises reads 19 bits
        for name in ("deScale0", "deScale1"):
            inputs[name] = (inputs[name].view(torch.int32) & ~0x1FFF).view(torch.float32)
    return inputs


def in_pieces(cache, dtype):
    """A cache of this type as FRACTAL_NZ: [blocks, pieces, rows, piece]."""
    width = 32 if dtype == torch.int8 else 16
    blocks, rows = cache.shape[:2]
    return cache.reshape(blocks, rows, -1, width).transpose(1, 2).contiguous()


def inputs_in_order(inputs, cache_mode, per_token=False):
    out = dict(inputs)
    for name in ("wdqkv", "wuq"):
        out[name] = to_fractal(inputs[name], 32)[0]  # callers leave the first dimension out
    if cache_mode in (INT8_NZ, NZ):
        for name in ("kvCache", "kvCacheRope"):
            out[name] = in_pieces(inputs[name], inputs[name].dtype)
    if inputs["input"].dtype == torch.float16 and not per_token:
        for name in ("deScale0", "deScale1"):
            out[name] = inputs[name].view(torch.int32).long()
    return list(out.values())


def run(inputs, cache_mode=KV_CACHE, per_token=False, **options):
    param = {"cacheMode": cache_mode, "quantMode": int(per_token), "epsilon": EPSILON}
    return golden.run(
        "MlaPreprocessOperation", param, inputs_in_order(inputs, cache_mode, per_token), fractal=(5, 12), **options
    )


def kernel(inputs, cache_mode=KV_CACHE, per_token=False, kind=torch.float64, **wrong):
    """The whole chain, with arithmetic in `kind`; what `wrong` names is done wrong."""
    g = {name: None if tensor is None else tensor.to(kind) for name, tensor in inputs.items()}
    dtype = inputs["input"].dtype
    epsilon = wrong.get("epsilon", EPSILON)

    def cast(x):
        return x.to(dtype).to(kind)

    def norm(x, gamma, beta=None):
        y = F.rms_norm(x, x.shape[-1:], gamma, epsilon)
        return y if beta is None or "beta" in wrong else y + beta

    def layer(x, number, weight):
        y = norm(x, g[f"gamma{number}"], g[f"beta{number}"])
        if per_token:
            y = y.half().to(kind)
            scale = y.abs().amax(-1, keepdim=True) / 127
            q, bias = torch.round(y / scale), 0
        else:
            offset = 0 if "offset" in wrong else g[f"quantOffset{number}"]
            q = torch.clamp(torch.round(y / g[f"quantScale{number}"] + offset), -128, 127)
            scale, bias = 1, 0 if "bias" in wrong else inputs[f"bias{number}"].double()
        product = q.double() @ inputs[weight].double().T + bias
        return cast(product.to(kind) * g[f"deScale{number}"] * scale)

    def turn(x):
        low, high = x.chunk(2, -1)
        angles = [g[name][:, None] if x.ndim == 3 else g[name] for name in ("cos", "sin")]
        sign = -1 if "sign" in wrong else 1
        return x * angles[0] + sign * torch.cat([-high, low], -1) * angles[1]

    down = layer(g["input"], 0, "wdqkv")
    latent, key, query = down.split([LATENT, ROPE, QUERY], -1)
    heads = inputs["wuk"].shape[0]
    up = layer(query, 1, "wuq").view(len(SLOTS), heads, PLAIN + ROPE)
    plain, rope = up.split([PLAIN, ROPE], -1)
    absorb = g["wuk"].roll(1, 0) if "heads" in wrong else g["wuk"]
    queries = torch.einsum("nhk,hkd->nhd", plain, absorb)
    latent = latent if "latent" in wrong else norm(latent, g["gamma2"])
    slots = inputs["slotMapping"].roll(wrong.get("late", 0))

    def cached(name, rows):
        cache = g[name].clone().reshape(-1, rows.shape[-1])
        cache[slots[slots >= 0].long()] = rows[slots >= 0]
        cache = cache.reshape(g[name].shape)
        return in_pieces(cache, inputs[name].dtype) if cache_mode in (INT8_NZ, NZ) else cache

    if cache_mode == KV_CACHE:
        return [torch.cat([queries, turn(rope)], -1), cached("kvCache", torch.cat([latent, turn(key)], -1))]
    if cache_mode == INT8_NZ:
        queries = torch.clamp(torch.round(cast(queries) * g["qNopeScale"]), -128, 127)
        latent = torch.clamp(torch.round((cast(latent) / g["ctkvScale"]).half().to(kind)), -128, 127)
    return [queries, cached("kvCache", latent), turn(rope), cached("kvCacheRope", turn(key))]


def written(expected, result):
    """What a golden of a part speaks of."""
    return numbers(result) if expected.places is None else numbers(result).reshape(-1)[expected.places]


def types(inputs, cache_mode):
    own = {torch.float16: "float16", torch.bfloat16: "bfloat16"}[inputs["input"].dtype]
    return ["int8", "int8", own, own] if cache_mode == INT8_NZ else [own] * 4


@pytest.mark.parametrize("cache_mode", range(4))
@pytest.mark.parametrize("per_token", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_agrees_with_torch(dtype, per_token, cache_mode):
    inputs = inputs_of(dtype, cache_mode=cache_mode, per_token=per_token)
    outputs = run(inputs, cache_mode, per_token)
    oracle = kernel(inputs, cache_mode, per_token)
    single = kernel(inputs, cache_mode, per_token, torch.float32)
    assert len(outputs) == len(oracle) == (2 if cache_mode == KV_CACHE else 4)
    for output, exact, found, kind in zip(outputs, oracle, single, types(inputs, cache_mode)):
        if kind == "int8":  # the golden is what is rounded to whole numbers
            assert (np.abs(output.values - written(output, exact)) <= 0.5 + 1e-9).all()
        else:
            assert_agrees(output, written(output, exact), 1e-11)
        rounded = found.to(inputs["input"].dtype) if kind != "int8" else found
        assert_sound(output, written(output, rounded), kind)
    assert [output.written_input for output in outputs] == (
        [None, 19] if cache_mode == KV_CACHE else [None, 19, None, 20]
    )
    assert golden.changed_inputs("MlaPreprocessOperation") == [19, 20]


@pytest.mark.parametrize("seed", range(1, 9))
def test_single_precision_is_sound(seed):
    for dtype, heads, per_token in (("float16", 1, False), ("bfloat16", 5, True)):
        inputs = inputs_of(dtype, heads, per_token=per_token, seed=100 * seed)
        for output, found in zip(
            run(inputs, per_token=per_token), kernel(inputs, per_token=per_token, kind=torch.float32)
        ):
            assert_sound(output, written(output, found.to(inputs["input"].dtype)), dtype)


def test_weights_in_rows_and_reference_loops_give_the_same():
    inputs = inputs_of("bfloat16")
    first = run(inputs)
    param = {"cacheMode": "KVCACHE", "quantMode": "PER_TENSOR_QUANT_ASYMM", "epsilon": EPSILON}
    for loops in (False, True):
        again = golden.run("MlaPreprocessOperation", param, list(inputs.values()), reference_loops=loops)
        for one, other in zip(first, again):
            assert np.allclose(one.values, other.values, rtol=1e-12, atol=1e-12)
            assert np.allclose(one.bound("bfloat16"), other.bound("bfloat16"), rtol=1e-6)


def test_an_epsilon_that_kernels_have_built_in_is_a_form():
    inputs = inputs_of("bfloat16")
    inputs["input"] = inputs["input"] / 256  # so that epsilon counts
    outputs = run(inputs)
    assert list(outputs[0].forms) == ["epsilon of the parameters", "epsilon 1e-6"]
    for output, found in zip(outputs, kernel(inputs, kind=torch.float32, epsilon=1e-6)):
        assert_sound(output, written(output, found.bfloat16()), "bfloat16")
    for output, found in zip(outputs, kernel(inputs, kind=torch.float32, epsilon=1e-4)):
        assert_caught(output, written(output, found.bfloat16()), "bfloat16")


def test_scales_that_are_cut_are_a_form():
    inputs = inputs_of("float16")
    for name in ("deScale0", "deScale1"):
        inputs[name] = inputs[name] * 1.0007
    outputs = run(inputs)
    assert len(outputs[0].forms) == 4
    cut = dict(inputs)
    for name in ("deScale0", "deScale1"):
        cut[name] = (inputs[name].view(torch.int32) & ~0x1FFF).view(torch.float32)
    for scales in (inputs, cut):
        for output, found in zip(outputs, kernel(scales, kind=torch.float32)):
            assert_sound(output, written(output, found.half()), "float16")


@mutants_of("MlaPreprocessOperation")
def wrong_kernels(trial):
    inputs = inputs_of("bfloat16")

    def expected(cache_mode, per_token=False):
        param = {"cacheMode": cache_mode, "quantMode": int(per_token), "epsilon": EPSILON}
        some = inputs_of("bfloat16", cache_mode=cache_mode)
        return some, trial.run(param, inputs_in_order(some, cache_mode), fractal=(5, 12))

    inputs, (queries, cache) = expected(KV_CACHE)
    sound = kernel(inputs, kind=torch.float32)
    trial.sound(queries, sound[0].bfloat16())
    for name, wrong in {
        "no beta": {"beta": True},
        "no bias": {"bias": True},
        "no offset": {"offset": True},
        "turned the other way": {"sign": True},
        "the matrices of other heads": {"heads": True},
    }.items():
        trial.caught(name, queries, kernel(inputs, kind=torch.float32, **wrong)[0].bfloat16())
    latent_first = torch.cat([sound[0][..., LATENT:], sound[0][..., :LATENT]], -1)
    trial.caught("rotated part first", queries, latent_first.bfloat16())
    for name, wrong in {"latent without a norm": {"latent": True}, "slots of other tokens": {"late": 1}}.items():
        trial.caught(name, cache, written(cache, kernel(inputs, kind=torch.float32, **wrong)[1].bfloat16()))
    inputs, outputs = expected(INT8_NZ)
    found = kernel(inputs, INT8_NZ, kind=torch.float32)
    trial.sound(outputs[0], found[0], "int8")
    trial.caught("queries cut off in place of rounded", outputs[0], torch.trunc(found[0] * 0.99), "int8")
    rows = kernel({**inputs, "ctkvScale": 1 / inputs["ctkvScale"]}, INT8_NZ, kind=torch.float32)[1]
    trial.caught("multiplied by the scale of the cache", outputs[1], written(outputs[1], rows), "int8")


def test_what_cannot_be_computed_says_so():
    def changed(**names):
        return {**inputs_of(), **names}

    half = torch.float16
    nan = inputs_of()["input"].clone()
    nan[0, 0] = float("nan")
    for inputs, param, words in [
        (inputs_of(), {"quantMode": 2}, "quantMode 2, which the library does not take: no golden"),
        (inputs_of(), {"quantMode": "UNQUANT"}, "quantMode 3"),
        (inputs_of(), {"qRotaryCoeff": 4}, "qRotaryCoeff 4"),
        (inputs_of(), {"kRotaryCoeff": 64}, "kRotaryCoeff 64"),
        (inputs_of(), {"transposeWuq": False}, "transposeWuq false"),
        (changed(input=inputs_of()["input"].float()), {}, "input of type float32"),
        (changed(input=nan), {}, "not finite"),
        (changed(gamma0=normal(5)), {}, "gamma0 has 5 elements, not 96"),
        (changed(beta1=normal(5)), {}, "beta1 has 5 elements, not 64"),
        (changed(quantScale0=normal(2)), {}, "quantScale0 has 2 elements, not 1"),
        (changed(quantScale0=None), {}, "quantScale0 has 0 elements, not 1"),
        (changed(bias0=torch.zeros(7, dtype=torch.int32)), {}, "bias0 has 7 elements, not 112"),
        (changed(deScale0=torch.zeros(7)), {}, "deScale0 has 7 elements, not 112"),
        (changed(cos=normal(5, 15)), {}, "are not angles of 5 tokens"),
        (changed(wuk=normal(3, 8)), {}, "has no matrix for each head"),
        (changed(wuk=normal(3, 24, 16)), {}, "does not go with the 32 elements of gamma2"),
        (changed(wdqkv=whole(-9, 9, 111, HIDDEN)), {}, "has not 112 rows"),
        (changed(wuq=whole(-9, 9, 120, 65)), {}, "does not go with x"),
        (changed(slotMapping=torch.tensor([0, 1, 2, 3, 32], dtype=torch.int32)), {}, "slot 32 of token 4"),
        (changed(slotMapping=torch.tensor([0, 1], dtype=torch.int32)), {}, "2 slots for 5 tokens"),
        (changed(kvCache=torch.zeros(4, 8, 1, 40, dtype=half)), {}, "is not a cache for rows of 48"),
        (changed(kvCache=torch.zeros(4, 8, 1, 32, dtype=half)), {"cacheMode": 1}, "kvCacheRope .* is not a cache"),
        (changed(kvCache=torch.zeros(4, 8, 1, 32, dtype=half)), {"cacheMode": 2}, "ctkvScale has 0 elements"),
    ]:
        with pytest.raises(Exception, match=words):
            golden.run("MlaPreprocessOperation", param, list(inputs.values()))
