"""MultiLatentAttentionOperation, RingMLAOperation and FaUpdateOperation against torch's attention in float64."""

import pytest

torch = pytest.importorskip("torch")
import numpy as np
from attention_oracle import blocks, causal, device, exact, fractal, int32
from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, whole
from mutants import mutants_of

SCALE = 0.2
HEADS, LATENT, ROPE, BLOCK = 8, 32, 16, 16
NO_MASK, SPEC, MASK_FREE, CAUSAL, WINDOW = range(5)
ND, INT8, NZ = 1, 2, 3


def run(inputs, **param):
    options = {key: param.pop(key) for key in ("fractal", "outputs", "reference_loops") if key in param}
    keys = {"headNum": HEADS, "kvHeadNum": 1, "qkScale": SCALE, "cacheMode": ND}
    return golden.run("MultiLatentAttentionOperation", {**keys, **param}, inputs, **options)


class Case:
    """Latent keys in blocks; the last `news` of each sequence have a query."""

    def __init__(self, totals, news=None, dtype="float16", latent=None):
        self.totals, self.news = totals, news or [min(1, n) for n in totals]
        self.q = normal(sum(self.news), HEADS, LATENT, dtype=dtype, seed=1)
        self.q_rope = normal(sum(self.news), HEADS, ROPE, dtype=dtype, seed=2)
        self.k = [normal(n, 1, LATENT, dtype=dtype, seed=20 + i) for i, n in enumerate(totals)]
        self.k_rope = [normal(n, 1, ROPE, dtype=dtype, seed=40 + i) for i, n in enumerate(totals)]

    def inputs(self, change=lambda cache: cache):
        (latent, table), (rope, _) = blocks(self.k, 1, BLOCK), blocks(self.k_rope, 1, BLOCK)
        return [self.q, self.q_rope, change(latent), change(rope), table, int32(*self.totals)]

    def each(self, function, masks=None, cut=slice(None), **options):
        out, start = [], 0
        for b, (latent, rope, new) in enumerate(zip(self.k, self.k_rope, self.news)):
            if new == 0:
                continue
            part = slice(start, start + new)
            q = torch.cat([self.q[part], self.q_rope[part]], -1)
            k = torch.cat([latent, rope], -1)[cut]
            mask = masks(b, new, len(latent))[..., cut] if masks else None
            out.append(function(q, k, k[..., :LATENT], SCALE, mask, **options))
            start += new
        return torch.cat(out)

    def lse(self):
        """Logarithms of the sums of exponentials, [tokens, heads]."""
        out, start = [], 0
        for latent, rope, new in zip(self.k, self.k_rope, self.news):
            q = torch.cat([self.q, self.q_rope], -1)[start : start + new].double()
            k = torch.cat([latent, rope], -1)[:, 0].double()
            out.append(torch.logsumexp(q @ k.T * SCALE, -1))
            start += new
        return torch.cat(out)


TOTALS = (9, 33, 1, 100)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_one_query_for_each_sequence(dtype):
    case = Case(TOTALS, dtype=dtype)
    (expected,) = run(case.inputs())
    assert_agrees(expected, case.each(exact))
    assert_sound(expected, case.each(device))
    (plain,) = run(case.inputs(), reference_loops=True)
    assert_agrees(expected, plain.values)
    # FRACTAL_NZ: 16 columns at a time, also with the dimensions of what it stands for.
    pieces = case.inputs(lambda cache: fractal(cache.flatten(2)))
    named = case.inputs(lambda cache: fractal(cache.flatten(2)).reshape(cache.shape))
    for inputs, options in ((pieces, {}), (pieces, {"fractal": [2, 3]}), (named, {}), (named, {"fractal": [2, 3]})):
        (other,) = run(inputs, cacheMode=NZ, **options)
        assert_agrees(other, expected.values)
    longer = Case((9, 33, 100), dtype=dtype)
    assert_caught(run(longer.inputs())[0], longer.each(device, cut=slice(0, -1)))  # the last key not read
    for wrong in ("k_rope", "q_rope"):
        kept = getattr(case, wrong)
        setattr(case, wrong, [x * 0 for x in kept] if wrong == "k_rope" else kept * 0)
        assert_caught(expected, case.each(device))  # the rotated part left out
        setattr(case, wrong, kept)
    case.k, kept = [x.roll(1, 2) for x in case.k], case.k
    assert_caught(expected, case.each(device))
    case.k, case.q = kept, case.q.flip(1)
    assert_caught(expected, case.each(device))  # other heads


