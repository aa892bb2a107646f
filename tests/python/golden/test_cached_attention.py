"""SelfAttentionOperation with keys and values in caches: of each sequence (calcType 0 to 2), or in blocks (4)."""

import pytest

torch = pytest.importorskip("torch")
from attention_oracle import blocks, causal, device, exact, fractal, int32
from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal

SCALE = 0.25
NO_MASK, NORM, ALIBI, NORM_COMPRESS, ALIBI_COMPRESS, SQRT, LEFT_ALIGN, WINDOW, WINDOW_COMPRESS, CAUSAL = range(10)
ENCODER, DECODER = 1, 2
HEADS, KEY_HEADS, SIZE, LAYERS, LAYER, ROWS = 4, 2, 16, 3, 1, 50


def run(inputs, **param):
    keys = {"headNum": HEADS, "kvHeadNum": KEY_HEADS, "qkScale": SCALE, "kernelType": 1}
    options = {key: param.pop(key) for key in ("fractal", "outputs", "reference_loops") if key in param}
    (expected,) = golden.run("SelfAttentionOperation", {**keys, **param}, inputs, **options)
    return expected


class Case:
    """Sequences of `totals` keys, the last `news` of which are new. Caches hold garbage where nobody should read."""

    def __init__(self, totals, news, dtype="float16", value_size=SIZE):
        self.totals, self.news = totals, news
        self.q = [normal(n, HEADS, SIZE, dtype=dtype, seed=10 + i) for i, n in enumerate(news)]
        self.k = [normal(n, KEY_HEADS, SIZE, dtype=dtype, seed=20 + i) for i, n in enumerate(totals)]
        self.v = [normal(n, KEY_HEADS, value_size, dtype=dtype, seed=30 + i) for i, n in enumerate(totals)]
        self.value_size = value_size

    def caches(self, with_new, garbage=77.0):
        """[layers, sequences, rows, heads, size] of keys and of values."""
        out = []
        for rows, size in ((self.k, SIZE), (self.v, self.value_size)):
            cache = torch.full((LAYERS, len(rows), ROWS, KEY_HEADS, size), garbage, dtype=rows[0].dtype)
            for b, own in enumerate(rows):
                stored = len(own) if with_new else len(own) - self.news[b]
                cache[LAYER, b, :stored] = own[:stored]
            out.append(cache)
        return out

    def packed(self):
        """Queries, new keys and new values, as rows of tokens."""
        fresh = [torch.cat([x[len(x) - n :] for x, n in zip(rows, self.news)]) for rows in (self.k, self.v)]
        return [x.reshape(len(x), -1) for x in (torch.cat(self.q), *fresh)]

    def lengths(self):
        return [int32(*self.totals), int32(*self.news), int32(LAYER)]

    def each(self, function, masks=None, seen=lambda n: slice(0, n), **options):
        """The result of all sequences; `seen` says which of so many keys count."""
        out = []
        for b, (q, k, v) in enumerate(zip(self.q, self.k, self.v)):
            part = seen(len(k))
            mask = masks(b, len(q), len(k))[..., part] if masks else None
            out.append(function(q, k[part], v[part], SCALE, mask, **options).reshape(len(q), -1))
        return torch.cat(out)


