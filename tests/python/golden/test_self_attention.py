"""SelfAttentionOperation over whole sequences (PA_ENCODER) against torch's attention in float64."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from attention_oracle import causal, device, exact, fractal, int32
from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, share, whole
from mutants import mutants_of

SCALE = 0.25
NO_MASK, NORM, ALIBI, NORM_COMPRESS, ALIBI_COMPRESS, SQRT, LEFT_ALIGN, WINDOW, WINDOW_COMPRESS, CAUSAL = range(10)


def run(inputs, heads=4, key_heads=2, **param):
    keys = {"headNum": heads, "kvHeadNum": key_heads, "qkScale": SCALE, "calcType": 3, "kernelType": 1}
    options = {key: param.pop(key) for key in ("reference_loops", "fractal", "outputs", "threads") if key in param}
    (expected,) = golden.run("SelfAttentionOperation", {**keys, **param}, inputs, **options)
    return expected


def tokens(rows, heads=4, key_heads=2, size=16, value_size=None, dtype="float16", seed=0):
    return (
        normal(rows, heads, size, dtype=dtype, seed=seed),
        normal(rows, key_heads, size, dtype=dtype, seed=seed + 1),
        normal(rows, key_heads, value_size or size, dtype=dtype, seed=seed + 2),
    )


def sequences(function, q, k, v, lengths, masks=None, **options):
    """Packed sequences one by one."""
    out, start = [], 0
    for number, length in enumerate(lengths):
        part = slice(start, start + length)
        mask = masks(number, length) if masks else None
        out.append(function(q[part], k[part], v[part], SCALE, mask, **options))
        start += length
    return torch.cat(out)


LENGTHS = (5, 40, 1, 0, 131)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1), (6, 3)])
def test_packed_sequences(dtype, heads):
    q, k, v = tokens(sum(LENGTHS), *heads, dtype=dtype)
    for mask, bias in ((NO_MASK, None), (CAUSAL, lambda _, n: causal(n, n))):
        expected = run([q, k, v, int32(*LENGTHS)], *heads, maskType=mask)
        assert_agrees(expected, sequences(exact, q, k, v, LENGTHS, bias))
        assert_sound(expected, sequences(device, q, k, v, LENGTHS, bias))
        assert expected.undefined is None


@pytest.mark.parametrize("value_size", [8, 16, 24])
def test_all_shapes_of_queries_and_their_results(value_size):
    q, k, v = tokens(12, value_size=value_size)
    oracle = sequences(exact, q, k, v, (12,))
    flat = [x.reshape(12, -1) for x in (q, k, v)]
    assert_agrees(run([q, k, v, int32(12)]), oracle)
    assert_agrees(run([*flat, int32(12)]), oracle.reshape(12, -1))
    # Four dimensions: the library joins the heads of the result.
    assert_agrees(run([q[None], k[None], v[None], int32(12)]), oracle.reshape(1, 12, -1))
    recorded = [("float16", (1, 12, 4, value_size))]
    assert_agrees(run([q[None], k[None], v[None], int32(12)], outputs=recorded), oracle[None])
    # Several sequences in one, and each with room for the longest.
    both = sequences(exact, q, k, v, (5, 7))
    assert_agrees(run([q[None], k[None], v[None], int32(5, 7)]), both.reshape(1, 12, -1))
    q, k, v = (x.reshape(2, 6, *x.shape[1:]) for x in (q, k, v))
    expected = run([q, k, v, int32(4, 6)])
    oracle = torch.zeros(2, 6, 4, value_size, dtype=torch.float64)
    oracle[0, :4] = exact(q[0, :4], k[0, :4], v[0, :4], SCALE)
    oracle[1] = exact(q[1], k[1], v[1], SCALE)
    assert_agrees(expected, oracle.reshape(2, 6, -1))
    assert expected.undefined[0, 4:].all() and expected.undefined.sum() == 2 * 4 * value_size


def test_heads_first_and_other_lengths_of_keys():
    q, k, v = normal(2, 4, 7, 16), normal(2, 2, 9, 16, seed=1), normal(2, 2, 9, 16, seed=2)
    lengths = torch.tensor([[7, 3], [9, 5]], dtype=torch.int32)
    expected = run([q, k, v, lengths], inputLayout=1)
    oracle = torch.zeros(2, 4, 7, 16, dtype=torch.float64)
    for b, (rows, keys) in enumerate(((7, 9), (3, 5))):
        one = exact(q[b, :, :rows].movedim(0, 1), k[b, :, :keys].movedim(0, 1), v[b, :, :keys].movedim(0, 1), SCALE)
        oracle[b, :, :rows] = one.movedim(0, 1)
    assert_agrees(expected, oracle)
    assert expected.undefined[1, :, 3:].all() and not expected.undefined[0].any()
    # Packed queries and keys whose lengths differ.
    q, k, v = normal(10, 4, 16), normal(14, 2, 16, seed=1), normal(14, 2, 16, seed=2)
    expected = run([q, k, v, lengths])
    both = [exact(q[:7], k[:9], v[:9], SCALE), exact(q[7:], k[9:], v[9:], SCALE)]
    assert_agrees(expected, torch.cat(both))


def test_latent_values_are_the_first_of_the_keys():
    q, k, _ = tokens(9, 8, 1, 24)
    k = torch.cat([k, normal(3, 1, 24, seed=9)])  # rows that belong to no sequence
    expected = run([q, k, int32(4, 5)], 8, 1, mlaVHeadSize=16)
    assert_agrees(expected, sequences(exact, q, k, k[..., :16], (4, 5)))
    assert expected.values.shape == (9, 8, 16)
    with pytest.raises(Exception, match="mlaVHeadSize is 25"):
        run([q, k, int32(4, 5)], 8, 1, mlaVHeadSize=25)


def filled(rows, columns, number, dtype, first=1):
    """A triangle of a number that hides."""
    return torch.full((rows, columns), float(number)).triu(first).to(FLOATS[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("number", [-10000, -65504, -float("inf"), 1])
def test_masks_that_are_given(dtype, number):
    """0/1 as well as numbers to be added: the mask says by its data which it is."""
    q, k, v = tokens(16, dtype=dtype)
    oracle = sequences(exact, q, k, v, (6, 10), lambda _, n: causal(n, n))
    mask = filled(20, 20, number, dtype)
    shapes = [mask, torch.stack([mask, mask]), mask[None, None].expand(2, 4, 20, 20).contiguous()]
    for shape in shapes:
        expected = run([q, k, v, shape, int32(6, 10)], maskType=NORM)
        assert_agrees(expected, oracle)
        assert not expected.forms
    assert_agrees(run([q, k, v, mask.bool().to(torch.int8), int32(6, 10)], maskType=NORM), oracle)
    pieces = fractal(torch.stack([mask, mask]))
    for options in ({}, {"fractal": [3]}):
        assert_agrees(run([q, k, v, pieces, int32(6, 10)], maskType=NORM, **options), oracle)
    # A triangle of 128 stands for any length.
    q, k, v = tokens(200, dtype=dtype)
    expected = run([q, k, v, filled(128, 128, number, dtype), int32(200)], maskType=NORM, isTriuMask=1)
    assert_agrees(expected, sequences(exact, q, k, v, (200,), lambda _, n: causal(n, n)))


def test_masks_of_each_sequence_and_head():
    q, k, v = tokens(10)
    terms = -abs(normal(2, 6, 6, scale=3))  # positive numbers would be flags
    expected = run([q, k, v, terms, int32(6, 4)], maskType=NORM)
    assert_agrees(expected, sequences(exact, q, k, v, (6, 4), lambda b, n: terms[b, :n, :n]))
    for terms in (normal(4, 6, 6, scale=3), normal(2, 4, 6, 6, scale=3)):
        expected = run([q, k, v, terms, int32(6, 4)], maskType=ALIBI)
        own = terms if terms.ndim == 4 else terms.expand(2, 4, 6, 6)
        assert_agrees(expected, sequences(exact, q, k, v, (6, 4), lambda b, n, own=own: own[b, :, :n, :n]))
        pieces = fractal(torch.nn.functional.pad(own, (0, 10, 0, 10)).reshape(8, 16, 16))
        assert_agrees(run([q, k, v, pieces, int32(6, 4)], maskType=ALIBI, fractal=[3]), expected.values)


def positions(rows, keys, first=0):
    return torch.arange(first, first + rows)[:, None] - torch.arange(keys)


def test_masks_that_follow_from_positions():
    rows = 300
    q, k, v = tokens(rows, size=8)
    distance = positions(rows, rows).double()
    after = causal(rows, rows).double()
    slopes = 2.0 ** -torch.arange(1, 5)
    for mask, bias in (
        (NORM_COMPRESS, after),
        (ALIBI_COMPRESS, after - slopes[:, None, None].double() * distance),
        (SQRT, after - slopes[:, None, None].double() * distance.abs().sqrt()),
        (LEFT_ALIGN, after + slopes[:, None, None].double() * torch.arange(rows)),
        (WINDOW, after.masked_fill(distance >= 70, -torch.inf)),
        (WINDOW_COMPRESS, after.masked_fill(distance >= 70, -torch.inf)),
    ):
        size = {NORM_COMPRESS: 128, WINDOW: 300, WINDOW_COMPRESS: 512}.get(mask, 256)
        for sign in (-1, 1) if mask in (ALIBI_COMPRESS, SQRT) else (1,):
            inputs = [q, k, v, filled(size, size, -10000, "float16"), int32(rows)]
            inputs += [sign * slopes] if mask in (ALIBI_COMPRESS, SQRT, LEFT_ALIGN) else []
            expected = run(inputs, maskType=mask, windowSize=70 if mask in (WINDOW, WINDOW_COMPRESS) else 0)
            assert_agrees(expected, exact(q, k, v, SCALE, bias), 1e-11)
            assert_sound(expected, device(q, k, v, SCALE, bias))
    # A window that is longer than everything hides only what follows.
    expected = run([q, k, v, filled(300, 300, -1e4, "float16"), int32(rows)], maskType=WINDOW, windowSize=1000)
    assert_agrees(expected, exact(q, k, v, SCALE, after))


def test_biases_of_the_first_columns():
    """[heads, rows, 128] holds the first columns of a bias that depends on the distance alone."""
    rows = 300
    q, k, v = tokens(rows, size=8)
    slopes = 2.0 ** -torch.arange(1, 5)[:, None, None]
    full = (causal(rows, rows).nan_to_num(neginf=-10000) - slopes * positions(rows, rows)).half()
    expected = run([q, k, v, full[..., :128].contiguous(), int32(rows), slopes.flatten()], maskType=ALIBI_COMPRESS)
    shifted = full.double().clone()
    for first in (128, 256):
        shifted[:, :first, first:] = -10000
        width = min(128, rows - first)
        shifted[:, first:, first : first + width] = full[:, : rows - first, :width].double()
    assert_agrees(expected, exact(q, k, v, SCALE, shifted))


def test_clamp_and_log_n():
    q, k, v = tokens(30, dtype="float32")
    q64, k64, v64 = (x.double() for x in (q, k, v))
    group = k64.repeat_interleave(2, 1)
    scores = torch.einsum("ihd,jhd->hij", q64, group) * SCALE
    values = v64.repeat_interleave(2, 1)
    after = causal(30, 30)

    def oracle(scores):
        return torch.einsum("hij,jhd->ihd", torch.softmax(scores + after, -1), values)

    expected = run([q, k, v, int32(30)], maskType=CAUSAL, clampType=1, clampMin=-0.5, clampMax=0.75)
    assert_agrees(expected, oracle(scores.clamp(-0.5, 0.75)))
    assert_caught(expected, oracle(scores.clamp(-0.5, 0.74)))
    logn = torch.linspace(1, 2, 40)
    expected = run([q, k, v, int32(30), logn], maskType=CAUSAL, scaleType=1)
    assert_agrees(expected, oracle(scores * logn[:30, None].double()))
    assert_caught(expected, oracle(scores * logn[1:31, None].double()))
    with pytest.raises(Exception, match="logN has 29 elements"):
        run([q, k, v, int32(30), logn[:29]], maskType=CAUSAL, scaleType=1)


def test_rows_that_see_nothing():
    """Under a finite mask kernels keep the scores or lose them; either is sound, a mixture is not."""
    q, k, v = tokens(20, dtype="float16")
    mask = filled(20, 20, -10000, "float16")
    mask[3] = mask[11] = -10000
    expected = run([q, k, v, mask, int32(20)], maskType=NORM)
    kept = exact(q, k, v, SCALE, mask)
    lost = kept.clone()
    lost[3] = lost[11] = v.double().repeat_interleave(2, 1).mean(0)
    assert set(expected.forms) == {f"{form} where the mask hides every key" for form in ("softmax", "average")}
    assert "hides every key from 8 rows" in expected.notes[0]
    assert_agrees(expected, kept)
    for sound in (kept.half(), lost.half()):
        assert_sound(expected, sound)
    wrong = kept.clone()
    wrong[3] = v[0].double().repeat_interleave(2, 0)
    assert_caught(expected, wrong.half())
    # Nothing is left of scores under these.
    for number, dtype in ((-torch.inf, "float16"), (1, "bfloat16")):
        q, k, v = tokens(20, dtype=dtype)
        mask = filled(20, 20, number, dtype)
        mask[5] = number
        expected = run([q, k, v, mask, int32(20)], maskType=NORM)
        mean = v.double().repeat_interleave(2, 1).mean(0)
        assert np.allclose(expected.values[5], mean, rtol=1e-12)


QUANTISED = {"offline": 2, "online": 3}


@pytest.mark.parametrize("rows", [20, 300])
@pytest.mark.parametrize("kind", QUANTISED)
@pytest.mark.parametrize("latent", [False, True])
def test_int8(kind, rows, latent):
    q, k, v = whole(-60, 60, rows, 4, 16), whole(-60, 60, rows, 2, 16, seed=1), whole(-90, 90, rows, 2, 16, seed=2)
    v = k[..., :8] if latent else v
    descale, out_scale = torch.linspace(2e-4, 4e-4, 4), torch.linspace(0.01, 0.02, 4)
    steps = torch.linspace(1 / 127, 2 / 127, 4)
    inputs = [q, k] + ([] if latent else [v]) + [filled(rows, rows, -10000, "float16"), int32(rows)]
    inputs += [descale, None, out_scale, int32(0)] + ([steps] if kind == "offline" else [])
    keys = {"maskType": NORM, "quantType": QUANTISED[kind], "mlaVHeadSize": 8 if latent else 0}
    expected = run(inputs, outputs=[("float16", (rows, 4, v.shape[2]))], **keys)

    products = torch.einsum("ihd,jhd->hij", q.int(), k.int().repeat_interleave(2, 1))
    scores = (products.float() * descale[:, None, None]).half().float() * SCALE + causal(rows, rows)
    values = v.float().repeat_interleave(2, 1)

    def kernel(block, descale=1.0, shift=0, weight=1.0):
        """Int8 weights under a running maximum."""
        out, total = torch.zeros(4, rows, v.shape[2]), torch.zeros(4, rows, 1)
        largest = torch.full((4, rows, 1), -1e30)
        for first in range(0, rows - shift, block):
            part = scores[:, :, first : min(first + block, rows - shift)] * descale
            new = torch.maximum(largest, part.amax(-1, keepdim=True))
            e = torch.exp(part - new)
            step = steps[:, None, None] if kind == "offline" else e.amax(-1, keepdim=True).clamp_min(1e-30) / 127
            p = torch.round(e / step).clamp(-128, 127)
            sums = torch.einsum("hij,jhd->hid", p, values[first : first + part.shape[2]]) * step
            out, total = out * torch.exp(largest - new) + sums, total * torch.exp(largest - new) + e.sum(-1, True)
            largest = new
        return (out * weight * out_scale[:, None, None] / total).movedim(0, 1).half()

    for block in (16, 128, 512):
        if kind == "online" or block >= 128:  # up to 128 keys lie in one block
            assert_sound(expected, kernel(block))
    assert_caught(expected, kernel(512, descale=1.1))
    assert_caught(expected, kernel(512, weight=1 / 1.05))
    assert_caught(expected, kernel(512, shift=1 if rows == 20 else 8))
    exact_weights = torch.softmax(scores.double(), -1)
    oracle = torch.einsum("hij,jhd->ihd", exact_weights, values.double()) * out_scale[:, None].double()
    if kind == "online":
        assert_agrees(expected, oracle)
        assert "does not round" in expected.notes[0]
    else:
        assert abs(expected.values - oracle.numpy()).max() < 0.02 * abs(oracle).max()
    with pytest.raises(Exception, match="qkDescale has 3 elements"):
        run([*inputs[: 5 - latent], descale[:3], *inputs[6 - latent :]], **keys)


@mutants_of("SelfAttentionOperation")
def wrong_self_attentions(trial):
    rows = 200
    q, k, v = tokens(rows, 8, 2, 32)
    after = causal(rows, rows)
    param = {"headNum": 8, "kvHeadNum": 2, "qkScale": SCALE, "calcType": 3, "kernelType": 1}
    (y,) = trial.run({**param, "maskType": CAUSAL}, [q, k, v, int32(rows)])
    trial.sound(y, device(q, k, v, SCALE, after))
    trial.sound(y, device(q, k, v, SCALE, after, block=16))
    for name, wrong in {
        "no scale": device(q, k, v, 1.0, after),
        "a scale that is off by 1 %": device(q, k, v, SCALE * 1.01, after),
        "no mask": device(q, k, v, SCALE),
        "the mask off by one: a key too many": device(q, k, v, SCALE, causal(rows, rows, 1)),
        "the mask off by one: a key too few": device(q, k, v, SCALE, causal(rows, rows, -1).clamp_min(-1e30)),
        "the heads of the other group": device(q, k[:, [1, 0]], v[:, [1, 0]], SCALE, after),
        "keys of one head and values of another": device(q, k.flip(1), v, SCALE, after),
        "the last key not read": device(q, k[:-1], v[:-1], SCALE, after[:, :-1]),
        "added up in half": device(q, k, v, SCALE, after, wrong="sum"),
    }.items():
        trial.caught(name, y, wrong)
    cut = torch.cat([device(q[:128], k, v, SCALE, after[:128]), device(q[128:], k[:192], v[:192], SCALE)])
    trial.caught("the last block of queries without a mask", y, cut)
    large = q[:60] * 30
    (y,) = trial.run(param, [large, k[:60], v[:60], int32(60)])
    trial.sound(y, device(large, k[:60], v[:60], SCALE))
    trial.caught("the largest score not subtracted", y, device(large, k[:60], v[:60], SCALE, wrong="maximum"))
    weak = k.clone()
    weak[17] = -100 * q[0].reshape(2, 4, 32).mean(1)
    (y,) = trial.run(param, [q[:1], weak, v, torch.tensor([[1], [rows]], dtype=torch.int32)])
    others = [i for i in range(rows) if i != 17]
    trial.missed("a key left out that has no weight", y, device(q[:1], weak[others], v[others], SCALE))


@pytest.mark.parametrize("mask", [NO_MASK, CAUSAL])
def test_wrong_kernels_are_caught_in_bfloat16(mask):
    q, k, v = tokens(200, 8, 2, 32, dtype="bfloat16")
    bias = causal(200, 200) if mask == CAUSAL else torch.zeros(200, 200)
    expected = run([q, k, v, int32(200)], 8, 2, maskType=mask)
    assert_sound(expected, device(q, k, v, SCALE, bias))
    assert_caught(expected, device(q, k, v, 1.0, bias))
    assert_caught(expected, device(q, k, v, SCALE * 1.01, bias))
    assert_caught(expected, device(q, k, v, SCALE, causal(200, 200, 1)))
    assert_caught(expected, device(q, k.flip(1), v, SCALE, bias))
    assert_caught(expected, device(q, k[:-1], v[:-1], SCALE, bias[:, :-1]))
    assert_caught(expected, device(q, k, v, SCALE, bias, wrong="sum"))


def test_scores_in_half():
    """The library's fast kernel holds scores in half; the one of high precision does not."""
    q, k, v = tokens(400, dtype="float16", size=64)
    scores = torch.einsum("ihd,jhd->hij", q.float(), k.float().repeat_interleave(2, 1)) * SCALE
    weights = torch.softmax(scores.half().float(), -1)
    result = torch.einsum("hij,jhd->ihd", weights, v.float().repeat_interleave(2, 1)).half()
    assert_sound(run([q, k, v, int32(400)], kernelType=0), result)
    assert_caught(run([q, k, v, int32(400)], kernelType=1), result)
    assert share(run([q, k, v, int32(400)], kernelType=0), device(q, k, v, SCALE)) < 0.3