def test_sequences_without_keys_have_no_row():
    case = Case((9, 0, 33))
    case.q, case.q_rope = (torch.cat([x, x[:1]]) for x in (case.q, case.q_rope))
    (expected,) = run(case.inputs())
    assert_agrees(expected, torch.cat([case.each(exact), torch.zeros(1, HEADS, LATENT)]))
    assert expected.undefined[2].all() and not expected.undefined[:2].any()


def test_logarithms_of_sums_for_rings():
    for news, calc in (([1, 1, 1, 1], 2), ([3, 2, 1, 4], 3)):
        case = Case(TOTALS, news)
        more = [int32(*news)] if calc == 3 else []
        out, lse = run([*case.inputs(), *more], calcType=calc)
        assert_agrees(out, case.each(exact))
        assert_agrees(lse, case.lse()[..., None])
        assert_sound(lse, case.lse().float()[..., None], "float32")
        assert_caught(lse, (case.lse() + 2e-3)[..., None], "float32")
        assert_caught(lse, (case.lse() / np.log(2))[..., None], "float16")  # another base


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_several_queries_of_a_sequence(dtype):
    case = Case(TOTALS, [3, 2, 1, 4], dtype)
    lengths = int32(3, 2, 1, 4)
    number = -10000.0 if dtype == "float16" else 1.0
    after = lambda _, n, total: causal(n, total, total - n)
    square = torch.full((112, 112), number).triu(1).to(FLOATS[dtype])
    rows = torch.cat([square[total - n : total] for n, total in zip(case.news, TOTALS)])
    for mask, tensor in ((SPEC, rows), (MASK_FREE, square), (CAUSAL, None)):
        more = [lengths] if tensor is None else [tensor, lengths]
        (expected,) = run([*case.inputs(), *more], calcType=1, maskType=mask)
        assert_agrees(expected, case.each(exact, after))
        assert_sound(expected, case.each(device, after))
        assert_caught(expected, case.each(device))
        assert_caught(expected, case.each(device, lambda _, n, total: causal(n, total, total - n + 1)))
        status = int32(1, 0, 1, 1)
        partly = lambda b, n, total: torch.zeros(n, total) if b == 1 else causal(n, total, total - n)
        (expected,) = run([*case.inputs(), *more, status], calcType=1, maskType=mask, maskUseStatusType=1)
        assert_agrees(expected, case.each(exact, partly))
    (expected,) = run([*case.inputs(), lengths], calcType=1)
    assert_agrees(expected, case.each(exact))  # without a mask all is seen
    (expected,) = run([*case.inputs(), square, lengths], calcType=1, maskType=WINDOW, windowSize=20)
    near = lambda b, n, total: after(b, n, total) + causal(total, n, 19 - (total - n)).T
    assert_agrees(expected, case.each(exact, near))


