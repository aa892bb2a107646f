"""Operations that only move elements, bit for bit against NumPy and torch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden_oracle import assert_agrees, assert_caught, golden, normal, numbers, whole
from mutants import mutants_of

TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "int8": torch.int8}


def some(*shape, dtype="float16", seed=0):
    """Every element another one where the type has enough of them, so that no mix-up goes unseen."""
    count = int(np.prod(shape))
    generator = torch.Generator().manual_seed(seed)
    return (torch.randperm(count, generator=generator) % 251 - 120).to(TYPES[dtype]).reshape(shape)


def one(kind, param, inputs, **options):
    (expected,) = golden.run(kind, param, inputs, **options)
    return expected


def assert_moved(expected, oracle):
    assert_agrees(expected, oracle, tolerance=0)
    assert (expected.bound("float16") == 0).all()


def with_infinities(x):
    x = x.clone()
    x.view(-1)[:3] = torch.tensor([float("nan"), float("inf"), -float("inf")])
    return x


def taken(x, places, axis, batch_dims):
    if batch_dims == 0:
        return np.take(x, places, axis)
    return np.stack([taken(a, b, axis - 1, batch_dims - 1) for a, b in zip(x, places)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("shape", "places", "axis", "batch_dims"),
    [
        ((7, 5), (3,), 0, 0),
        ((7, 5), (2, 2), 1, 0),
        ((3, 4, 5), (6,), -2, 0),
        ((3, 4, 5), (3, 2), 1, 1),
        ((3, 4, 5), (3, 2), 2, 1),
        ((2, 3, 4, 5), (2, 3, 6), 2, 2),
        ((2, 3, 4, 5), (2, 3), 3, 2),
        ((9,), (), 0, 0),
    ],
)
def test_gather(shape, places, axis, batch_dims, dtype):
    x = some(*shape, dtype=dtype)
    indices = whole(0, shape[axis], *places, dtype=torch.int64 if dtype == "int8" else torch.int32)
    expected = one("GatherOperation", {"axis": axis, "batchDims": batch_dims}, [x, indices])
    assert_moved(expected, taken(numbers(x), indices.numpy(), axis % len(shape), batch_dims))
    if dtype == "float16" and places:
        assert_caught(expected, taken(numbers(x), (indices.numpy() + 1) % shape[axis], axis % len(shape), batch_dims))


def test_gather_of_a_large_table_reads_the_rows_alone():
    table = np.zeros((1 << 16, 64), np.float16)
    table[:, 0] = np.arange(1 << 16) % 2048
    expected = one("GatherOperation", {}, [table, np.array([65535, 3], np.int32)], memory_bytes=10000)
    assert_moved(expected, table[[65535, 3]])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "axis"), [((4, 6), 0), ((4, 6), -1), ((2, 3, 4), 1), ((12,), 0), ((2, 2, 2, 6), 3)])
def test_concat_and_split_undo_each_other(shape, axis, dtype):
    x, wider = some(*shape, dtype=dtype), list(shape)
    wider[axis] = 3
    y = some(*wider, dtype=dtype, seed=1)
    joined = one("ConcatOperation", {"concatDim": axis}, [x, y])
    assert_moved(joined, torch.cat([x, y], axis))
    assert_caught(joined, torch.cat([y, x], axis))
    parts = golden.run("SplitOperation", {"splitDim": axis, "splitSizes": [shape[axis], 3]}, [torch.cat([x, y], axis)])
    for part, oracle in zip(parts, (x, y)):
        assert_moved(part, oracle)


@pytest.mark.parametrize("parts", [2, 3])
def test_split_in_equal_parts(parts):
    x = some(4, 6, 5)
    outputs = golden.run("SplitOperation", {"splitDim": 1, "splitNum": parts}, [x])
    assert len(outputs) == parts
    for expected, oracle in zip(outputs, torch.chunk(x, parts, 1)):
        assert_moved(expected, oracle)
    assert_caught(outputs[0], outputs[1].values)  # parts in the wrong order
    assert_caught(outputs[0], numbers(x).reshape(-1)[: outputs[0].values.size].reshape(outputs[0].values.shape))
    three = golden.run("SplitOperation", {"splitDim": -1, "splitSizes": [1, 0, 4]}, [x])
    assert [part.values.shape for part in three] == [(4, 6, 1), (4, 6, 0), (4, 6, 4)]


def test_concat_of_three_and_of_one_without_elements():
    x, y, z = (some(2, n, seed=n) for n in (3, 4, 5))
    assert_moved(one("ConcatOperation", {"concatDim": 1}, [x, y, z]), torch.cat([x, y, z], 1))
    expected = one("ConcatOperation", {"concatDim": 1}, [None, y])
    assert_moved(expected, y)
    assert "has no elements" in expected.notes[0]


@pytest.mark.parametrize(
    ("shape", "offsets", "size"),
    [
        ((9,), [2], [4]),
        ((4, 6), [-3, 1], [2, -1]),
        ((2, 3, 4), [0, 2, 0], [-1, 1, 3]),
        ((2, 3, 4, 5), [1, 0, -2, 4], [1, 3, 2, 1]),
        ((2, 2, 2, 2, 2, 2, 2, 3), [0, 1, 0, 1, 0, 1, 0, 1], [2, 1, 2, 1, 2, 1, 2, 2]),
        ((4, 6), [4, 0], [-1, 6]),
    ],
)
def test_slice(shape, offsets, size):
    x = some(*shape)
    starts = [o % n if o < 0 else o for o, n in zip(offsets, shape)]
    picks = tuple(slice(o, n if s == -1 else o + s) for o, s, n in zip(starts, size, shape))
    expected = one("SliceOperation", {"offsets": offsets, "size": size}, [x])
    assert_moved(expected, x[picks])
    if len(shape) == 3:
        assert_caught(expected, numbers(x)[:, 1:2, :3])
        assert_caught(expected, numbers(x)[:, 2:, 1:])
        assert_caught(expected, numbers(x)[::-1, 2:, :3])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("perm", [[0], [1, 0], [0, 2, 1], [2, 0, 1], [0, 2, 1, 3], [3, 2, 1, 0], [4, 0, 2, 1, 3]])
def test_transpose(perm, dtype):
    x = some(*[2, 3, 4, 5, 3][: len(perm)], dtype=dtype)
    expected = one("TransposeOperation", {"perm": perm}, [x])
    assert_moved(expected, x.permute(*perm))
    if len(perm) > 1:
        assert_caught(expected, numbers(x).reshape(expected.values.shape))  # not moved at all
    if perm == [2, 0, 1]:  # with the permutation undone, and with one axis reversed
        assert_caught(expected, numbers(x.permute(1, 2, 0)).reshape(expected.values.shape))
        assert_caught(expected, numbers(x.permute(2, 0, 1))[::-1])


def test_nan_and_infinities_move_along():
    x = with_infinities(normal(4, 4))
    assert_moved(one("TransposeOperation", {"perm": [1, 0]}, [x]), x.T)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [([3, 4], [4, 1], 0), ([4, 3], [1, 4], 2), ([2, 2, 2], [9, 0, 3], 1), ([5], [0], 7), ([], [], 3)],
)
def test_as_strided(size, stride, offset, dtype):
    x = some(4, 6, dtype=dtype)
    expected = one("AsStridedOperation", {"size": size, "stride": stride, "offset": [offset]}, [x])
    assert_moved(expected, torch.as_strided(x, size, stride, offset))
    if size == [4, 3]:
        assert_caught(expected, numbers(torch.as_strided(x, size, stride, 0)))
        assert_caught(expected, numbers(torch.as_strided(x, size, [3, 1], offset)))
        assert_caught(expected, numbers(torch.as_strided(x, size, [1, 5], offset)))


@pytest.mark.parametrize("multiples", [[2, 1], [1, 3], [2, 3], [3, 1, 2], [2, 2, 1, 1]])
def test_repeat(multiples):
    x = some(2, 5)
    expected = one("RepeatOperation", {"multiples": multiples}, [x])
    assert_moved(expected, x.repeat(*multiples))
    if multiples == [2, 3]:
        assert_caught(expected, numbers(x.repeat_interleave(2, 0).repeat_interleave(3, 1)))
        assert_caught(expected, numbers(x.repeat_interleave(2, 0).repeat(1, 3)))
        assert_caught(expected, numbers(x.repeat(*multiples)).reshape(6, 10).reshape(4, 15)[::-1])


@pytest.mark.parametrize(
    ("shape", "starts", "ends"),
    [
        ((8,), [2], [5]),
        ((4, 6), [1, 0], [3, 6]),
        ((3, 4, 5), [0, 1, 2], [3, 3, 4]),
        ((2, 3, 2, 5), [1, 0, 0, 4], [2, 3, 2, 5]),
    ],
)
def test_set_value_writes_a_region_and_nothing_else(shape, starts, ends):
    dst, region = some(*shape), tuple(slice(s, e) for s, e in zip(starts, ends))
    src = some(*dst[region].shape, seed=5)
    param = {"starts": starts, "ends": ends, "strides": [1] * len(shape)}
    expected = one("SetValueOperation", param, [dst, src])
    assert expected.written_input == 0
    assert golden.changed_inputs("SetValueOperation", param) == [0]
    oracle = numbers(dst).copy()
    oracle[region] = numbers(src)
    whole_tensor = numbers(dst).copy()
    whole_tensor.flat[expected.places] = expected.values
    assert (whole_tensor == oracle).all()
    assert expected.values.size == src.numel()
    assert (np.diff(expected.places[:, 0]) > 0).all()


def test_a_large_tensor_is_not_read_to_set_a_part_of_it():
    dst, src = np.zeros((1 << 20, 8), np.float16), np.ones((1, 8), np.float16)
    param = {"starts": [70000, 0], "ends": [70001, 8], "strides": [1, 1]}
    expected = one("SetValueOperation", param, [dst, src], memory_bytes=1000)
    assert expected.places.tolist() == [list(range(560000, 560008))]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("mask_shape", [(4, 6), (1, 6), (4, 1), (6,)])
def test_fill_where_a_mask_says_so(mask_shape, dtype):
    x, mask = some(4, 6, dtype=dtype), whole(0, 2, *mask_shape, seed=3)
    expected = one("FillOperation", {"withMask": True, "value": [0.1]}, [x, mask])
    value = torch.tensor(0.1).to(x.dtype)  # rounded to the type of x
    assert_moved(expected, torch.where(mask != 0, value, x))
    assert_moved(one("FillOperation", {"value": [0.1]}, [x, mask != 0]), torch.where(mask != 0, value, x))
    assert_caught(expected, torch.where(mask == 0, value, x))  # the mask read the other way
    assert_caught(expected, torch.where(mask != 0, torch.zeros((), dtype=x.dtype), x))
    assert_caught(expected, x)  # nothing filled


def test_fill_without_a_mask():
    expected = one("FillOperation", {"withMask": False, "value": [-1.7], "outDim": [2, 3]}, [])
    assert_moved(expected, torch.full((2, 3), -1.7, dtype=torch.float16))
    expected = one("FillOperation", {"withMask": False, "value": [-3e38], "outDim": [2]}, [])
    assert {values[0] for values in expected.forms.values()} == {-np.inf, -65504.0}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", [((4, 6),) * 3, ((4, 1), (4, 6), (6,)), ((6,), (2, 1, 1), (1, 4, 6))])
def test_where(shapes, dtype):
    condition = (torch.arange(int(np.prod(shapes[0]))).reshape(shapes[0]) % 3 - 1).to(torch.int8)
    x, y = some(*shapes[1], dtype=dtype), some(*shapes[2], dtype=dtype, seed=1)
    expected = one("WhereOperation", {}, [condition, x, y])
    assert_moved(expected, torch.where(condition != 0, x, y))
    assert_caught(expected, torch.where(condition == 0, x, y))
    assert_caught(expected, torch.where(condition > 0, x, y))  # a negative condition is true, too
    assert_caught(expected, torch.broadcast_to(x, expected.values.shape))


def test_pad_takes_the_last_token_of_each_sequence():
    lengths = np.array([[3], [1], [4]], np.int32)
    x, ids = some(9, 5), np.zeros((3, 6), np.int64)
    expected = one("PadOperation", {}, [x, np.zeros((1, 9), np.int32), lengths, ids])
    assert_moved(expected, x[[2, 3, 7]])
    assert_caught(expected, numbers(x)[[0, 3, 4]])  # the first tokens
    assert_caught(expected, numbers(x)[[3, 4, 8]])  # one too far
    assert_caught(expected, numbers(x)[[2, 2, 7]])
    expected = one("PadOperation", {}, [x, None, np.array([[0], [2], [0]], np.int32), ids])
    assert expected.undefined[0].all() and not expected.undefined[1:].any()
    assert_moved(expected, x[[0, 1, 1]])


def unpadded(ids, lengths, offsets):
    batch, width = ids.shape
    packed = np.concatenate([row[:n] for row, n in zip(ids, lengths)])
    before = np.concatenate([[0], offsets[:-1]])
    shifts = np.repeat(before, lengths)
    rest = batch * width - packed.size
    return np.pad(packed, (0, rest))[None], before[:, None], np.pad(shifts, (0, rest))[None]


def test_unpad():
    ids = np.arange(100, 124, dtype=np.int64).reshape(4, 6)
    lengths, offsets = np.array([3, 6, 0, 1]), np.array([3, 3, 9, 14])
    inputs = [ids, offsets[:, None].astype(np.int32), np.array([[10]]), lengths[:, None].astype(np.int32)]
    outputs = golden.run("UnpadOperation", {}, inputs)
    packed, before, shifts = unpadded(ids, lengths, offsets)
    for expected, oracle in zip(outputs, (packed, before, shifts)):
        assert_moved(expected, oracle)
    assert_caught(outputs[0], ids.reshape(1, -1))  # nothing packed
    assert_caught(outputs[1], offsets[:, None])  # not shifted by one
    assert_caught(outputs[2], np.pad(np.repeat(offsets, lengths), (0, 14))[None])


@pytest.mark.parametrize(("dtype", "width"), [("float16", 16), ("bfloat16", 16), ("int8", 32)])
@pytest.mark.parametrize("shape", [(5, 7), (16, 32), (3, 17, 33), (1, 48, 8)])
def test_transdata_there_and_back(shape, dtype, width):
    x = some(*shape, dtype=dtype)
    batch, rows, columns = (1, *shape) if len(shape) == 2 else shape
    padded = np.zeros((batch, -(-rows // 16) * 16, -(-columns // width) * width))
    padded[:, :rows, :columns] = numbers(x)
    stored = padded.reshape(batch, padded.shape[1], -1, width).transpose(0, 2, 1, 3)
    expected = one("TransdataOperation", {"transdataType": 2}, [x])
    assert_moved(expected, stored)
    assert_caught(expected, padded.reshape(stored.shape) + (stored.shape[1] == 1))
    nz = torch.tensor(stored).to(x.dtype).contiguous()
    param = {"transdataType": "FRACTAL_NZ_TO_ND", "outCrops": [rows, columns]}
    back = one("TransdataOperation", param, [nz], fractal=[0])
    assert_moved(back, x.reshape(batch, rows, columns))


@mutants_of("GatherOperation")
def wrong_gathers(trial):
    x, indices = some(4, 6), torch.tensor([[5, 0], [1, 1], [2, 3], [0, 4]], dtype=torch.int32)
    (y,) = trial.run({"axis": 1, "batchDims": 1}, [x, indices])
    right = np.take_along_axis(numbers(x), indices.long().numpy(), 1)
    trial.sound(y, right)
    trial.caught("indices of another row", y, np.take_along_axis(numbers(x), np.roll(indices.numpy(), 1, 0), 1))
    trial.caught("indices off by one", y, np.take_along_axis(numbers(x), (indices.long().numpy() + 1) % 6, 1))
    trial.caught("in another order", y, right[:, ::-1])
    off = right.copy()
    off[-1, -1] = np.nextafter(np.float16(off[-1, -1]), np.float16(6e4))
    trial.caught("the last bit of the last element", y, off)


@mutants_of("ConcatOperation")
def wrong_concats(trial):
    x, y = some(4, 3), some(4, 3, seed=1)
    (joined,) = trial.run({"concatDim": 1}, [x, y])
    trial.sound(joined, torch.cat([x, y], 1))
    trial.caught("parts in another order", joined, torch.cat([y, x], 1))
    trial.caught("along another axis", joined, torch.cat([x, y], 0).reshape(4, 6))
    trial.caught("the first part twice", joined, torch.cat([x, x], 1))


@mutants_of("SplitOperation")
def wrong_splits(trial):
    x = some(4, 6)
    first, second = trial.run({"splitDim": 1, "splitNum": 2}, [x])
    trial.sound(first, x[:, :3])
    trial.caught("parts in another order", first, x[:, 3:])
    trial.caught("along another axis", first, x[:2].reshape(4, 3))
    trial.caught("interleaved", second, x[:, 1::2])
    trial.caught("off by one", second, x[:, 2:5])


@mutants_of("SliceOperation")
def wrong_slices(trial):
    x = some(3, 4, 5)
    (y,) = trial.run({"offsets": [0, 2, 1], "size": [-1, 1, 3]}, [x])
    trial.sound(y, x[:, 2:3, 1:4])
    trial.caught("off by one", y, x[:, 2:3, 2:5])
    trial.caught("the offset not read", y, x[:, 2:3, :3])
    trial.caught("another axis", y, x[:, 1:2, 2:5])


@mutants_of("TransposeOperation")
def wrong_transposes(trial):
    x = some(3, 3, 3)
    (y,) = trial.run({"perm": [2, 0, 1]}, [x])
    trial.sound(y, x.permute(2, 0, 1))
    trial.caught("nothing moved", y, x)
    trial.caught("the permutation the other way round", y, x.permute(1, 2, 0))
    trial.caught("only the last two axes", y, x.permute(0, 2, 1))


@mutants_of("AsStridedOperation")
def wrong_as_strideds(trial):
    x = some(4, 6)
    (y,) = trial.run({"size": [4, 3], "stride": [1, 4], "offset": [2]}, [x])
    look = lambda stride, offset: torch.as_strided(x, (4, 3), stride, offset)
    trial.sound(y, look((1, 4), 2))
    trial.caught("the offset not read", y, look((1, 4), 0))
    trial.caught("strides of rows and columns swapped", y, look((4, 1), 2))
    trial.caught("a stride off by one", y, look((1, 5), 2))


@mutants_of("RepeatOperation")
def wrong_repeats(trial):
    x = some(2, 5)
    (y,) = trial.run({"multiples": [2, 3]}, [x])
    trial.sound(y, x.repeat(2, 3))
    trial.caught("each element in a row", y, x.repeat_interleave(2, 0).repeat_interleave(3, 1))
    trial.caught("each row in a row", y, x.repeat_interleave(2, 0).repeat(1, 3))
    trial.caught("factors swapped", y, x.repeat(3, 2).reshape(4, 15))


@mutants_of("SetValueOperation")
def wrong_set_values(trial):
    dst, src = some(4, 6), some(2, 3, seed=5)
    (y,) = trial.run({"starts": [1, 2], "ends": [3, 5], "strides": [1, 1]}, [dst, src])

    def written(rows, columns, values):
        after = dst.clone()
        after[rows, columns] = values
        return numbers(after).reshape(-1)[y.places]

    trial.sound(y, written(slice(1, 3), slice(2, 5), src))
    trial.caught("nothing written", y, numbers(dst).reshape(-1)[y.places])
    trial.caught("off by one", y, written(slice(1, 3), slice(3, 6), src))
    trial.caught("the last row not written", y, written(slice(1, 2), slice(2, 5), src[:1]))
    trial.caught("rows in another order", y, written(slice(1, 3), slice(2, 5), src.flip(0)))


@mutants_of("FillOperation")
def wrong_fills(trial):
    x, mask = some(4, 6), whole(0, 2, 4, 6, seed=3)
    (y,) = trial.run({"withMask": True, "value": [0.1]}, [x, mask])
    fill = torch.tensor(0.1).half()
    trial.sound(y, torch.where(mask != 0, fill, x))
    trial.caught("the mask read the other way", y, torch.where(mask == 0, fill, x))
    trial.caught("zeros in place of the value", y, torch.where(mask != 0, torch.zeros(()).half(), x))
    trial.caught("nothing filled", y, x)
    trial.caught("the value of bfloat16", y, torch.where(mask != 0, fill.bfloat16().half(), x))


@mutants_of("WhereOperation")
def wrong_wheres(trial):
    condition = (torch.arange(24).reshape(4, 6) % 3 - 1).to(torch.int8)
    x, y = some(4, 6), some(4, 6, seed=1)
    (z,) = trial.run({}, [condition, x, y])
    trial.sound(z, torch.where(condition != 0, x, y))
    trial.caught("the condition read the other way", z, torch.where(condition == 0, x, y))
    trial.caught("a negative condition taken for false", z, torch.where(condition > 0, x, y))
    trial.caught("the condition not read", z, x)


@mutants_of("PadOperation")
def wrong_pads(trial):
    x, ids = some(9, 5), np.zeros((3, 6), np.int64)
    (y,) = trial.run({}, [x, np.zeros((1, 9), np.int32), np.array([[3], [1], [4]], np.int32), ids])
    trial.sound(y, x[[2, 3, 7]])
    trial.caught("the first token of each sequence", y, x[[0, 3, 4]])
    trial.caught("one token too far", y, x[[3, 4, 8]])
    trial.caught("the lengths not added up", y, x[[2, 0, 3]])


@mutants_of("UnpadOperation")
def wrong_unpads(trial):
    ids = np.arange(100, 124, dtype=np.int64).reshape(4, 6)
    lengths, offsets = np.array([3, 6, 0, 1]), np.array([3, 3, 9, 14])
    inputs = [ids, offsets[:, None].astype(np.int32), np.array([[10]]), lengths[:, None].astype(np.int32)]
    packed, before, shifts = trial.run({}, inputs)
    for expected, result in zip((packed, before, shifts), unpadded(ids, lengths, offsets)):
        trial.sound(expected, result)
    trial.caught("nothing packed", packed, ids.reshape(1, -1))
    trial.caught("one token too few of each sequence", packed, unpadded(ids, np.maximum(lengths - 1, 0), offsets)[0])
    trial.caught("offsets not moved by one", before, offsets[:, None])
    trial.caught("the offset of the sequence itself", shifts, np.pad(np.repeat(offsets, lengths), (0, 14))[None])


@mutants_of("TransdataOperation")
def wrong_transdatas(trial):
    x = some(32, 48)
    (y,) = trial.run({"transdataType": 2}, [x])
    pieces = x.reshape(32, 3, 16).transpose(0, 1)
    trial.sound(y, pieces[None])
    trial.caught("nothing moved", y, x.reshape(1, 3, 32, 16))
    trial.caught("pieces in another order", y, pieces.flip(0)[None])
    trial.caught("each piece transposed", y, x.reshape(2, 16, 3, 16).permute(2, 0, 3, 1).reshape(1, 3, 32, 16))


def test_what_cannot_be_computed_says_so():
    x, i32 = some(4, 6), torch.int32
    huge = 1 << 40
    for kind, param, inputs, words in [
        ("Gather", {}, [x, torch.tensor([4], dtype=i32)], "indices has the element 4, which is not between 0 and 4"),
        ("Gather", {}, [x, torch.tensor([-1], dtype=i32)], "element -1"),
        ("Gather", {"axis": 2}, [x, torch.tensor([1], dtype=i32)], "axis names the dimension 2"),
        ("Gather", {}, [x, torch.tensor([1.0])], "not of whole numbers"),
        ("Gather", {"axis": 1, "batchDims": 2}, [x, torch.zeros(4, 1, dtype=i32)], "batchDims 2 is beyond"),
        ("Gather", {"axis": 1, "batchDims": 1}, [x, torch.zeros(3, 1, dtype=i32)], "differ"),
        ("Concat", {"concatDim": 0}, [x, some(4, 5)], "cannot be joined"),
        ("Concat", {"concatDim": 0}, [x, some(4)], "cannot be joined"),
        ("Concat", {"concatDim": 5}, [x, x], "concatDim names the dimension 5"),
        ("Concat", {}, [None, None], "no input was recorded"),
        ("Split", {"splitDim": 1, "splitNum": 4}, [x], "has no 4 equal parts"),
        ("Split", {"splitNum": 0}, [x], "has no 0 equal parts"),
        ("Split", {"splitSizes": [huge, -huge, 4]}, [x], "do not add up"),
        ("Slice", {"offsets": [0, 0], "size": [5, 1]}, [x], "leave the dimension 0"),
        ("Slice", {"offsets": [-5, 0], "size": [1, 1]}, [x], "leave the dimension 0"),
        ("Slice", {"offsets": [1, 0], "size": [(1 << 63) - 1, 1]}, [x], "leave the dimension 0"),
        ("Slice", {"offsets": [0], "size": [1]}, [x], "offsets has 1 elements"),
        ("Transpose", {"perm": [0, 0]}, [x], "perm names the dimension 0 twice"),
        ("Transpose", {"perm": [0]}, [x], "perm has 1 elements"),
        ("Transpose", {"perm": "01"}, [x], "a list of whole numbers"),
        ("AsStrided", {"size": [5], "stride": [5], "offset": [4]}, [x], "leaves the 24 elements"),
        ("AsStrided", {"size": [2], "stride": [-1], "offset": [4]}, [x], "leaves the 24 elements"),
        ("AsStrided", {"size": [huge, huge], "stride": [0, 0], "offset": [0]}, [x], "leaves the 24"),
        ("AsStrided", {"size": [huge], "stride": [0], "offset": [0]}, [x], "give it more memory"),
        ("AsStrided", {"size": [3], "stride": [1 << 62], "offset": [0]}, [x], "leaves the 24"),
        ("AsStrided", {"size": [1], "stride": [1, 1], "offset": [0]}, [x], "has the strides"),
        ("Repeat", {"multiples": [huge, huge]}, [x], "too large"),
        ("Repeat", {"multiples": [huge, 1]}, [x], "give it more memory"),
        ("Repeat", {"multiples": [(1 << 63) - 1, 1]}, [x], "cannot be repeated"),
        ("Repeat", {"multiples": [2]}, [x], "multiples have 1 elements"),
        ("SetValue", {"starts": [0, 0], "ends": [5, 6]}, [x, x], "leave the dimension 0"),
        ("SetValue", {"starts": [0, 0], "ends": [1, 6]}, [x, x], "for a region of"),
        ("SetValue", {"starts": [0, 0], "ends": [4, 6], "strides": [1, 2]}, [x, x], "strides other than 1"),
        ("Fill", {"value": [1, 2]}, [x, x], "value has 2 elements"),
        ("Fill", {"value": [1]}, [x, some(5)], "do not go together"),
        ("Fill", {"withMask": False, "value": [1], "outDim": [huge, huge]}, [], "too large"),
        ("Fill", {"withMask": False, "value": [1], "outDim": [-1]}, [], "too large"),
        ("Where", {}, [x, some(5), x], "do not go together"),
        ("Pad", {}, [x, None, torch.tensor([5], dtype=i32)], "do not add up to the 4 rows"),
        (
            "Unpad",
            {},
            [torch.zeros(2, 3).long(), torch.zeros(2, 1).int(), torch.tensor([[4]]), torch.tensor([[4], [0]])],
            "seqLen has the element 4 for rows of 3",
        ),
        (
            "Unpad",
            {},
            [torch.zeros(2, 3).long(), torch.zeros(2, 1).int(), torch.tensor([[4]]), torch.tensor([[2], [0]])],
            "unlike tokenNum",
        ),
        ("Transdata", {"transdataType": 1, "outCrops": [4, 6]}, [x], "not the four dimensions"),
        ("Transdata", {"transdataType": 1, "outCrops": [17, 6]}, [some(1, 1, 16, 16)], "outCrops"),
        ("Transdata", {"transdataType": 2}, [some(9)], "not two or three dimensions"),
        ("Transdata", {}, [x], "transdataType 0"),
    ]:
        with pytest.raises(Exception, match=words):
            golden.run(kind + "Operation", param, inputs)
    with pytest.raises(Exception, match="x is stored as FRACTAL_NZ"):
        golden.run("TransposeOperation", {"perm": [1, 0]}, [x], fractal=[0])
