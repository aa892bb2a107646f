"""PagedAttentionOperation against torch's attention in float64 over the rows that its block tables name."""

import pytest

torch = pytest.importorskip("torch")
import numpy as np
from attention_oracle import blocks, causal, device, exact, fractal, int32
from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, whole
from mutants import mutants_of

SCALE = 0.25
NO_MASK, NORM, ALIBI, SPEC, MASK_FREE, NORM_COMPRESS = range(6)
SIZE = 16


def run(inputs, heads=4, key_heads=2, **param):
    options = {key: param.pop(key) for key in ("fractal", "outputs", "reference_loops") if key in param}
    keys = {"headNum": heads, "kvHeadNum": key_heads, "qkScale": SCALE}
    (expected,) = golden.run("PagedAttentionOperation", {**keys, **param}, inputs, **options)
    return expected


class Case:
    """Sequences of so many keys, the last `news` of which have a query."""

    def __init__(self, totals, news=None, heads=(4, 2), size=SIZE, value_size=SIZE, dtype="float16", order=1):
        self.totals, self.news, self.heads = totals, news or [min(1, n) for n in totals], heads
        self.q = normal(sum(self.news), heads[0], size, dtype=dtype, seed=5)
        self.k = [normal(n, heads[1], size, dtype=dtype, seed=20 + i) for i, n in enumerate(totals)]
        self.v = [normal(n, heads[1], value_size, dtype=dtype, seed=40 + i) for i, n in enumerate(totals)]
        self.order = order

    def inputs(self):
        (keys, table), (values, _) = blocks(self.k, self.order), blocks(self.v, self.order)
        return [self.q, keys, values, table, int32(*self.totals)]

    def each(self, function, masks=None, scales=None, cut=slice(None), **options):
        out, start = [], 0
        for b, (k, v, new) in enumerate(zip(self.k, self.v, self.news)):
            if new == 0:
                continue
            mask = masks(b, new, len(k))[..., cut] if masks else None
            scale = SCALE * (scales[b] if scales is not None else 1)
            out.append(function(self.q[start : start + new], k[cut], v[cut], scale, mask, **options))
            start += new
        return torch.cat(out)


TOTALS = (9, 33, 1, 24, 130)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (6, 1)])
@pytest.mark.parametrize("order", [1, 2])
def test_one_query_for_each_sequence(order, heads, dtype):
    case = Case(TOTALS, heads=heads, dtype=dtype, order=order)
    expected = run(case.inputs(), *heads)
    assert_agrees(expected, case.each(exact))
    assert_sound(expected, case.each(device))
    assert_sound(expected, case.each(device, block=8))
    assert expected.undefined is None
    assert_agrees(run(case.inputs(), *heads, reference_loops=True), expected.values)
    if heads[0] == heads[1]:  # the library's default
        assert_agrees(run(case.inputs(), heads[0], 0), expected.values)


def test_any_number_of_sequences_gives_the_same():
    """Many sequences run beside each other, a few share the threads."""
    case = Case(tuple(range(1, 40)))
    expected = run(case.inputs())
    assert_agrees(expected, case.each(exact))


@pytest.mark.parametrize("value_size", [8, 32])
def test_values_of_another_size(value_size):
    case = Case(TOTALS, value_size=value_size)
    expected = run(case.inputs())
    assert expected.values.shape == (5, 4, value_size)
    assert_agrees(expected, case.each(exact))
    q, keys, values, *rest = case.inputs()
    assert_agrees(run([q.flatten(1), keys.flatten(2), values.flatten(2), *rest]), case.each(exact).flatten(1))