@pytest.mark.parametrize("several", [False, True])
def test_int8(several):
    """The part without position, and the weights, are int8; the rotated part is not."""
    case = Case((9, 33, 20, 300), [3, 2, 1, 4] if several else None)
    case.q = whole(-50, 50, *case.q.shape)
    case.k = [whole(-50, 50, *x.shape, seed=i) for i, x in enumerate(case.k)]
    descale, out_scale = torch.linspace(3e-4, 5e-4, HEADS), torch.linspace(0.01, 0.02, HEADS)
    (latent, table), (rope, _) = blocks(case.k, 1, BLOCK), blocks(case.k_rope, 1, BLOCK)
    caches = [fractal(latent.flatten(2), 32), fractal(rope.flatten(2))]
    inputs = [case.q, case.q_rope, *caches, table, int32(*case.totals)]
    more = [int32(*case.news)] if several else []
    outputs = [("float16", tuple(case.q.shape))]

    def kernel(block, mask, scale=SCALE, rope=1.0, weight=1.0):
        out, start = [], 0
        for b, (own, own_rope, new) in enumerate(zip(case.k, case.k_rope, case.news)):
            q, q_rope = case.q[start : start + new].float(), case.q_rope[start : start + new].float()
            scores = torch.einsum("ihd,jd->hij", q, own[:, 0].float()) * descale[:, None, None]
            scores = scores + rope * torch.einsum("ihd,jd->hij", q_rope, own_rope[:, 0].float())
            scores = scores * scale + (mask(b, new, len(own)) if mask else 0)
            largest, total, sums = torch.full((HEADS, new, 1), -1e30), 0, 0
            for first in range(0, len(own), block):
                part = scores[:, :, first : first + block]
                top = torch.maximum(largest, part.amax(-1, keepdim=True))
                e = torch.exp(part - top)
                step = e.amax(-1, keepdim=True).clamp_min(1e-30) / 127
                p = torch.round((e / step).half()).float()
                lo = torch.einsum("hij,jd->hid", p, own[first : first + block, 0].float()) * step
                fade = torch.exp(largest - top)
                sums, total, largest = sums * fade + lo, total * fade + e.sum(-1, True), top
            out.append((sums * weight * out_scale[:, None, None] / total).movedim(0, 1))
            start += new
        return torch.cat(out).half()

    after = lambda _, n, total: causal(n, total, total - n)
    (expected,) = run([*inputs, *more, descale, out_scale], cacheMode=INT8, calcType=int(several), outputs=outputs)
    mask = after if several else None  # causal though there is no mask
    for block in (128, 512):
        assert_sound(expected, kernel(block, mask))
    assert_caught(expected, kernel(512, mask, scale=1.1 * SCALE))
    assert_caught(expected, kernel(512, mask, rope=0))
    assert_caught(expected, kernel(512, mask, weight=1.05))
    if several:
        assert_caught(expected, kernel(512, None))
        status = int32(0, 0, 0, 0)
        keys = {"cacheMode": INT8, "calcType": 1, "maskUseStatusType": 1}
        (expected,) = run([*inputs, *more, descale, out_scale, status], outputs=outputs, **keys)
        assert_sound(expected, kernel(512, None))
    with pytest.raises(Exception, match="pvDescale has 3 elements for 8 heads"):
        run([*inputs, *more, descale, out_scale[:3]], cacheMode=INT8, calcType=int(several))


@pytest.mark.parametrize("key_heads", [HEADS, 2])
def test_whole_sequences(key_heads):
    news, totals, rows, value_size = (5, 12, 30), (5, 20, 30), 32, 24
    q, q_rope = normal(47, HEADS, LATENT), normal(47, HEADS, ROPE, seed=1)
    k, k_rope = normal(3, rows, key_heads, LATENT, seed=2), normal(3, rows, key_heads, ROPE, seed=3)
    v = normal(3, rows, key_heads, value_size, seed=4)

    def each(function, mask):
        starts = (0, 5, 17)
        return torch.cat(
            [
                function(
                    torch.cat([q[s : s + n], q_rope[s : s + n]], -1),
                    torch.cat([k[b, :t], k_rope[b, :t]], -1),
                    v[b, :t],
                    SCALE,
                    mask(n, t),
                )
                for b, (s, n, t) in enumerate(zip(starts, news, totals))
            ]
        )

    def window(n, total):
        return causal(n, total) + causal(total, n, 6).T

    lengths = [int32(*news), int32(*totals)]
    mask = torch.zeros(512, 512).half()
    plain = [q, q_rope, k.flatten(2), k_rope.flatten(2), v.flatten(2), *lengths]
    flat = [q.flatten(1), q_rope.flatten(1), k, k_rope, v, *lengths]
    for kind, bias in ((NO_MASK, lambda n, t: torch.zeros(n, t)), (SPEC, causal), (CAUSAL, causal), (WINDOW, window)):
        more = [mask] if kind in (SPEC, WINDOW) else []
        for inputs in (plain, flat):
            param = {"calcType": 4, "maskType": kind, "windowSize": 7 if kind == WINDOW else 0}
            (expected,) = run([*inputs, *more], **param)
            assert_agrees(expected, each(exact, bias))
            assert_sound(expected, each(device, bias))
        if kind != NO_MASK:
            assert_caught(expected, each(device, lambda n, t: causal(n, t, 1)))
    for change, words in (
        ({6: int32(5, 20, 33)}, "kvSeqLen has the element 33"),
        ({5: int32(5, 12, 31)}, "more rows than the 47"),
        ({5: int32(5, 12)}, "2 lengths of queries and 3 of keys|no rows of 2 sequences"),
        ({2: k.flatten(2)[:, :, :31]}, "key of shape .3, 32, 31."),
        ({4: v.flatten(2)[:2]}, "value of shape"),
        ({1: q_rope[:40]}, "not the rows of as many tokens"),
    ):
        with pytest.raises(Exception, match=words):
            run([change.get(i, x) for i, x in enumerate(plain)], calcType=4)