@pytest.mark.parametrize("mask", [NO_MASK, CAUSAL, NORM, WINDOW])
@pytest.mark.parametrize("heads", [(4, 4), (4, 1)])
def test_reference_loops_give_the_same(mask, heads):
    lengths = (3, 1, 100, 37)
    q, k, v = tokens(sum(lengths), *heads, size=24, value_size=16)
    inputs = [q, k, v] + ([filled(100, 100, -1e4, "float16")] if mask in (NORM, WINDOW) else []) + [int32(*lengths)]
    param = {"maskType": mask, "windowSize": 20 if mask == WINDOW else 0}
    plain = run(inputs, *heads, reference_loops=True, **param)
    for threads in (1, 3):
        fast = run(inputs, *heads, threads=threads, **param)
        assert_agrees(fast, plain.values, 1e-12)
        assert np.allclose(fast.bound("float32"), plain.bound("float32"), rtol=1e-9)
    assert (fast.values == run(inputs, *heads, threads=2, **param).values).all()


def test_numbers_that_are_none_spread_as_far_as_they_must():
    q, k, v = tokens(20)
    k[7, 0, 3] = float("nan")
    expected = run([q, k, v, int32(20)], maskType=CAUSAL)
    assert np.isnan(expected.values[7:, :2]).all() and not np.isnan(expected.values[:7]).any()
    assert not np.isnan(expected.values[:, 2:]).any() and not np.isnan(expected.bound("float16")).any()
    plain = run([q, k, v, int32(20)], maskType=CAUSAL, reference_loops=True)
    assert np.allclose(expected.values, plain.values, rtol=1e-12, atol=1e-15, equal_nan=True)