def test_other_orders_of_caches():
    case = Case(TOTALS, value_size=32)
    oracle = case.each(exact)
    q, keys, values, *rest = case.inputs()
    expected = run([q, keys.movedim(2, 1).contiguous(), values.movedim(2, 1).contiguous(), *rest])
    assert_agrees(expected, oracle)
    assert "keyCache was taken for BNSD" in expected.notes[0]
    # FRACTAL_NZ, of blocks with 16 rows.
    (keys, table), (values, _) = blocks(case.k, 1, 16), blocks(case.v, 1, 16)
    pieces = [fractal(x.flatten(2)) for x in (keys, values)]
    for options in ({}, {"fractal": [1, 2]}):
        assert_agrees(run([q, *pieces, table, int32(*TOTALS)], **options), oracle)
    # As many heads as rows of a block: only the parameter tells.
    case = Case((9, 30), heads=(8, 8))
    q, keys, values, *rest = case.inputs()
    assert_agrees(run([q, keys, values, *rest], 8, 8), case.each(exact))
    turned = [q, keys.movedim(2, 1).contiguous(), values.movedim(2, 1).contiguous(), *rest]
    assert_agrees(run(turned, 8, 8, inputLayout=1), case.each(exact))


def test_sequences_without_keys_have_no_row():
    case = Case((9, 0, 33, 0, 5))
    q, *rest = case.inputs()
    q = torch.cat([q, normal(2, 4, SIZE, seed=99)])  # the rows that are left over
    status = int32(1, 0, 1, 0, 1)
    expected = run([q, *rest, status], batchRunStatusEnable=True)
    assert_agrees(expected, torch.cat([case.each(exact), torch.zeros(2, 4, SIZE)]))
    assert expected.undefined[3:].all() and not expected.undefined[:3].any()
    # Masks and factors are those of the sequence all the same.
    logn = torch.linspace(1, 2, 5)
    expected = run([q, *rest, logn])
    assert_agrees(expected, torch.cat([case.each(exact, scales=logn.double()), torch.zeros(2, 4, SIZE)]))
    assert "LOGN was inferred" in expected.notes[0]
    assert_caught(expected, torch.cat([case.each(exact, scales=logn.double() * 0 + 1), torch.zeros(2, 4, SIZE)]).half())


@pytest.mark.parametrize("dtype", FLOATS)
def test_masks(dtype):
    case = Case(TOTALS, dtype=dtype)
    rest = case.inputs()
    number = -10000.0 if dtype == "float16" else 1.0
    hidden = torch.rand(5, 1, 144, generator=torch.Generator().manual_seed(1)) < 0.3
    hidden[:, :, 0] = False
    mask = torch.where(hidden, number, 0.0).to(FLOATS[dtype])
    terms = torch.zeros(5, 1, 144).masked_fill(hidden, -torch.inf)
    oracle = case.each(exact, lambda b, _, n: terms[b, :, :n])
    per_head = mask[:, None].expand(5, 4, 1, 144).contiguous()
    for tensor in (mask, mask[:, 0], per_head):
        assert_agrees(run([*rest, tensor.contiguous()], maskType=NORM), oracle)
    bias = -abs(normal(5, 4, 1, 144, dtype=dtype))
    oracle = case.each(exact, lambda b, _, n: bias[b, :, :, :n])
    assert_agrees(run([*rest, bias], maskType=ALIBI), oracle)
    # FRACTAL_NZ: row 0 of 16.
    pieces = fractal(bias.flatten(0, 1))
    assert pieces.shape == (20, 9, 16, 16)
    assert_agrees(run([*rest, pieces], maskType=ALIBI, fractal=[5]), oracle)
    assert_agrees(run([*rest, pieces], maskType=ALIBI), oracle)
    pieces = fractal(mask)
    oracle = case.each(exact, lambda b, _, n: terms[b, :, :n])
    assert_agrees(run([*rest, pieces], maskType=NORM), oracle)
    # A mask that hides everything.
    mask = mask.clone()
    mask[1] = number
    expected = run([*rest, mask], maskType=NORM)
    assert set(expected.forms) == {f"{form} where the mask hides every key" for form in ("softmax", "average")}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_several_queries_of_a_sequence(dtype):
    case = Case(TOTALS, [3, 2, 1, 4, 10], dtype=dtype)
    rest, lengths = case.inputs(), int32(*case.news)
    number = -10000.0 if dtype == "float16" else 1.0
    bias = lambda _, n, total: causal(n, total, total - n)
    oracle, sound = case.each(exact, bias), case.each(device, bias)
    square = torch.full((144, 144), number).triu(1).to(FLOATS[dtype])
    rows = torch.cat([square[total - n : total] for n, total in zip(case.news, TOTALS)])
    small = torch.zeros(128, 128, dtype=FLOATS[dtype])
    for mask, tensor in ((NORM, square), (SPEC, rows), (MASK_FREE, small), (NORM_COMPRESS, small)):
        expected = run([*rest, tensor, lengths], calcType=1, maskType=mask)
        assert_agrees(expected, oracle)
        assert_sound(expected, sound)
        assert_caught(expected, case.each(device, lambda _, n, total: causal(n, total, total - n + 1)))
        assert_caught(expected, case.each(device, lambda _, n, total: causal(n, total)))
    assert_agrees(run([*rest, fractal(rows[None]), lengths], calcType=1, maskType=SPEC, fractal=[5]), oracle)
    assert_agrees(run([*rest, lengths], calcType=1), case.each(exact))
    tree = torch.zeros(20, 144).masked_fill(torch.rand(20, 144) < 0.3, number).to(FLOATS[dtype])
    tree[:, 0] = 0
    hides = torch.zeros(20, 144).masked_fill(tree != 0, -torch.inf)
    starts = np.cumsum([0, *case.news])
    expected = run([*rest, tree, lengths], calcType=1, maskType=SPEC)
    assert_agrees(expected, case.each(exact, lambda b, n, total: hides[starts[b] : starts[b] + n, :total]))