@mutants_of("MultiLatentAttentionOperation")
def wrong_latent_attentions(trial):
    case = Case((9, 33, 100))
    param = {"headNum": HEADS, "kvHeadNum": 1, "qkScale": SCALE, "cacheMode": ND}
    (y,) = trial.run(param, case.inputs())
    trial.sound(y, case.each(device))

    def wrong(function=device, cut=slice(None), **changes):
        kept = {name: getattr(case, name) for name in changes}
        for name, value in changes.items():
            setattr(case, name, value)
        result = case.each(function, cut=cut)
        for name, value in kept.items():
            setattr(case, name, value)
        return result

    trial.caught("the last key not read", y, wrong(cut=slice(0, -1)))
    trial.caught("the rotated part left out", y, wrong(q_rope=case.q_rope * 0))
    trial.caught("heads in another order", y, wrong(q=case.q.flip(1)))
    trial.caught(
        "the scale of heads without the rotated part", y, wrong(lambda q, k, v, s, m: device(q, k, v, s * 1.22, m))
    )
    trial.caught("added up in half", y, wrong(lambda q, k, v, s, m: device(q, k, v, s, m, wrong="sum")))
    several = Case(TOTALS, [3, 2, 1, 4])
    (y,) = trial.run({**param, "calcType": 1, "maskType": CAUSAL}, [*several.inputs(), int32(3, 2, 1, 4)])
    trial.caught("the mask off by one", y, several.each(device, lambda _, n, total: causal(n, total, total - n + 1)))


@mutants_of("RingMLAOperation")
def wrong_rings(trial):
    case = Ring((5, 12), (5, 20))
    dtype, param = case.v.dtype, {"headNum": HEADS, "kvHeadNum": 2, "qkScale": SCALE, "maskType": 1}
    out, lse = case.each(device)
    previous = normal(*out.shape, dtype="bfloat16", seed=9)
    previous_lse = normal(*lse.shape, dtype="float32", seed=10) + 3
    y, sums = trial.run(param, [*case.inputs(), previous, previous_lse])
    both = joined(out, lse, previous.double(), previous_lse.double())
    trial.sound(y, both[0].to(dtype))
    trial.sound(sums, both[1].float(), "float32")
    trial.caught("the shares exchanged", y, joined(out, previous_lse.double(), previous.double(), lse)[0].to(dtype))
    trial.caught("not joined", y, out.to(dtype))
    trial.caught("the average of both", y, ((out + previous) / 2).to(dtype))
    unmasked, _ = case.each(device, False)
    trial.caught("no mask", y, joined(unmasked, lse, previous.double(), previous_lse.double())[0].to(dtype))
    trial.caught("the larger of both logarithms", sums, torch.maximum(lse, previous_lse), "float32")


@mutants_of("FaUpdateOperation")
def wrong_fa_updates(trial):
    lse, out = normal(3, 7, dtype="float32", scale=3), normal(3, 7, 24, dtype="float32", seed=1)
    (y,) = trial.run({"sp": 3}, [lse, out])
    shares = torch.softmax(lse, 0)
    trial.sound(y, (shares[..., None] * out).sum(0))
    trial.caught("the average of all parts", y, out.mean(0))
    trial.caught("the shares of other parts", y, (shares.roll(1, 0)[..., None] * out).sum(0))
    trial.caught("the last part left out", y, (torch.softmax(lse[:-1], 0)[..., None] * out[:-1]).sum(0))
    trial.caught("not divided by the sum", y, (torch.exp(lse - lse.amax(0))[..., None] * out).sum(0))
    (y,) = trial.run({"sp": 3}, [lse + 100, out])
    bare = torch.exp(lse + 100)
    trial.caught("the largest not subtracted", y, (bare[..., None] / bare.sum(0)[..., None] * out).sum(0))


