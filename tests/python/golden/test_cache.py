"""Operations that write rows into caches, against NumPy and torch: what is written, and that nothing else is."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F
from golden_oracle import assert_caught, assert_sound, golden, normal, numbers, whole
from mutants import mutants_of

TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "int8": torch.int8}
I32 = torch.int32


def some(*shape, dtype="float16", seed=0):
    if dtype == "int8":
        return whole(-128, 128, *shape, seed=seed)
    return normal(*shape, dtype=dtype, seed=seed)


def i32(values):
    return torch.tensor(values, dtype=I32)


def slots_in(count, rows, seed=0):
    """Different rows of a cache in no order."""
    return torch.randperm(rows, generator=torch.Generator().manual_seed(seed))[:count].to(I32)


def applied(before, expected):
    """The whole tensor once what was written is in it."""
    after = numbers(before).copy()
    after.flat[expected.places] = expected.values
    return after


def written(expected, result):
    return numbers(result).reshape(-1)[expected.places]


def assert_writes(expected, before, after, rows, exact=True):
    """The golden writes `rows` rows and gives the cache `after`."""
    assert (applied(before, expected) == numbers(after)).all()
    assert expected.values.size == rows
    assert (np.diff(expected.places[:, 0]) > 0).all()
    if exact:
        assert (expected.bound() == 0).all()


def to_nz(rows, blocks, width):
    """[blocks * block rows, elements] as [blocks, elements / width, block rows, width]."""
    return rows.reshape(blocks, -1, rows.shape[-1] // width, width).transpose(1, 2).contiguous()


def from_nz(cache):
    return cache.transpose(1, 2).reshape(cache.shape[0] * cache.shape[2], -1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("heads", "width", "value_width"), [(2, 8, 8), (1, 16, 4), (3, 5, 7)])
def test_rows_go_to_their_slots(heads, width, value_width, dtype):
    key, value = some(6, heads, width, dtype=dtype), some(6, heads, value_width, dtype=dtype, seed=1)
    caches = [some(4, 5, heads, n, dtype=dtype, seed=n) for n in (width, value_width)]
    slots = slots_in(6, 20)
    slots[2] = -1
    outputs = golden.run("ReshapeAndCacheOperation", {}, [key, value, *caches, slots])
    kept = slots >= 0
    for place, (expected, rows, before) in enumerate(zip(outputs, (key, value), caches)):
        after = before.clone()
        after.view(20, *rows.shape[1:])[slots[kept].long()] = rows[kept]
        assert expected.written_input == 2 + place
        assert_writes(expected, before, after, 5 * rows[0].numel())
        late = before.clone()
        late.view(20, *rows.shape[1:])[slots[kept].long()] = rows[kept].roll(1, 0)
        assert_caught(expected, written(expected, late))  # rows to the slots of others
        assert_caught(expected, written(expected, before))  # nothing written
        last = after.clone()
        last.view(20, -1)[slots[5].long()] = before.view(20, -1)[slots[5].long()]
        assert_caught(expected, written(expected, last))  # the last token not written
    assert golden.changed_inputs("ReshapeAndCacheOperation", {}) == [2, 3]


def test_keys_alone():
    key, cache, slots = some(3, 2, 8), some(2, 4, 2, 8, seed=1), i32([7, 0, 3])
    for param in ({"kvCacheCfg": 1}, {"kvCacheCfg": "K_CACHE_V_BYPASS"}):
        (expected,) = golden.run("ReshapeAndCacheOperation", param, [key, cache, slots])
        assert golden.changed_inputs("ReshapeAndCacheOperation", param) == [1]
    after = cache.clone()
    after.view(8, 2, 8)[slots.long()] = key
    assert_writes(expected, cache, after, 48)
    assert expected.written_input == 1


@pytest.mark.parametrize(("dtype", "width"), [("float16", 16), ("bfloat16", 16), ("int8", 32)])
@pytest.mark.parametrize("config", [0, 2])
def test_fractal_caches(config, dtype, width):
    key, value = some(5, 2, 48, dtype=dtype), some(5, 2, 24, dtype=dtype, seed=1)
    slots = slots_in(5, 32)
    slots[1] = -3
    caches = [to_nz(some(32, 96, dtype=dtype, seed=2), 2, width), to_nz(some(32, 48, dtype=dtype, seed=3), 2, 16)]
    outputs = golden.run(
        "ReshapeAndCacheOperation",
        {"kvCacheCfg": config},
        [key, value, *caches, slots],
        fractal=[] if config else [2, 3],
    )
    for expected, rows, before in zip(outputs, (key, value), caches):
        flat = from_nz(before)
        flat[slots[slots >= 0].long()] = rows[slots >= 0].reshape(4, -1)
        after = to_nz(flat, 2, before.shape[-1])
        assert_writes(expected, before, after, 4 * rows[0].numel())
        assert expected.places.shape[1] == before.shape[-1]
        assert_caught(expected, written(expected, flat.reshape(before.shape)))  # in rows
        assert_caught(expected, written(expected, to_nz(flat.roll(1, 0), 2, before.shape[-1])))


def test_a_cache_of_gigabytes_is_not_read():
    cache = np.zeros((2048, 128, 8, 128), np.float16)
    key = np.ones((1, 8, 128), np.float16)
    slots = np.array([200_000], np.int32)
    outputs = golden.run("ReshapeAndCacheOperation", {}, [key, key, cache, cache, slots], memory_bytes=1 << 17)
    assert outputs[0].places[0, 0] == 200_000 * 1024


def test_two_tokens_in_one_slot_are_not_compared():
    key, cache = some(3, 1, 4), some(1, 4, 1, 4, seed=1)
    (expected,) = golden.run("ReshapeAndCacheOperation", {"kvCacheCfg": 1}, [key, cache, i32([2, 2, 0])])
    assert expected.undefined.tolist() == [[False] * 4, [True] * 4]
    assert "1 places of input 1 are written several times" in expected.notes[0]


def compressed(rows, slots, lengths, keep):
    """Which row each head of each sequence leaves at which slot; `keep` gives tokens or lists to take the mean of."""
    heads, found, start = rows.shape[1], {}, 0
    for batch, length in enumerate(lengths):
        for head in range(heads):
            entry = batch * heads + head
            if slots[entry] >= 0:
                for step, token in enumerate(keep(entry, length)):
                    found[slots[entry] + step] = rows[start : start + length, head].double()[token]
        start += length
    return found


def into(before, found):
    after = numbers(before).copy().reshape(-1, before.shape[-1])
    for slot, row in found.items():
        after[slot] = numbers(row if row.dim() == 1 else row.mean(0))
    return after.reshape(before.shape)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_heads_that_keep_the_last_tokens(dtype):
    lengths, wins = [4, 0, 7], [2, 4, 0, 0, 1, 7]
    slots = [10, 0, 5, 5, -1, 20]
    key, value = some(11, 2, 8, dtype=dtype), some(11, 2, 8, dtype=dtype, seed=1)
    caches = [some(4, 10, 1, 8, dtype=dtype, seed=s) for s in (2, 3)]
    inputs = [key, value, *caches, i32(slots), i32(wins), i32(lengths)]
    outputs = golden.run("ReshapeAndCacheOperation", {"compressType": 1}, inputs)
    for expected, rows, before in zip(outputs, (key, value), caches):
        found = compressed(rows, slots, lengths, lambda entry, length: range(length - wins[entry], length))
        assert_writes(expected, before, into(before, found), 8 * (2 + 4 + 7))
        first = compressed(rows, slots, lengths, lambda entry, length: range(wins[entry]))
        assert_caught(expected, written(expected, into(before, first)))  # the first tokens
        assert_caught(
            expected,
            written(
                expected, into(before, compressed(rows.flip(1), slots, lengths, lambda e, n: range(n - wins[e], n)))
            ),
        )
        assert_caught(expected, written(expected, before))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["rope", "omni"])
def test_heads_that_keep_all_but_a_window(kind, dtype):
    lengths, wins, first = [5, 9], [3, 2, 4, 0], [1, -1, 0, 6]
    slots = [0, 30, 10, 20]
    key, value = some(14, 2, 8, dtype=dtype), some(14, 2, 8, dtype=dtype, seed=1)
    caches = [some(4, 10, 1, 8, dtype=dtype, seed=s) for s in (2, 3)]
    inputs = [key, value, *caches, i32(slots), i32(wins), i32(lengths), i32(first)]
    name, param = (
        ("ReshapeAndCacheOperation", {"compressType": 2}) if kind == "rope" else ("ReshapeAndCacheOmniOperation", {})
    )
    outputs = golden.run(name, param, inputs)
    assert golden.changed_inputs(name, param) == [2, 3]

    def keep(entry, length, shift=0, with_mean=kind == "rope"):
        start, window = first[entry] + shift, wins[entry]
        if first[entry] == -1:
            return list(range(length))
        mean = [list(range(start, start + window))] if with_mean and window else []
        return [*range(start), *mean, *range(start + window, length)]

    for expected, rows, before in zip(outputs, (key, value), caches):
        after = into(before, compressed(rows, slots, lengths, keep))
        assert np.allclose(applied(before, expected), after, rtol=1e-14, atol=0)
        assert expected.values.size == 8 * (5 + 9 + (3 + 6 if kind == "rope" else 2 + 5))
        rounded = torch.tensor(after).to(TYPES[dtype])
        assert_sound(expected, written(expected, rounded))
        for wrong in (
            lambda e, n: keep(e, n, with_mean=kind != "rope"),
            lambda e, n: keep(e, n, shift=1 if first[e] >= 0 and first[e] + wins[e] < n else 0),
            lambda e, n: list(range(n)),
        ):
            off = torch.tensor(into(before, compressed(rows, slots, lengths, wrong))).to(TYPES[dtype])
            assert_caught(expected, written(expected, off))
        if kind == "rope":
            found = compressed(rows, slots, lengths, keep)
            sums = {slot: row if row.dim() == 1 else row.sum(0) for slot, row in found.items()}
            assert_caught(expected, written(expected, torch.tensor(into(before, sums)).to(TYPES[dtype])))


@pytest.mark.parametrize("compress", [0, 1, 2])
def test_rows_seen_through_strides(compress):
    """The second head of keys and the first of values for both heads: the operation on what torch sees so."""
    key, value = some(6, 2, 8), some(6, 2, 8, seed=1)
    cache = some(4, 5, 2 if compress == 0 else 1, 8, seed=3)
    slots, extra = slots_in(6, 20), []
    if compress:
        slots, extra = i32([0, 8]), [i32([3, 2]), i32([6])] + ([i32([1, -1])] if compress == 2 else [])
    param, strides = {"compressType": compress}, torch.tensor([16, 0, 1])
    tail = [strides, strides, torch.tensor([8]), torch.tensor([0])]
    looks = golden.run("ReshapeAndCacheWithStrideOperation", param, [key, value, cache, cache, slots, *extra, *tail])
    seen = [t.as_strided((6, 2, 8), (16, 0, 1), offset).contiguous() for t, offset in ((key, 8), (value, 0))]
    oracle = golden.run("ReshapeAndCacheOperation", param, [*seen, cache, cache, slots, *extra])
    dense = golden.run("ReshapeAndCacheOperation", param, [key, value, cache, cache, slots, *extra])
    for look, same, other in zip(looks, oracle, dense):
        assert (look.places == same.places).all() and (look.values == same.values).all()
        assert_caught(look, other.values)
    tail[2] = torch.tensor([9])
    with pytest.raises(Exception, match="leaves the 96 elements of key"):
        golden.run("ReshapeAndCacheWithStrideOperation", param, [key, value, cache, cache, slots, *extra, *tail])
    assert golden.changed_inputs("ReshapeAndCacheWithStrideOperation", {"kvCacheCfg": 1}) == [1]


def test_keys_alone_through_strides():
    key, cache, slots = some(4, 2, 8), some(2, 4, 2, 8, seed=1), i32([7, 0, 3, 5])
    inputs = [key, cache, slots, torch.tensor([8, 16, 1]), torch.tensor([4])]
    (expected,) = golden.run("ReshapeAndCacheWithStrideOperation", {"kvCacheCfg": 1}, inputs)
    after = cache.clone()
    after.view(8, 2, 8)[slots.long()] = key.as_strided((4, 2, 8), (8, 16, 1), 4)
    assert_writes(expected, cache, after, 64)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("layout", ["rows", "fractal"])
def test_kv_cache(layout, dtype):
    lengths, ends = [3, 0, 5], [3, 4, 7]
    rows, past = some(8, 64, dtype=dtype), some(2, 4, 9, 64, dtype=dtype, seed=1)
    after, start = past.clone(), 0
    for batch, (length, end) in enumerate(zip(lengths, ends)):
        after[1, batch, end - length : end] = rows[start : start + length]
        start += length
    if layout == "fractal":
        width = 32 if dtype == "int8" else 16
        past, after = (t.reshape(2, 4, 9, -1, width).transpose(2, 3).contiguous() for t in (past, after))
    inputs = [rows, i32([1]), past, i32(ends), i32(lengths)]
    (expected,) = golden.run("KvCacheOperation", "null", inputs, fractal=[2] if layout == "fractal" else [])
    assert expected.written_input == 2 and golden.changed_inputs("KvCacheOperation") == [2]
    assert_writes(expected, past, after, 8 * 64)
    assert_caught(expected, written(expected, after.flip(0)))  # another layer
    assert_caught(expected, written(expected, after.roll(1, 2 if layout == "rows" else 3)))  # a row late
    assert_caught(expected, written(expected, after.roll(1, 1)))  # another sequence


def test_kv_cache_of_four_dimensions():
    rows, past = some(2, 3, 2, 4), some(1, 2, 6, 8, seed=1)
    (expected,) = golden.run("KvCacheOperation", {}, [rows, i32([0]), past, i32([6, 3]), i32([3, 3])])
    after = past.clone()
    after[0, 0, 3:6], after[0, 1, 0:3] = rows[0].reshape(3, 8), rows[1].reshape(3, 8)
    assert_writes(expected, past, after, 48)


def test_block_copy():
    caches = [some(9, 4, 2, 8), some(9, 4, 2, 6, seed=1)]
    inputs = [*caches, i32([5, 2, 2]), i32([0, 7, 8]), i32([2, 2, 3])]
    outputs = golden.run("BlockCopyOperation", {}, inputs)
    assert golden.changed_inputs("BlockCopyOperation") == [0, 1]
    for place, (expected, before) in enumerate(zip(outputs, caches)):
        after = before.clone()
        after[[0, 7]], after[8] = before[5], before[2]
        assert_writes(expected, before, after, 3 * before[0].numel())
        assert expected.written_input == place
        late = before.clone()
        late[0], late[[7, 8]] = before[5], before[2]
        assert_caught(expected, written(expected, late))
        assert_caught(expected, written(expected, before))
        half = after.clone()
        half[8, 3] = before[8, 3]
        assert_caught(expected, written(expected, half))  # the last row of a block not copied


@pytest.mark.parametrize("layout", ["rows", "fractal"])
@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("with_starts", [False, True])
def test_paged_cache_load(layout, running, with_starts):
    lengths, tables = [5, 0, 9], i32([[3, 1, 0, 6], [2, 2, 2, 2], [5, 0, 4, 7]])
    starts = [4, 0, 0] if with_starts else None
    widths = (2, 16), (2, 8)
    caches = [some(8, 4, *w, seed=i) for i, w in enumerate(widths)]
    given = [c if layout == "rows" else to_nz(c.reshape(32, -1), 8, 16) for c in caches]
    buffers = [some(16, *w, seed=5) if layout == "rows" else some(16, w[0] * w[1], seed=5) for w in widths]
    lens = i32(np.cumsum([0, *lengths]).tolist() if running else lengths)
    inputs = [*given, tables, lens, *buffers, *([i32(starts)] if starts else [])]
    outputs = golden.run("PagedCacheLoadOperation", {}, inputs)
    assert golden.changed_inputs("PagedCacheLoadOperation") == [4, 5]
    for place, (expected, cache, before) in enumerate(zip(outputs, caches, buffers)):
        rows = []
        for i, length in enumerate(lengths):
            blocks = tables[i, (starts[i] // 4 if starts else 0) :].long()
            rows.append(cache[blocks].reshape(-1, *cache.shape[2:])[:length])
        after = before.clone()
        after[:14] = torch.cat(rows).reshape(14, *before.shape[1:])
        assert expected.written_input == 4 + place
        assert_writes(expected, before, after, 14 * before[0].numel())
        assert any("running sums" in note for note in expected.notes) == running
        assert_caught(expected, written(expected, after.roll(1, 0)))
        assert_caught(expected, written(expected, before))
        last = after.clone()
        last[13] = after[12]
        assert_caught(expected, written(expected, last))


def test_blocks_that_are_not_there_take_no_row():
    cache, buffer = some(4, 2, 1, 8), some(5, 1, 8, seed=1)
    tables = i32([[1, -1, 3]])
    inputs = [cache, cache, tables, i32([5]), buffer, buffer]
    expected, _ = golden.run("PagedCacheLoadOperation", {}, inputs)
    after = buffer.clone()
    after[:3] = torch.stack([cache[1, 0], cache[1, 1], cache[3, 0]])
    assert_writes(expected, buffer, after, 24)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_norm_rope_reshape(dtype):
    tokens, hidden, width = 5, 32, 8
    x, gamma, head = (
        some(tokens, 1, hidden, dtype=dtype),
        some(hidden, dtype=dtype, seed=1),
        some(tokens, width, dtype=dtype, seed=2),
    )
    theta = torch.arange(tokens)[:, None] * torch.rand(width // 2, generator=torch.Generator().manual_seed(0))
    cos, sin = (f(torch.cat([theta, theta], -1)).to(x.dtype) for f in (torch.cos, torch.sin))
    cache, slots = some(3, 4, 1, hidden + width, dtype=dtype, seed=3), i32([11, 0, -1, 5, 3])

    def kernel(kind, epsilon=1e-4, sign=1, cos=cos, slots=slots):
        normed = F.rms_norm(x.to(kind), (hidden,), gamma.to(kind), epsilon)[:, 0]
        turned = torch.cat([-head[:, width // 2 :], head[:, : width // 2]], -1).to(kind)
        rows = torch.cat([normed, head.to(kind) * cos.to(kind) + sign * turned * sin.to(kind)], -1)
        after = cache.to(kind).clone()
        after.view(12, -1)[slots[slots >= 0].long()] = rows[slots >= 0]
        return after

    inputs = [x, gamma, head, cos, sin, slots, cache]
    (expected,) = golden.run("NormRopeReshapeOperation", {"epsilon": 1e-4}, inputs)
    assert golden.changed_inputs("NormRopeReshapeOperation") == [6]
    assert np.allclose(applied(cache, expected), numbers(kernel(torch.float64)), rtol=1e-12, atol=1e-12)
    assert expected.written_input == 6 and expected.places.shape == (4, 40)
    assert_sound(expected, written(expected, kernel(torch.float32).to(x.dtype)))
    for wrong in ({"epsilon": 1e-1}, {"sign": -1}, {"cos": cos.roll(1, 0)}, {"slots": slots.roll(1)}):
        assert_caught(expected, written(expected, kernel(torch.float32, **wrong).to(x.dtype)))


@mutants_of("ReshapeAndCacheOperation")
def wrong_caches(trial):
    key, value = some(6, 2, 8), some(6, 2, 8, seed=1)
    caches, slots = [some(4, 5, 2, 8, seed=n) for n in (2, 3)], i32([13, 0, -1, 7, 19, 4])
    keys, _ = trial.run({}, [key, value, *caches, slots])

    def after(rows=key, slots=slots, last=6):
        cache = caches[0].clone()
        for token in range(last):
            if slots[token] >= 0:
                cache.view(20, 2, 8)[slots[token]] = rows[token]
        return written(keys, cache)

    trial.sound(keys, after())
    trial.caught("rows to the slots of others", keys, after(rows=key.roll(1, 0)))
    trial.caught("slots off by one", keys, after(slots=torch.where(slots < 0, slots, (slots + 1) % 20)))
    trial.caught("the last token not written", keys, after(last=5))
    trial.caught("values in the cache of keys", keys, after(rows=value))
    trial.caught("heads swapped", keys, after(rows=key.flip(1)))


def kept_rows(trial, param, keep, mutants):
    """Two sequences of two heads; `keep` gives the tokens of each, or lists of which the mean is written."""
    lengths, slots = [5, 9], [0, 30, 10, 20]
    key, value = some(14, 2, 8), some(14, 2, 8, seed=1)
    caches = [some(4, 10, 1, 8, seed=s) for s in (2, 3)]
    wins, first = [3, 2, 4, 0], [1, -1, 0, 6]
    keys, _ = trial.run(param, [key, value, *caches, i32(slots), i32(wins), i32(lengths), i32(first)])
    result = lambda keep, rows=key: written(
        keys, torch.tensor(into(caches[0], compressed(rows, slots, lengths, keep))).half()
    )
    trial.sound(keys, result(keep))
    for name, wrong in mutants.items():
        trial.caught(name, keys, result(wrong))
    trial.caught("heads swapped", keys, result(keep, key.flip(1)))
    trial.caught("nothing written", keys, written(keys, caches[0]))


@mutants_of("ReshapeAndCacheOmniOperation")
def wrong_omni_caches(trial):
    wins, first = [3, 2, 4, 0], [1, -1, 0, 6]

    def keep(entry, length, shift=0, more=0):
        start = first[entry] + shift
        if first[entry] == -1:
            return list(range(length))
        return [*range(start), *range(start + wins[entry] + more, length)]

    shifted = lambda entry, length: keep(entry, length, shift=int(entry == 0))
    shorter = lambda entry, length: keep(entry, length, more=-int(entry == 0))
    everything = lambda entry, length: list(range(length))
    mutants = {"the window off by one": shifted, "a window too short by one": shorter, "nothing left out": everything}
    kept_rows(trial, {}, keep, mutants)


@mutants_of("ReshapeAndCacheWithStrideOperation")
def wrong_strided_caches(trial):
    key, cache, slots = some(4, 2, 8), some(2, 4, 2, 8, seed=1), i32([7, 0, 3, 5])
    inputs = [key, cache, slots, torch.tensor([8, 16, 1]), torch.tensor([4])]
    (keys,) = trial.run({"kvCacheCfg": 1}, inputs)

    def after(strides=(8, 16, 1), offset=4, slots=slots):
        result = cache.clone()
        result.view(8, 2, 8)[slots.long()] = key.as_strided((4, 2, 8), strides, offset)
        return written(keys, result)

    trial.sound(keys, after())
    trial.caught("the strides not followed", keys, after(strides=(16, 8, 1), offset=0))
    trial.caught("the offset not read", keys, after(offset=0))
    trial.caught("slots in another order", keys, after(slots=slots.roll(1)))


@mutants_of("KvCacheOperation")
def wrong_kv_caches(trial):
    rows, past = some(8, 64), some(2, 4, 9, 64, seed=1)
    lengths, ends = [3, 0, 5], [3, 4, 7]
    (expected,) = trial.run("null", [rows, i32([1]), past, i32(ends), i32(lengths)])

    def after(layer=1, shift=0, batch_shift=0, missing=0):
        cache, start = past.clone(), 0
        for batch, (length, end) in enumerate(zip(lengths, ends)):
            for i in range(length - missing):
                cache[layer, batch + batch_shift, end - length + shift + i] = rows[start + i]
            start += length
        return written(expected, cache)

    trial.sound(expected, after())
    trial.caught("another layer", expected, after(layer=0))
    trial.caught("a row late", expected, after(shift=1))
    trial.caught("another sequence", expected, after(batch_shift=1))
    trial.caught("the last token not written", expected, after(missing=1))


@mutants_of("BlockCopyOperation")
def wrong_block_copies(trial):
    caches = [some(9, 4, 2, 8), some(9, 4, 2, 6, seed=1)]
    keys, _ = trial.run({}, [*caches, i32([5, 2]), i32([0, 7, 8]), i32([2, 3])])

    def after(pairs, rows=4):
        cache = caches[0].clone()
        for source, target in pairs:
            cache[target, :rows] = caches[0][source, :rows]
        return written(keys, cache)

    trial.sound(keys, after([(5, 0), (5, 7), (2, 8)]))
    trial.caught("the sums of counts not followed", keys, after([(5, 0), (2, 7), (2, 8)]))
    trial.caught("the last block not copied", keys, after([(5, 0), (5, 7)]))
    trial.caught("the last row of a block not copied", keys, after([(5, 0), (5, 7), (2, 8)], rows=3))
    trial.caught("sources and targets swapped", keys, after([(0, 5), (7, 5), (8, 2)]))


@mutants_of("PagedCacheLoadOperation")
def wrong_cache_loads(trial):
    lengths, tables = [5, 9], i32([[3, 1, 0], [5, 2, 4]])
    cache, buffer = some(8, 4, 2, 16), some(16, 2, 16, seed=5)
    keys, _ = trial.run({}, [cache, cache, tables, i32(lengths), buffer, buffer])

    def after(tables=tables, first=0, last=14):
        rows = [cache[tables[i].long()].reshape(12, 2, 16)[first : first + n] for i, n in enumerate(lengths)]
        result = buffer.clone()
        result[:last] = torch.cat(rows)[:last]
        return written(keys, result)

    trial.sound(keys, after())
    trial.caught("blocks in the order of the cache", keys, after(tables=i32([[0, 1, 2], [3, 4, 5]])))
    trial.caught("the table of the other sequence", keys, after(tables=tables.flip(0)))
    trial.caught("the last row not read", keys, after(last=13))
    trial.caught("rows off by one", keys, after(first=1))


@mutants_of("NormRopeReshapeOperation")
def wrong_norm_rope_reshapes(trial):
    x, gamma, head = some(5, 1, 32), some(32, seed=1), some(5, 8, seed=2)
    theta = torch.arange(5)[:, None] * torch.rand(4, generator=torch.Generator().manual_seed(0))
    cos, sin = (f(torch.cat([theta, theta], -1)).half() for f in (torch.cos, torch.sin))
    cache, slots = some(3, 4, 1, 40, seed=3), i32([11, 0, -1, 5, 3])
    (expected,) = trial.run({"epsilon": 1e-2}, [x, gamma, head, cos, sin, slots, cache])

    def after(epsilon=1e-2, sign=1, late=0, slots=slots, weight=gamma):
        normed = F.rms_norm(x.float(), (32,), weight.float(), epsilon)[:, 0]
        turned = torch.cat([-head[:, 4:], head[:, :4]], -1).float()
        angles = [t.roll(late, 0).float() for t in (cos, sin)]
        rows = torch.cat([normed, head.float() * angles[0] + sign * turned * angles[1]], -1).half()
        result = cache.clone()
        result.view(12, -1)[slots[slots >= 0].long()] = rows[slots >= 0]
        return written(expected, result)

    trial.sound(expected, after())
    trial.caught("no epsilon", expected, after(epsilon=0))
    trial.caught("turned the other way", expected, after(sign=-1))
    trial.caught("the angles of the token before", expected, after(late=1))
    trial.caught("slots in another order", expected, after(slots=slots.roll(1)))
    trial.caught("no gamma", expected, after(weight=torch.ones(32)))


def test_what_cannot_be_computed_says_so():
    key, cache, slots = some(3, 2, 8), some(2, 4, 2, 8, seed=1), i32([7, 0, 3])
    one = some(2, 4, 1, 8, seed=1)
    wins, lengths = i32([1, 2]), i32([3])
    blocks = [i32([1]), i32([0])]
    rope = [some(3, 1, 8), some(8), some(3, 4), some(3, 4), some(3, 4), slots, some(2, 4, 1, 12)]
    for name, param, inputs, words in [
        (
            "ReshapeAndCache",
            {},
            [key, key, cache, cache, i32([8, 0, 1])],
            "slot 8 of token 0 is not one of the 8 of keyCache",
        ),
        ("ReshapeAndCache", {}, [key, key, cache, cache, i32([1, 0])], "there are 2 slots for 3 tokens"),
        ("ReshapeAndCache", {}, [key, key, cache, cache, torch.tensor([0.0, 1, 2])], "not of whole numbers"),
        ("ReshapeAndCache", {}, [key, key, one, cache, slots], "is not a cache for rows of 16 elements"),
        ("ReshapeAndCache", {"kvCacheCfg": 2}, [key, key, cache, cache, slots], "is not a cache for rows"),
        ("ReshapeAndCache", {}, [key, key, None, cache, slots], r"input 2 \(keyCache\) was not recorded"),
        (
            "ReshapeAndCache",
            {"compressType": 1, "kvCacheCfg": 1},
            [key, cache, slots],
            "compressType 1 with kvCacheCfg 1",
        ),
        ("ReshapeAndCache", {"compressType": 3}, [key, cache, slots], "not in range"),
        (
            "ReshapeAndCache",
            {"compressType": 1},
            [key, key, one, one, slots, wins, lengths],
            "there are 3 slots, 2 wins",
        ),
        (
            "ReshapeAndCache",
            {"compressType": 1},
            [key, key, one, one, i32([0, 7]), wins, lengths],
            "2 rows from slot 7 on leave the 8",
        ),
        (
            "ReshapeAndCache",
            {"compressType": 1},
            [key, key, one, one, i32([0, 1]), wins + 2, lengths],
            "entry 1 compresses 4 tokens",
        ),
        (
            "ReshapeAndCache",
            {"compressType": 1},
            [key, key, one, one, i32([0, 1]), wins, i32([4])],
            "do not add up to the 3 tokens",
        ),
        ("ReshapeAndCacheOmni", {}, [key, key, one, one, i32([0, 1]), wins, lengths, i32([-2, 0])], "from -2 on"),
        (
            "ReshapeAndCacheOmni",
            {},
            [key, key, one, one, i32([0, 1]), wins, lengths, i32([0, 2])],
            "compresses 2 tokens from 2 on",
        ),
        ("KvCache", {}, [some(3, 8), i32([2]), some(2, 1, 4, 8), i32([3]), i32([3])], "layerId has the element 2"),
        ("KvCache", {}, [some(3, 8), i32([0]), some(2, 1, 4, 8), i32([5]), i32([3])], "tokenOffset has the element 5"),
        ("KvCache", {}, [some(3, 8), i32([0]), some(2, 1, 4, 8), i32([2]), i32([3])], "3 tokens that end at row 2"),
        ("KvCache", {}, [some(3, 8), i32([0]), some(2, 1, 4, 6), i32([3]), i32([3])], "is not a cache for rows of 8"),
        ("KvCache", {}, [some(3, 8), i32([0]), some(2, 1, 4, 8), i32([1, 1]), i32([1, 1])], "for past of 1 sequences"),
        (
            "KvCache",
            {},
            [some(1, 3, 2, 4), i32([0]), some(2, 1, 4, 8), i32([2]), i32([2])],
            "four dimensions with shorter",
        ),
        ("BlockCopy", {}, [cache, cache, i32([2]), i32([0]), i32([1])], "srcIndices has the element 2"),
        ("BlockCopy", {}, [cache, cache, i32([1]), i32([1]), i32([1])], "block 1 that is read and written"),
        ("BlockCopy", {}, [cache, cache, *blocks, i32([2])], "cumSum has the element 2"),
        ("BlockCopy", {}, [cache, cache, *blocks, i32([1, 1])], "cumSum does not tell"),
        ("PagedCacheLoad", {}, [cache, cache, i32([[2]]), i32([3]), key, key], "block 2 for row 0"),
        ("PagedCacheLoad", {}, [cache, cache, i32([[0]]), i32([5]), key, key], "beyond the 1 columns|row 3"),
        ("PagedCacheLoad", {}, [cache, cache, i32([[0]]), i32([1, 2, 3]), key, key], "contextLens has 3 elements"),
        ("PagedCacheLoad", {}, [cache, cache, i32([[0]]), i32([-1]), key, key], "-1 rows in contextLens"),
        ("PagedCacheLoad", {}, [cache, cache, i32([[0]]), i32([1]), key, key, i32([-4])], "which starts at -4"),
        ("NormRopeReshape", {"rotaryCoeff": 4}, rope, "rotaryCoeff 4"),
        ("NormRopeReshape", {"precisionMode": 1}, rope, "precisionMode 1"),
        ("NormRopeReshape", {}, [*rope[:5], i32([0, 1, 8]), rope[6]], "slot 8 of token 2"),
        ("NormRopeReshape", {}, [rope[0], rope[1], some(2, 4), *rope[3:]], "do not go together"),
    ]:
        with pytest.raises(Exception, match=words):
            golden.run(name + "Operation", param, inputs)