def test_latent_values_are_the_first_of_the_keys():
    case = Case(TOTALS, [3, 2, 1, 4, 10], heads=(8, 1), size=24)
    q, keys, _, table, totals = case.inputs()
    case.v = [k[..., :16] for k in case.k]
    expected = run([q, keys, table, totals, int32(*case.news)], 8, 1, mlaVHeadSize=16, calcType=1)
    assert_agrees(expected, case.each(exact))
    with pytest.raises(Exception, match="mlaVHeadSize is 25"):
        run([q, keys, table, totals, int32(*case.news)], 8, 1, mlaVHeadSize=25, calcType=1)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("compress", [0, 1])
def test_caches_in_int8(offset, compress):
    """Each channel with a scale, in float32 or as its bits in int64, and an offset of its own."""
    case = Case((9, 33, 17, 20), heads=(4, 2))
    k8 = [whole(-100, 100, *k.shape, seed=i) for i, k in enumerate(case.k)]
    v8 = [whole(-100, 100, *v.shape, seed=9 + i) for i, v in enumerate(case.v)]
    scales = [torch.rand(2 * SIZE, generator=torch.Generator().manual_seed(i)) * 0.03 for i in range(2)]
    offsets = [whole(-10, 10, 2 * SIZE, dtype=torch.int32, seed=i) for i in range(2)]
    q = case.q

    def numbers(rows, which):
        return (rows.double() + (offsets[which].view(2, SIZE) if offset else 0)) * scales[which].view(2, SIZE).double()

    case.k, case.v = [numbers(k, 0) for k in k8], [numbers(v, 1) for v in v8]
    oracle = case.each(exact)
    if compress:  # each head of a sequence has blocks of its own
        k8 = [k[:, h : h + 1] for k in k8 for h in range(2)]
        v8 = [v[:, h : h + 1] for v in v8 for h in range(2)]
    (keys, table), (values, _) = blocks(k8, 1), blocks(v8, 1)
    bits = [torch.from_numpy(s.numpy().view(np.uint32).astype(np.int64)) for s in scales]
    for own in (scales, bits):
        pairs = [[s, o] if offset else [s] for s, o in zip(own, offsets)]
        inputs = [q, keys, values, table, int32(*map(len, k8)), *pairs[0], *pairs[1]]
        expected = run(inputs, quantType=1, hasQuantOffset=offset, compressType=compress)
        assert_agrees(expected, oracle)
    half = [[x.half() for x in rows] for rows in (case.k, case.v)]
    case.k, case.v = half
    assert_sound(expected, case.each(device))  # made half before they are multiplied
    case.k = [k * 1.1 for k in half[0]]
    assert_caught(expected, case.each(device))
    case.k, case.v = half[0], [v.flip(2) for v in half[1]]
    assert_caught(expected, case.each(device))
    with pytest.raises(Exception, match="vDescale has 31 elements for 32 channels"):
        run([*inputs[:-1], scales[1][:31]], quantType=1, compressType=compress) if not offset else run(
            [*inputs[:-2], scales[1][:31], inputs[-1]], quantType=1, hasQuantOffset=True, compressType=compress
        )