def test_what_cannot_be_computed_says_so():
    case = Case((9, 33))
    good = case.inputs()
    for change, param, words in (
        ({}, {"cacheMode": 0}, "cacheMode KVCACHE"),
        ({}, {"headNum": 0}, "headNum 0"),
        ({}, {"maskType": WINDOW}, "windowSize is 0 with maskType 4"),
        ({0: case.q[:1]}, {}, "not the rows of as many tokens"),
        ({5: int32(9, -1)}, {}, "negative element"),
        ({5: int32(9, 200)}, {}, "sequence 1 has 200 rows, and its 4 blocks have 64"),
        ({2: good[2][..., :16]}, {}, "ctKvCache of shape"),
        ({3: good[3][:3]}, {}, "and kRopeCache 3 of 16"),
        ({4: good[4][:1]}, {}, "not a table of 2 sequences"),
        ({4: good[4] - 1}, {}, "names block|named"),
        ({6: int32(1, 1, 1)}, {"calcType": 1}, "3 lengths of queries and 2 of keys"),
        ({6: int32(1, 1, 1)}, {"maskUseStatusType": 1}, "maskUseStatus has 3 elements for 2 sequences"),
        ({6: torch.zeros(1, 40).half(), 7: int32(1, 1)}, {"maskType": SPEC, "calcType": 1}, "needs 2 rows of a mask"),
    ):
        with pytest.raises(Exception, match=words):
            run([change.get(i, good[i] if i < 6 else None) for i in range(max([5, *change]) + 1)], **param)


class Ring:
    def __init__(self, news, totals, dtype="bfloat16", value_size=24):
        self.news, self.totals = news, totals
        tokens, keys = sum(news), sum(totals)
        self.q = normal(tokens, HEADS, LATENT, dtype=dtype), normal(tokens, HEADS, ROPE, dtype=dtype, seed=1)
        self.k = normal(keys, 2, LATENT, dtype=dtype, seed=2), normal(keys, 2, ROPE, dtype=dtype, seed=3)
        self.v = normal(keys, 2, value_size, dtype=dtype, seed=4)

    def inputs(self):
        lengths = torch.tensor([self.news, self.totals], dtype=torch.int32)
        return [*self.q, *self.k, self.v, torch.zeros(512, 512), lengths]

    def each(self, function, masked=True):
        """Results and logarithms of sums of all sequences, zeros where there are no keys."""
        out, lse, start, first = [], [], 0, 0
        for n, total in zip(self.news, self.totals):
            q = torch.cat([x[start : start + n] for x in self.q], -1)
            k = torch.cat([x[first : first + total] for x in self.k], -1)
            mask = causal(n, total) if masked else torch.zeros(n, total)
            if total:
                out.append(function(q, k, self.v[first : first + total], SCALE, mask).double())
                scores = torch.einsum("ihd,jhd->hij", q.double(), k.double().repeat_interleave(4, 1)) * SCALE + mask
                lse.append(torch.logsumexp(scores, -1))
            else:
                out.append(torch.zeros(n, HEADS, self.v.shape[2], dtype=torch.float64))
                lse.append(torch.zeros(HEADS, n, dtype=torch.float64))
            start, first = start + n, first + total
        return torch.cat(out), torch.cat(lse, 1)


def ring(inputs, **param):
    keys = {"headNum": HEADS, "kvHeadNum": 2, "qkScale": SCALE}
    outputs = param.pop("outputs", None)
    return golden.run("RingMLAOperation", {**keys, **param}, inputs, outputs=outputs)


def joined(out, lse, previous, previous_lse):
    weights = torch.softmax(torch.stack([lse, previous_lse]), 0).transpose(1, 2)[..., None]
    return weights[0] * out + weights[1] * previous, torch.logaddexp(lse, previous_lse)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("masked", [True, False])