def test_what_cannot_be_computed_says_so():
    q, k, v = tokens(10)
    mask = filled(8, 8, -1e4, "float16")
    for inputs, param, words in [
        ([q, k, v, int32(11)], {}, "more rows than the 10 of query"),
        ([q, k, v, int32(-1)], {}, "negative element -1"),
        ([q, k, v, int32(10)], {"key_heads": 3}, "headNum 4 is not a multiple of kvHeadNum 3"),
        ([q, k, v, int32(10)], {"heads": 0}, "headNum 0"),
        ([q, k[:, :, :8], v, int32(10)], {}, "key has heads of 8, not of 16"),
        ([q, k, v[:5], int32(10)], {}, "more rows than the 5 of value"),
        ([q[:, :3], k, v, int32(10)], {}, "query of shape .10, 3, 16. has no rows of 4 heads"),
        ([q, k, v, mask, int32(10)], {"maskType": NORM}, "needs 10 rows of a mask for 10 keys"),
        ([q, k, v, mask[None].expand(3, 8, 8), int32(5, 5)], {"maskType": NORM}, "not a mask of 2 sequences"),
        ([q, k, v, mask, int32(10)], {"maskType": WINDOW}, "windowSize is 0"),
        ([q, k, v, mask, int32(10), torch.ones(3)], {"maskType": ALIBI_COMPRESS}, "slopes has 3 elements"),
        ([q, k, v, q[0, 0], int32(10)], {"maskType": NORM}, "mask of shape .16. is not a mask"),
        ([q, k, v, torch.ones(10)], {}, "seqLen is of type float32"),
        ([q, k, v, int32(10)], {"quantType": 1}, "quantType 1"),
        ([q, k, v], {}, "seqLen.* was not recorded"),
    ]:
        with pytest.raises(Exception, match=words):
            run(inputs, **param)
    with pytest.raises(Exception, match="more memory"):
        golden.run("SelfAttentionOperation", {"headNum": 4, "calcType": 3}, [q, q, q, int32(10)], memory_bytes=1000)