def flat(cache):
    return cache.flatten(3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value_size", [SIZE, 32])
@pytest.mark.parametrize("calc", [0, ENCODER, DECODER])
def test_new_keys_beside_a_cache_or_in_it(calc, value_size, dtype):
    case = Case((9, 33, 1), (1, 1, 1) if calc == DECODER else (4, 2, 1), dtype, value_size)
    q, k, v = case.packed()
    oracle, sound = case.each(exact), case.each(device)
    for caches in (case.caches(False), case.caches(True)):  # recorded before and after
        expected = run([q, k, v, *map(flat, caches), *case.lengths()], calcType=calc)
        assert_agrees(expected, oracle)
        assert_sound(expected, sound)
    caches = case.caches(True)
    bypass = [q, *map(flat, caches), *case.lengths()]
    assert_agrees(run(bypass, calcType=calc, kvcacheCfg=1), oracle)
    merged = [x.reshape(LAYERS, -1, KEY_HEADS * x.shape[-1]) for x in caches]
    assert_agrees(run([q, *merged, *case.lengths()], calcType=calc, kvcacheCfg=1), oracle)
    assert_agrees(run(bypass, calcType=calc, kvcacheCfg=1, reference_loops=True), oracle)


def pieces(cache):
    """[layers, sequences, rows, heads, size] in FRACTAL_NZ."""
    stored = fractal(flat(cache).flatten(0, 1)[:, :48])
    return stored.reshape(*cache.shape[:2], *stored.shape[1:])


@pytest.mark.parametrize("value_size", [SIZE, 32])
def test_other_orders_of_caches(value_size):
    case = Case((9, 33), (4, 2), value_size=value_size)
    q, _, _ = case.packed()
    caches, oracle = case.caches(True), case.each(exact)
    for options in ({}, {"fractal": [1, 2]}):
        inputs = [q, *map(pieces, caches), *case.lengths()]
        assert_agrees(run(inputs, calcType=ENCODER, kvcacheCfg=1, **options), oracle)
    # BNSD: heads before rows, also of the queries, with room for the longest; and the same in pieces.
    padded = torch.zeros(2, HEADS, 6, SIZE, dtype=torch.float16)
    expected_rows = torch.zeros(2, HEADS, 6, value_size, dtype=torch.float64)
    for b, (own, start) in enumerate(zip(case.q, (0, 4))):
        padded[b, :, : len(own)] = own.movedim(0, 1)
        rows = oracle[start : start + len(own)].reshape(len(own), HEADS, -1)
        expected_rows[b, :, : len(own)] = rows.movedim(0, 1)
    first = [cache.movedim(3, 2).contiguous() for cache in caches]
    in_pieces = [fractal(x.flatten(0, 2)[:, :48]).unflatten(0, (LAYERS, 2 * KEY_HEADS)) for x in first]
    mask = torch.zeros(50, 50).half()
    for form in (first, in_pieces):
        options = {"fractal": [1, 2]} if form is in_pieces else {}
        inputs = [padded, *form, mask, *case.lengths()]
        expected = run(inputs, calcType=ENCODER, kvcacheCfg=1, inputLayout=1, maskType=NORM, **options)
        assert_agrees(expected, expected_rows)
        assert expected.undefined[0, :, 4:].all() and not expected.undefined[1, :, :2].any()


def test_queries_with_four_dimensions():
    case = Case((9, 12), (3, 3), value_size=32)
    q, k, v = (x.reshape(2, 3, -1, size) for x, size in zip(case.packed(), (SIZE, SIZE, 32)))
    expected = run([q, k, v, *map(flat, case.caches(False)), *case.lengths()], calcType=ENCODER)
    assert_agrees(expected, case.each(exact).reshape(2, 3, -1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_masks(dtype):
    """The row of a mask is that of the query among the new ones, whatever the cache holds."""
    case = Case((9, 33), (4, 2), dtype)
    q, k, v = case.packed()
    number = -10000.0 if dtype == "float16" else 1.0
    after = torch.full((40, 40), number).triu(1).to(FLOATS[dtype])
    inputs = [q, k, v, *map(flat, case.caches(False))]
    for mask, tensor in ((NORM, after), (NORM, after.expand(2, 40, 40)), (NORM_COMPRESS, after), (CAUSAL, None)):
        given = [] if tensor is None else [tensor.contiguous()]
        expected = run([*inputs, *given, *case.lengths()], calcType=ENCODER, maskType=mask)
        assert_agrees(expected, case.each(exact, lambda _, n, total: causal(n, total)))
        assert_caught(expected, case.each(device, lambda _, n, total: causal(n, total, total - n)))
    each = -abs(normal(2, HEADS, 40, 40, dtype=dtype))
    expected = run([*inputs, each, *case.lengths()], calcType=ENCODER, maskType=ALIBI)
    assert_agrees(expected, case.each(exact, lambda b, n, total: each[b, :, :n, :total]))
    window = [*inputs, after, *case.lengths()]
    for mask in (WINDOW, WINDOW_COMPRESS):
        expected = run(window, calcType=ENCODER, maskType=mask, windowSize=2)
        assert_agrees(expected, case.each(exact, lambda _, n, total: causal(n, total) + causal(total, n, 1).T))
    # Decoders: one row for each sequence, or the first of a square.
    case = Case((9, 33), (1, 1), dtype)
    q, k, v = case.packed()
    inputs = [q, k, v, *map(flat, case.caches(False))]
    hidden = torch.zeros(2, 1, 40, dtype=FLOATS[dtype])
    hidden[0, 0, 3:5] = hidden[1, 0, 20:] = number
    numbers = torch.zeros(2, 1, 40).masked_fill(hidden != 0, -torch.inf)
    for tensor in (hidden, hidden.expand(2, 40, 40).contiguous()):
        expected = run([*inputs, tensor, *case.lengths()], calcType=DECODER, maskType=NORM)
        assert_agrees(expected, case.each(exact, lambda b, n, total: numbers[b, :, :total]))
    per_head = -abs(normal(2, HEADS, 1, 40, dtype=dtype))
    expected = run([*inputs, per_head, *case.lengths()], calcType=DECODER, maskType=ALIBI)
    assert_agrees(expected, case.each(exact, lambda b, n, total: per_head[b, :, :, :total]))


@pytest.mark.parametrize("bypass", [0, 1])
def test_windows_and_rings_of_decoders(bypass):
    case = Case((9, 33, 20), (1, 1, 1))
    q, k, v = case.packed()
    inputs = [q, *([] if bypass else [k, v]), *map(flat, case.caches(bool(bypass))), *case.lengths()]
    keys = {"calcType": DECODER, "maskType": WINDOW, "windowSize": 20, "kvcacheCfg": bypass}
    expected = run(inputs, **keys)
    assert_agrees(expected, case.each(exact, seen=lambda n: slice(max(0, n - 20), n)))
    assert_caught(expected, case.each(device, seen=lambda n: slice(max(0, n - 21), n)))
    assert_caught(expected, case.each(device, seen=lambda n: slice(max(0, n - 19), n)))
    expected = run(inputs, cacheType=1, **keys)
    assert_agrees(expected, case.each(exact, seen=lambda n: slice(0, min(n, 20))))
    assert "ring of the last 20 tokens" in expected.notes[0]


def test_scales_of_queries_clamp_and_log_n():
    case = Case((9, 33), (1, 1))
    q, k, v = case.packed()
    inputs = [q, k, v, *map(flat, case.caches(False)), *case.lengths()]
    expected = run(inputs, calcType=DECODER, qScale=0.3)
    scaled = Case((9, 33), (1, 1))
    scaled.q = [x * torch.tensor(0.3).half() for x in scaled.q]
    assert_sound(expected, scaled.each(device))
    scaled.q = [(x.double() * 0.3).half() for x in case.q]  # rounded once
    assert_agrees(expected, scaled.each(exact))
    assert_caught(expected, case.each(device))
    logn = torch.tensor([1.5, 2.0])
    expected = run([*inputs, logn], calcType=DECODER, scaleType=1)
    by_hand = [exact(a, b, c, SCALE * float(n)).flatten(1) for a, b, c, n in zip(case.q, case.k, case.v, logn)]
    assert_agrees(expected, torch.cat(by_hand))
    assert_caught(expected, torch.cat([x.half() for x in reversed(by_hand)]))
    # calcType 0 with one query each is a decoder, with more an encoder.
    assert_agrees(run([*inputs, logn], scaleType=1), torch.cat(by_hand))
    case = Case((9, 33), (4, 2))
    q, k, v = case.packed()
    logn = torch.linspace(1, 2, 10)
    expected = run([q, k, v, *map(flat, case.caches(False)), *case.lengths(), logn], scaleType=1)
    rows = [
        exact(q[i : i + 1], k, v, SCALE * float(logn[i])).flatten(1)
        for q, k, v in zip(case.q, case.k, case.v)
        for i in range(len(q))
    ]
    assert_agrees(expected, torch.cat(rows))


def test_sequences_that_do_not_run():
    case = Case((9, 33, 5), (1, 1, 1))
    q, k, v = case.packed()
    caches = [flat(x)[LAYER] for x in case.caches(False)]  # without layers
    status = int32(1, 0, 1)
    inputs = [q, k, v, *caches, int32(9, 33, 5), int32(1, 1, 1), int32(0), status]
    expected = run(inputs, calcType=DECODER, batchRunStatusEnable=True)
    oracle = case.each(exact)
    assert_agrees(expected, oracle)
    assert expected.undefined[1].all() and not expected.undefined[[0, 2]].any()
    assert (expected.values[1] == 0).all()
    case = Case((9, 33, 5), (4, 2, 1))
    q, k, v = case.packed()
    inputs = [q, k, v, *caches, int32(9, 33, 5), int32(4, 2, 1), int32(0), status]
    with pytest.raises(Exception, match="batchRunStatus 0 for sequence 1 with 2 queries"):
        run(inputs, calcType=ENCODER, batchRunStatusEnable=True)
    inputs[-1] = int32(1, 1)
    with pytest.raises(Exception, match="batchRunStatus has 2 elements, not 3"):
        run(inputs, calcType=ENCODER, batchRunStatusEnable=True)


def test_wrong_kernels_are_caught():
    case = Case((9, 33, 50), (1, 1, 1))
    q, _, _ = case.packed()
    expected = run([q, *map(flat, case.caches(True)), *case.lengths()], calcType=DECODER, kvcacheCfg=1)
    assert_sound(expected, case.each(device))
    assert_caught(expected, case.each(device, seen=lambda n: slice(0, n - 1)))  # the new key not read
    assert_caught(expected, case.each(device, seen=lambda n: slice(1, n)))
    case.k, keys = [x.flip(1) for x in case.k], case.k
    assert_caught(expected, case.each(device))  # the other head
    case.k = [torch.cat([x[-1:], x[:-1]]) for x in keys]
    assert_caught(expected, case.each(device))  # keys and values out of step
    case.k = [x * 4 for x in keys]
    assert_caught(expected, case.each(device))  # no scale


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("order", [1, 2])
def test_queries_after_a_prefix(order, dtype):
    case = Case((9, 33, 130, 8), (4, 2, 130, 1), dtype)
    keys, table = blocks(case.k, order)
    values, same = blocks(case.v, order)
    assert (table == same).all()
    q = torch.cat(case.q)
    slopes = 2.0 ** -torch.arange(1, HEADS + 1)
    lengths = [int32(4, 2, 130, 1), int32(*case.totals)]
    shape = (len(q), HEADS, SIZE)

    def distance(n, total):
        return torch.arange(total - n, total)[:, None] - torch.arange(total)

    def bias(mask):
        def of(_, n, total):
            after, far = causal(n, total, total - n).double(), distance(n, total).double()
            slope = slopes[:, None, None].double()
            if mask == ALIBI_COMPRESS:
                return after - slope * far
            return after - slope * far.abs().sqrt() if mask == SQRT else after

        return of

    for mask, size in ((NORM_COMPRESS, 128), (ALIBI_COMPRESS, 256), (SQRT, 256), (CAUSAL, 0)):
        given = [torch.zeros(size, size, dtype=q.dtype)] if size else []
        more = [-slopes] if mask in (ALIBI_COMPRESS, SQRT) else []
        inputs = [q, keys, values, table, *given, *lengths, *more]
        expected = run(inputs, calcType=4, maskType=mask, isTriuMask=1)
        assert_agrees(expected, case.each(exact, bias(mask)).reshape(shape), 1e-11)
        assert_sound(expected, case.each(device, bias(mask)).reshape(shape))
        wrong = case.each(device, lambda _, n, total: causal(n, total, total - n + 1)).reshape(shape)
        assert_caught(expected, wrong)
        joined = [q, keys.flatten(2), values.flatten(2), table, *given, *lengths, *more]
        assert_agrees(run(joined, calcType=4, maskType=mask, isTriuMask=1), expected.values)
    masked = [q.flatten(1), keys, values, table, torch.full((200, 200), -1e4).triu(1).to(q.dtype), *lengths]
    assert_agrees(run(masked, calcType=4, maskType=NORM), case.each(exact, bias(CAUSAL)))


def test_what_cannot_be_computed_says_so():
    case = Case((9, 33), (4, 2))
    q, k, v = case.packed()
    caches = [*map(flat, case.caches(False))]
    good = [q, k, v, *caches, *case.lengths()]
    assert run(good).values.shape == (6, HEADS * SIZE)

    def with_input(index, value):
        return [*good[:index], value, *good[index + 1 :]]

    keys, table = blocks(case.k, 1)
    values, _ = blocks(case.v, 1)
    lengths = [int32(4, 2), int32(9, 33)]
    prefix = {"calcType": 4, "maskType": CAUSAL}
    bad_table = table.clone()
    bad_table[1, 2] = 99
    for inputs, param, words in [
        (with_input(5, int32(9, 51)), {}, "tokenOffset of sequence 1 is 51 with seqLen 2, and the caches have 50"),
        (with_input(5, int32(3, 33)), {}, "tokenOffset of sequence 0 is 3 with seqLen 4"),
        (with_input(5, int32(9)), {}, "2 lengths of queries and 1 of keys"),
        (with_input(6, int32(4, 3)), {}, "more rows than the 6 of query"),
        (with_input(7, int32(3)), {}, "layerId is 3, and cacheK has 3 layers"),
        (with_input(7, int32(-1)), {}, "layerId"),
        (with_input(7, int32(1, 1)), {}, "layerId has 2 elements, not 1"),
        (with_input(1, k[:5]), {}, "more rows than the 5 of key"),
        (with_input(2, v[:, :16]), {}, "value has heads of 8, not of 16"),
        (with_input(3, caches[0][..., :16]), {}, "cacheK of shape .3, 2, 50, 16. has heads of 8, not of 16"),
        (with_input(3, caches[0][:, :1]), {}, "cacheK of shape"),
        (with_input(3, torch.tensor(1.0).half()), {}, r"cacheK of shape \[\] has no rows of"),
        (good, {"calcType": DECODER, "maskType": CAUSAL}, "maskType 9 with calcType DECODER"),
        (good, {"quantType": 2}, "quantType or mlaVHeadSize with calcType 0"),
        ([q, keys, values, bad_table, *lengths], prefix, "sequence 1 names block 99, and there are"),
        ([q, keys, values, table[:, :3], *lengths], prefix, "sequence 1 has 33 rows, and its 3 blocks have 24"),
        ([q, keys, values, table[:1], *lengths], prefix, "not a table of 2 sequences"),
        ([q, keys, values, table, int32(4, 2), int32(3, 33)], prefix, "kvSeqLen of sequence 0 is 3"),
        ([q, keys[:, :, :1], values, table, *lengths], prefix, "keyCache of shape"),
        ([q, keys, values, table, *lengths], {**prefix, "scaleType": 1}, "PREFIX_ENCODER with"),
    ]:
        with pytest.raises(Exception, match=words):
            run(inputs, **param)
    enormous = torch.zeros(1, 1).to(torch.int32).expand(2, 1 << 26)
    with pytest.raises(Exception, match="more memory"):
        run([q, keys, values, enormous, int32(4, 2), int32(9, 2**29)], **prefix)