def test_a_cache_for_each_head():
    """compressType: other lengths and blocks for each head of keys, and masks of the sequence."""
    totals = (9, 14, 33, 20, 0, 5)  # of two heads of three sequences
    groups, rows = 2, 3
    q = normal(rows, 4, SIZE)
    case = Case(totals, heads=(2, 1))
    case.q = q.reshape(6, 2, SIZE)[:5]  # packed: the one without keys has no row
    (keys, table), (values, _) = blocks(case.k, 1), blocks(case.v, 1)
    inputs = [q, keys, values, table, int32(*totals)]
    left = torch.zeros(1, 2, SIZE)
    expected = run(inputs, compressType=1)
    assert_agrees(expected, torch.cat([case.each(exact), left]).reshape(rows, 4, SIZE))
    assert expected.undefined.sum() == 2 * SIZE
    mask = -abs(normal(rows, 1, 40))
    oracle = case.each(exact, lambda b, _, n: mask[b // groups, :, :n])
    assert_agrees(run([*inputs, mask], compressType=1, maskType=NORM), torch.cat([oracle, left]).reshape(rows, 4, SIZE))
    bias = -abs(normal(rows, 4, 1, 40))
    oracle = case.each(exact, lambda b, _, n: bias.reshape(6, 2, 1, 40)[b, :, :, :n])
    assert_agrees(
        run([*inputs, bias], compressType=1, maskType=ALIBI), torch.cat([oracle, left]).reshape(rows, 4, SIZE)
    )
    # What is added to the products with each key.
    terms = [normal(n, dtype="float32", seed=70 + n) for n in totals]
    offsets, _ = blocks(terms, 1)
    expected = run([*inputs, offsets], compressType=2)
    oracle = case.each(exact, lambda b, _, n: terms[b][None].double() * SCALE)
    assert_agrees(expected, torch.cat([oracle, left]).reshape(rows, 4, SIZE))
    assert_caught(expected, torch.cat([case.each(device), left]).reshape(rows, 4, SIZE))
    with pytest.raises(Exception, match="razorOffset of shape"):
        run([*inputs, offsets[1:]], compressType=2)


@pytest.mark.parametrize("kind", ["offline", "online"])
@pytest.mark.parametrize("latent", [False, True])
def test_everything_in_int8(kind, latent):
    totals, heads = (9, 33, 128, 400), (4, 1 if latent else 2)
    q = whole(-60, 60, 4, 4, SIZE)
    k = [whole(-60, 60, n, heads[1], SIZE, seed=i) for i, n in enumerate(totals)]
    v = [x[..., :8] for x in k] if latent else [whole(-90, 90, n, 2, SIZE, seed=20 + i) for i, n in enumerate(totals)]
    (keys, table), (values, _) = blocks(k, 1), blocks(v, 1)
    descale, factor = torch.linspace(8e-4, 1e-3, 4), torch.linspace(90, 127, 4)
    out_scale = torch.linspace(0.01, 0.02, 4) / (factor if kind == "offline" else 1)
    inputs = [q, keys, *([] if latent else [values]), table, int32(*totals), descale, out_scale]
    inputs += [factor] if kind == "offline" else []
    param = {"quantType": 2 if kind == "offline" else 3, "mlaVHeadSize": 8 if latent else 0}
    expected = run(inputs, *heads, outputs=[("float16", (4, 4, v[0].shape[2]))], **param)

    def kernel(block, scale=SCALE, weight=1.0, cut=0):
        """Int8 weights, each block of keys under a running maximum."""
        out = []
        for b, (own_k, own_v) in enumerate(zip(k, v)):
            group = 4 // heads[1]
            own_k, own_v = (x[: len(x) - cut].float().repeat_interleave(group, 1) for x in (own_k, own_v))
            scores = torch.einsum("hd,jhd->hj", q[b].float(), own_k) * descale[:, None] * scale
            sums, total, largest = torch.zeros(4, own_v.shape[2]), torch.zeros(4, 1), torch.full((4, 1), -1e30)
            for first in range(0, len(own_k), block):
                part = scores[:, first : first + block]
                new = torch.maximum(largest, part.amax(-1, keepdim=True))
                e = torch.exp(part - new)
                top = e.amax(-1, keepdim=True)
                p = torch.round((e * (factor[:, None] if kind == "offline" else 127 / top)).half()).float()
                lo = torch.einsum("hj,jhd->hd", p, own_v[first : first + block])
                lo = lo * out_scale[:, None] * (1 if kind == "offline" else top / 127)
                sums, total = sums * torch.exp(largest - new) + lo, total * torch.exp(largest - new) + e.sum(-1, True)
                largest = new
            out.append(sums * weight / total)
        return torch.stack(out).half()

    for block in (128, 256, 512):
        assert_sound(expected, kernel(block))
    assert_caught(expected, kernel(512, scale=1.1 * SCALE))
    assert_caught(expected, kernel(512, scale=1))
    assert_caught(expected, kernel(512, weight=1.05))
    assert_caught(expected, kernel(512, cut=1))
    with pytest.raises(Exception, match="kDescale has 2 elements for 4 heads"):
        place = 4 if latent else 5
        run([*inputs[:place], descale[:2], *inputs[place + 1 :]], *heads, **param)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_wrong_kernels_are_caught(dtype):
    case = Case((9, 33, 130, 200), heads=(8, 2), size=32, value_size=32, dtype=dtype)
    expected = run(case.inputs(), 8, 2)
    assert_sound(expected, case.each(device))
    assert_caught(expected, case.each(device, cut=slice(0, -1)))  # the last key not read
    k, v = case.k, case.v
    case.k, case.v = ([x[: (len(x) - 1) // 8 * 8] for x in rows] for rows in (k, v))
    assert_caught(expected, case.each(device))  # the last block not read
    case.k, case.v = [x.flip(1) for x in k], [x.flip(1) for x in v]
    assert_caught(expected, case.each(device))  # the other group of heads
    case.k, case.v = [x * 4 for x in k], v
    assert_caught(expected, case.each(device))  # no scale
    case.k, case.v = k, [x.roll(1, 0) for x in v]
    assert_caught(expected, case.each(device))
    case.v = v
    assert_caught(expected, case.each(device, wrong="sum"))  # added up in the narrow type
    if dtype == "float16":
        case.q = case.q * 30
        expected = run([case.q, *case.inputs()[1:]], 8, 2)
        assert_sound(expected, case.each(device))
        assert_caught(expected, case.each(device, wrong="maximum"))


@mutants_of("PagedAttentionOperation")
def wrong_paged_attentions(trial):
    case = Case((9, 33, 130, 200), heads=(8, 2), size=32, value_size=32)
    k, v, q = case.k, case.v, case.q
    param = {"headNum": 8, "kvHeadNum": 2, "qkScale": SCALE}
    (y,) = trial.run(param, case.inputs())
    trial.sound(y, case.each(device))
    trial.caught("the last key not read", y, case.each(device, cut=slice(0, -1)))

    def wrong(keys=k, values=v, **options):
        case.k, case.v = keys, values
        result = case.each(device, **options)
        case.k, case.v = k, v
        return result

    whole_blocks = [[x[: (len(x) - 1) // 8 * 8] for x in rows] for rows in (k, v)]
    trial.caught("the last block of the cache not read", y, wrong(*whole_blocks))
    trial.caught("the heads of the other group", y, wrong([x.flip(1) for x in k], [x.flip(1) for x in v]))
    trial.caught("no scale", y, wrong([x * 4 for x in k]))
    trial.caught("values off by one row", y, wrong(values=[x.roll(1, 0) for x in v]))
    first = lambda rows: [torch.cat([x[8:16], x[:8], x[16:]]) if len(x) > 16 else x for x in rows]
    trial.caught("two blocks of values swapped", y, wrong(values=first(v)))
    trial.caught("added up in half", y, wrong(wrong="sum"))
    case.q = q * 30
    (y,) = trial.run(param, case.inputs())
    trial.sound(y, case.each(device))
    trial.caught("the largest score not subtracted", y, case.each(device, wrong="maximum"))


def test_what_cannot_be_computed_says_so():
    case = Case((9, 33))
    q, keys, values, table, totals = good = case.inputs()
    wrong_table = table.clone()
    wrong_table[0, 1] = -1
    for inputs, param, words in [
        ([q, keys, values, wrong_table, totals], {}, "sequence 0 names block -1, and there are"),
        ([q, keys, values, table + 100, totals], {}, "names block 1"),
        ([q, keys, values, table[:, :2], totals], {}, "sequence 1 has 33 rows, and its 2 blocks have 16"),
        ([q, keys, values, table, int32(9, 2000000000)], {}, "more memory|has 2000000000 rows"),
        ([q, keys, values, table, int32(9, -3)], {}, "negative element -3"),
        ([q[:1], keys, values, table, totals], {}, "more rows than the 1 of query"),
        ([q, keys, values[:, :4], table, totals], {}, "valueCache has 10 blocks of 4, and keyCache 10 of 8"),
        ([q, keys[..., :8], values, table, totals], {}, "keyCache of shape"),
        ([q, keys, values, table[0], totals], {}, "not a table of 2 sequences"),
        ([*good, torch.zeros(2, 1, 20).half()], {"maskType": NORM}, "needs 1 rows of a mask for 33 keys"),
        ([*good, torch.zeros(3, 1, 40).half()], {"maskType": NORM}, "is not a mask of 2 sequences and 4 heads"),
        ([*good, int32(1, 2, 3)], {"calcType": 1}, "qSeqLens has 3 elements for 2 sequences"),
        ([*good, int32(10, 1)], {"calcType": 1}, "contextLens of sequence 0 is 9, less than its 10 queries"),
        ([*good, torch.ones(1)], {}, "logN has 1 elements for 2 sequences"),
        ([q, keys, values, table, totals.float()], {}, "contextLens is of type float32"),
        (good, {"quantType": 2, "compressType": 1}, "quantType 2 with compressType 1"),
        (good, {"mlaVHeadSize": -1}, "mlaVHeadSize is -1"),
        ([q, keys[:, :, :1], values[:, :, :1], table[:1], int32(9)], {"compressType": 1}, "contextLens has 1 elements"),
        (good[:4], {}, "contextLens.* was not recorded"),
    ]:
        with pytest.raises(Exception, match=words):
            run(inputs, **param)