def test_rings(masked, dtype):
    case = Ring((5, 12, 3), (5, 20, 0), dtype)
    param = {"maskType": int(masked)}
    out, lse = ring(case.inputs(), calcType=1, **param)
    oracle, oracle_lse = case.each(exact, masked)
    assert_agrees(out, oracle)
    assert_agrees(lse, oracle_lse)
    assert_sound(out, case.each(device, masked)[0].to(case.v.dtype))
    assert_sound(lse, oracle_lse.float(), "float32")
    assert out.undefined is None and lse.undefined is None
    if not masked:  # hosts may leave the mask out
        without = case.inputs()
        del without[5]
        assert_agrees(ring(without, calcType=1, maskType=0)[0], oracle)
    # Joined with the result of other keys.
    previous = normal(*oracle.shape, dtype=dtype, seed=9)
    previous_lse = normal(*oracle_lse.shape, dtype="float32", seed=10) + 3
    out, lse = ring([*case.inputs(), previous, previous_lse], **param)
    new, new_lse = joined(oracle, oracle_lse, previous.double(), previous_lse.double())
    new[17:], new_lse[:, 17:] = previous[17:].double(), previous_lse[:, 17:].double()  # no keys: as before
    assert_agrees(out, new)
    assert_agrees(lse, new_lse)
    sound, _ = joined(case.each(device, masked)[0], oracle_lse, previous.double(), previous_lse.double())
    sound[17:] = previous[17:]
    assert_sound(out, sound.to(case.v.dtype))
    wrong, _ = joined(oracle, previous_lse.double(), previous.double(), oracle_lse)
    assert_caught(out, wrong.to(case.v.dtype))  # the shares exchanged
    assert_caught(out, oracle.to(case.v.dtype))  # not joined
    assert_caught(lse, oracle_lse, "float32")
    assert_caught(lse, torch.maximum(oracle_lse, previous_lse), "float32")
    for inputs, words in (
        ([*case.inputs(), previous[:5], previous_lse], "prevOut of shape"),
        ([*case.inputs(), previous, previous_lse[:5]], "prevLse of shape"),
        (
            [*case.inputs()[:6], torch.tensor([[5, 12, 3], [5, 21, 0]], dtype=torch.int32), previous, previous_lse],
            "more",
        ),
        ([case.q[0], case.q[1][..., :8], *case.inputs()[2:], previous, previous_lse], "parts of the queries"),
    ):
        with pytest.raises(Exception, match=words):
            ring(inputs, **param)


def test_rings_with_as_many_keys_as_queries():
    case = Ring((5, 12), (5, 12))
    inputs = [*case.inputs()[:6], int32(5, 12)]
    out, lse = ring(inputs, calcType=1)
    oracle, oracle_lse = case.each(exact)
    assert_agrees(out, oracle)
    assert_agrees(lse, oracle_lse)
    with pytest.raises(Exception, match="inputLayout BNSD"):
        ring(inputs, calcType=1, inputLayout=1)


@pytest.mark.parametrize("parts", [1, 2, 8])
def test_parts_are_joined(parts):
    lse, out = normal(parts, 7, dtype="float32", scale=3), normal(parts, 7, 24, dtype="float32", seed=1)
    lse[0, 2] = -torch.inf  # a part without keys
    if parts == 1:
        lse[0, 2] = 0
    run_update = lambda lse, out: golden.run("FaUpdateOperation", {"sp": parts}, [lse, out])[0]
    expected = run_update(lse, out)
    weights = torch.softmax(lse.double(), 0)
    oracle = (weights[..., None] * out.double()).sum(0)
    assert_agrees(expected, oracle)
    assert_sound(expected, (torch.softmax(lse, 0)[..., None] * out).sum(0))
    bare = torch.exp(lse)
    assert_sound(expected, (bare[..., None] / bare.sum(0)[..., None] * out).sum(0))  # no maximum subtracted
    # Where that overflows it shows.
    expected = run_update(lse + 100, out)
    assert_sound(expected, (torch.softmax(lse + 100, 0)[..., None] * out).sum(0))
    bare = torch.exp(lse + 100)
    assert_caught(expected, (bare[..., None] / bare.sum(0)[..., None] * out).sum(0))
    if parts > 1:
        expected = run_update(lse, out)
        assert_caught(expected, out.mean(0))
        assert_caught(expected, (torch.softmax(lse, 0).roll(1, 0)[..., None] * out).sum(0))
        assert_caught(expected, (torch.softmax(lse[:-1], 0)[..., None] * out[:-1]).sum(0))
    for inputs, words in (
        ([lse[:, :6], out], "are not those of"),
        ([lse, out[..., 0]], "are not those of"),
        ([torch.cat([lse, lse]), torch.cat([out, out])], f"are not those of {parts} parts"),
        ([lse], "out.* was not recorded"),
    ):
        with pytest.raises(Exception, match=words):
            run_update(*inputs, *([None] * (2 - len(inputs))))
    with pytest.raises(Exception, match="faUpdateType 1"):
        golden.run("FaUpdateOperation", {"sp": parts, "faUpdateType": 1}, [lse, out])
