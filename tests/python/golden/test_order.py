"""Softmax, reductions, sums, sorting and what goes by index, against torch."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, numbers, whole
from mutants import mutants_of

I32 = torch.int32


def one(kind, param, inputs, **options):
    (expected,) = golden.run(kind + "Operation", param, inputs, **options)
    return expected


def over(x, axes):
    """Softmax over neighbouring axes, flattened to one."""
    first, last = axes[0] % x.dim(), axes[-1] % x.dim()
    flat = x.reshape(*x.shape[:first], -1, *x.shape[last + 1 :])
    return torch.softmax(flat, first).reshape(x.shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1, 8])
@pytest.mark.parametrize(
    ("shape", "axes"), [((5, 33), [-1]), ((5, 33), [0]), ((2, 3, 4, 5), [1, 2]), ((2, 3, 7), [0, 1, 2]), ((1,), [0])]
)
def test_softmax(shape, axes, scale, dtype):
    x = normal(*shape, dtype=dtype, scale=scale)
    expected = one("Softmax", {"axes": axes}, [x])
    assert_agrees(expected, over(x.double(), axes))
    assert_sound(expected, over(x.float(), axes).to(x.dtype))
    first, last = axes[0] % len(shape), axes[-1] % len(shape)
    assert np.allclose(expected.values.sum(tuple(range(first, last + 1))), 1)


def test_softmax_of_masked_and_of_large_values():
    x = normal(4, 16, dtype="float32", scale=30)
    x[0, 3:] = -float("inf")
    x[1] = -float("inf")
    x[2] = 60000
    x[3, 0] = float("nan")
    expected = one("Softmax", {"axes": [-1]}, [x])
    assert_agrees(expected, torch.softmax(x.double(), -1))
    assert_sound(expected, torch.softmax(x, -1))


@mutants_of("SoftmaxOperation")
def wrong_softmaxes(trial):
    x = normal(6, 4, 32, dtype="float16", scale=3)
    single = x.float()
    (y,) = trial.run({"axes": [-1]}, [x])
    trial.sound(y, torch.softmax(single, -1).half())
    trial.caught("another axis", y, torch.softmax(single, 1).half())
    without_last = single.exp() / single[..., :-1].exp().sum(-1, keepdim=True)
    trial.caught("the last element not in the sum", y, without_last.half())
    trial.caught("a scale that is off by 1 %", y, torch.softmax(single * 1.01, -1).half())
    narrow = x.exp().half()
    total = sum(narrow[..., i : i + 1] for i in range(32))
    trial.caught("added up in half", y, (narrow / total).half(), by=1.5)
    (flattened,) = trial.run({"axes": [1, 2]}, [x])
    trial.caught("only one of two axes", flattened, torch.softmax(single, 2).half())
    trial.sound(y, (single.exp() / single.exp().sum(-1, keepdim=True)).half())
    trial.missed(
        "the largest not subtracted, where nothing overflows",
        y,
        (single.exp() / single.exp().sum(-1, keepdim=True)).half(),
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", [[0], [-1], [0, 2], [1, 2], [0, 1, 2]])
def test_reduce(axes, dtype):
    x = normal(4, 5, 17, dtype=dtype)
    largest, smallest, total = (one("Reduce", {"reduceType": kind, "axis": axes}, [x]) for kind in (1, 2, 3))
    assert_agrees(largest, x.double().amax(axes), tolerance=0)
    assert_agrees(smallest, x.double().amin(axes), tolerance=0)
    assert (largest.bound() == 0).all()
    assert_agrees(total, x.double().sum(axes), tolerance=1e-10)
    assert_sound(total, x.float().sum(axes).to(x.dtype))
    if len(axes) == 2 and dtype != "bfloat16":
        others = [axis for axis in (0, 1, 2) if axis not in axes] + [axes[0]]
        for expected, function in ((largest, torch.amax), (smallest, torch.amin), (total, torch.sum)):
            wrong = function(x.float(), others).to(x.dtype)
            if wrong.shape == expected.values.shape:
                assert_caught(expected, wrong)
            assert_caught(expected, function(x.float()[:, :, :-1], axes).to(x.dtype).flip(0))
        short = x.float().clone()
        short.select(axes[1], -1).zero_()
        assert_caught(total, short.sum(axes).to(x.dtype))  # the last one not added


def test_reduce_of_integers_and_of_nan():
    x = whole(-1000, 1000, 6, 50, dtype=I32)
    expected = one("Reduce", {"reduceType": "REDUCE_SUM", "axis": [1]}, [x])
    assert_agrees(expected, x.sum(1), tolerance=0)
    assert (expected.bound("int32") == 0).all()
    x = normal(3, 4)
    x[1, 2] = float("nan")
    expected = one("Reduce", {"reduceType": 1, "axis": [1]}, [x])
    assert expected.undefined.tolist() == [False, True, False]


def running(x, axis, exclusive, reverse):
    x = x.flip(axis) if reverse else x
    sums = x.cumsum(axis)
    sums = sums - x if exclusive else sums
    return sums.flip(axis) if reverse else sums


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, -1, 1])
def test_cumsum(axis, exclusive, reverse, dtype):
    x = normal(3, 40, 5, dtype=dtype)
    param = {"axes": [axis], "exclusive": exclusive, "reverse": reverse}
    expected = one("Cumsum", param, [x])
    oracle = running(x.double(), axis, exclusive, reverse)
    assert np.abs(expected.values - numbers(oracle)).max() < 1e-12
    assert_sound(expected, oracle.to(x.dtype))
    if not exclusive:  # torch has no exclusive sums, and to subtract is another rounding
        assert_sound(expected, running(x.float(), axis, False, reverse).to(x.dtype))
    assert_caught(expected, running(x.float(), axis, exclusive, not reverse).to(x.dtype))
    assert_caught(expected, running(x.float(), axis, not exclusive, reverse).to(x.dtype))
    assert_caught(expected, running(x.float(), 1 if axis != 1 else 2, exclusive, reverse).to(x.dtype))


def test_cumsum_in_float16_is_a_form_of_its_own():
    x = normal(2, 300).abs()
    sums = torch.zeros(2, dtype=torch.float16)
    steps = []
    for i in range(300):
        sums = sums + x[:, i]
        steps.append(sums)
    expected = one("Cumsum", {"axes": [1]}, [x])
    assert_sound(expected, torch.stack(steps, 1))
    assert_sound(expected, x.float().cumsum(1).half())
    assert_caught(expected, x.float().cumsum(1).bfloat16().half())
    ints = whole(0, 100, 50, dtype=I32)
    assert_agrees(one("Cumsum", {"axes": [0]}, [ints]), ints.cumsum(0), tolerance=0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "num"), [((4, 50), 7), ((2, 3, 9), 9), ((30,), 1)])
def test_sort(shape, num, dtype):
    x = normal(*shape, dtype=dtype)
    values, places = golden.run("SortOperation", {"num": [num]}, [x], outputs=[(dtype, ()), ("int32", ())])
    oracle = torch.sort(x.double(), dim=-1, descending=True, stable=True)
    assert_agrees(values, oracle.values[..., :num], tolerance=0)
    assert_agrees(places, oracle.indices[..., :num], tolerance=0)
    if num > 1:
        ascending = torch.sort(x.double(), -1)
        assert_caught(values, ascending.values[..., :num])
        assert_caught(places, ascending.indices[..., :num])
        swapped = oracle.indices[..., :num].clone()
        swapped[..., :2] = swapped[..., :2].flip(-1)
        assert_caught(places, swapped)
        assert_caught(places, oracle.indices[..., :num] + 1)


def test_places_of_equal_numbers_stand_for_each_other():
    x = torch.tensor([[5, 3, 5, 1, 3, 3], [2, 2, 2, 2, 2, 2]]).half()
    values, places = golden.run("SortOperation", {"num": [4]}, [x], outputs=[("float16", ()), ("int32", ())])
    assert values.values.tolist() == [[5, 5, 3, 3], [2, 2, 2, 2]]
    assert places.values.tolist() == [[0, 2, 1, 4], [0, 1, 2, 3]]
    assert_sound(places, np.array([[2, 0, 5, 1], [5, 4, 3, 2]]))
    assert_caught(places, np.array([[2, 0, 5, 3], [5, 4, 3, 2]]))  # the place of a 1
    assert_caught(places, np.array([[1, 0, 5, 1], [5, 4, 3, 2]]))
    assert_caught(places, np.array([[2, 0, 5, 1], [5, 4, 3, 6]]))  # beyond the row
    x[0, 0] = float("nan")
    values, places = golden.run("SortOperation", {"num": [4]}, [x])
    assert values.undefined.tolist() == places.undefined.tolist() == [[True] * 4, [False] * 4]


@pytest.mark.parametrize("shape", [(9,), (3, 5), (2, 3, 4)])
def test_nonzero(shape):
    x = whole(-1, 2, *shape, dtype=torch.int64)
    places, count = golden.run("NonzeroOperation", {}, [x])
    found = torch.nonzero(x).T
    padded = np.zeros((len(shape), x.numel()))
    padded[:, : found.shape[1]] = found
    assert_agrees(places, padded, tolerance=0)
    assert_agrees(count, np.array([found.shape[1]]), tolerance=0)
    assert_caught(places, padded[:, ::-1])
    assert_caught(places, padded + (padded == 0))  # filled up with ones
    assert_caught(count, np.array([x.numel()]))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_onehot(axis):
    x = whole(-1, 8, 4, 5, dtype=I32)
    one_value, zero = torch.tensor([3], dtype=I32), torch.tensor([-2], dtype=I32)
    expected = one("Onehot", {"axis": axis, "depth": 6}, [x, one_value, zero])
    hot = (x[..., None] == torch.arange(6)).movedim(-1, axis)
    assert_agrees(expected, torch.where(hot, 3, -2), tolerance=0)
    assert_caught(expected, hot.int())  # the values of one and zero not read
    assert_caught(expected, torch.where(hot, -2, 3))
    assert_caught(expected, torch.where(hot.roll(1, axis), 3, -2))


def applied(before, expected):
    """The whole tensor once what was written is in it."""
    after = numbers(before).copy()
    after.flat[expected.places] = expected.values
    return after


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "axis"), [((6, 5), 0), ((6, 5), -1), ((2, 7, 3), 1)])
def test_index_add(shape, axis, dtype):
    var = normal(*shape, dtype=dtype)
    rows = torch.tensor([4, 1, 4, 0], dtype=I32)
    taken = list(shape)
    taken[axis] = 4
    updates, alpha = normal(*taken, dtype=dtype, seed=1), normal(1, dtype=dtype, seed=2)
    param = {"indexType": 1, "axis": axis}
    expected = one("IndexAdd", param, [var, rows, updates, alpha])
    assert expected.written_input == 0 and golden.changed_inputs("IndexAddOperation", param) == [0]

    def kernel(kind, rows=rows, updates=updates, alpha=alpha):
        return var.to(kind).index_add(axis, rows, updates.to(kind), alpha=alpha.item())

    def written(result):
        return numbers(result).reshape(-1)[expected.places]

    assert np.allclose(applied(var, expected), numbers(kernel(torch.float64)), rtol=1e-12, atol=1e-12)
    assert_sound(expected, written(kernel(torch.float32).to(var.dtype)))
    assert_sound(expected, written(kernel(var.dtype)))  # rounded at each step
    assert_caught(expected, written(kernel(torch.float32, alpha=torch.ones(1)).to(var.dtype)))
    assert_caught(expected, written(kernel(torch.float32, alpha=-alpha).to(var.dtype)))
    assert_caught(expected, written(kernel(torch.float32, rows=rows.flip(0)).to(var.dtype)))
    last_only = var.float().index_copy(
        axis, rows.long(), var.float().index_select(axis, rows) + alpha.float() * updates.float()
    )
    assert_caught(expected, written(last_only.to(var.dtype)))  # of two updates to one row the last alone


def test_index_add_of_valid_rows():
    var, updates = normal(6, 8, dtype="float32"), normal(5, 8, dtype="float32", seed=1)
    rows = torch.tensor([2, 5, 2, 99, -7], dtype=I32)  # the last two are not valid, whatever they are
    inputs = [var, rows, updates, torch.tensor([3], dtype=I32)]
    expected = one("IndexAdd", {"indexType": "INDEX_ADD_VALID"}, inputs)
    oracle = var.double().index_add(0, rows[:3], updates[:3].double())
    assert np.allclose(applied(var, expected), numbers(oracle), rtol=1e-12, atol=1e-12)
    assert expected.places.shape == (2, 8)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(axis, dtype):
    x, updates = normal(5, 6, 4, dtype=dtype), normal(3, 2, 4, dtype=dtype, seed=1)
    places = whole(0, x.shape[axis], 3, 2, 4, dtype=I32, seed=4)
    expected = one("ScatterElementsV2", {"axis": axis, "reduction": 1}, [x, places, updates])
    oracle = x.double().scatter_add(axis, places.long(), updates.double())
    assert np.allclose(applied(x, expected), numbers(oracle), rtol=1e-12, atol=1e-12)

    def written(result):
        return numbers(result).reshape(-1)[expected.places]

    added = x.float().scatter_add(axis, places.long(), updates.float()).to(x.dtype)
    assert_sound(expected, written(added))
    assert_caught(expected, written(x.scatter(axis, places.long(), updates)))  # set in place of added
    assert_caught(expected, written(x.float().scatter_add(axis, places.long(), -updates.float()).to(x.dtype)))
    assert_caught(expected, written(x))
    # Without sums: every place once, or it is undefined.
    expected = one("ScatterElementsV2", {"axis": axis}, [x, places, updates])
    oracle = numbers(x.scatter(axis, places.long(), updates))
    after = applied(x, expected)
    undefined = np.zeros(x.numel(), bool)
    if expected.undefined is not None:
        undefined[expected.places[expected.undefined]] = True
    assert ((after == oracle) | undefined.reshape(x.shape)).all()
    counts = torch.zeros(x.shape).scatter_add(axis, places.long(), torch.ones(3, 2, 4))
    assert (undefined.reshape(x.shape) == (counts > 1).numpy()).all()


@mutants_of("ReduceOperation")
def wrong_reduces(trial):
    x = normal(6, 6, 50)
    (total,) = trial.run({"reduceType": 3, "axis": [2]}, [x])
    single = x.float()
    trial.sound(total, single.sum(2).half())
    trial.caught("the last one not added", total, single[..., :-1].sum(2).half())
    trial.caught("added up in half", total, sum(x[..., i] for i in range(50)))
    trial.caught("the average in place of the sum", total, single.mean(2).half())
    (largest,) = trial.run({"reduceType": 1, "axis": [1]}, [x[..., :6]])
    trial.caught("the largest of magnitudes", largest, x[..., :6].abs().amax(1))
    trial.caught("another axis", largest, x[..., :6].amax(2))
    trial.caught("the smallest in place of the largest", largest, x[..., :6].amin(1))


@mutants_of("CumsumOperation")
def wrong_cumsums(trial):
    x = normal(20, 20, dtype="float32")
    (sums,) = trial.run({"axes": [1]}, [x])
    trial.sound(sums, x.double().cumsum(1).float())
    trial.caught("exclusive", sums, running(x, 1, True, False))
    trial.caught("from the other end", sums, running(x, 1, False, True))
    trial.caught("another axis", sums, running(x, 0, False, False))
    trial.caught("rounded to half at every step", sums, torch.stack(list(itertools.accumulate(x.half().T)), 1))
    (half,) = trial.run({"axes": [1]}, [x.half()])
    steps = torch.stack(list(itertools.accumulate(x.half().T)), 1)
    trial.missed("half in place of float32 sums, of half inputs: old kernels do that", half, steps)


@mutants_of("SortOperation")
def wrong_sorts(trial):
    x = normal(4, 50)
    values, places = trial.run({"num": [7]}, [x], outputs=[("float16", ()), ("int32", ())])
    down, up = (torch.sort(x.double(), dim=-1, descending=way, stable=True) for way in (True, False))
    trial.sound(places, down.indices[:, :7])
    trial.caught("ascending", values, up.values[:, :7])
    trial.caught("by magnitude", values, torch.sort(x.double().abs(), descending=True).values[:, :7])
    trial.caught("places counted from one", places, down.indices[:, :7] + 1)
    swapped = down.indices[:, [1, 0, 2, 3, 4, 5, 6]]
    trial.caught("two places swapped", places, swapped)
    trial.caught("only the first half sorted", values, torch.sort(x[:, :25].double(), descending=True).values[:, :7])
    equal = torch.ones(4, 50).half()
    _, places = trial.run({"num": [7]}, [equal], outputs=[("float16", ()), ("int32", ())])
    trial.missed("equal numbers in another order, which is as good", places, np.tile(np.arange(7)[::-1], (4, 1)))


@mutants_of("NonzeroOperation")
def wrong_nonzeros(trial):
    x = torch.tensor([[0, 3, 0, -1], [2, 0, 0, 5]])
    places, count = trial.run({}, [x])
    right = np.array([[0, 0, 1, 1, 0, 0, 0, 0], [1, 3, 0, 3, 0, 0, 0, 0]])
    trial.sound(places, right)
    trial.caught("only positive ones", places, np.array([[0, 1, 1, 0, 0, 0, 0, 0], [1, 0, 3, 0, 0, 0, 0, 0]]))
    trial.caught("rows and columns swapped", places, right[::-1])
    trial.caught("zeros counted", count, np.array([8]))
    trial.caught("one too few", count, np.array([3]))


@mutants_of("OnehotOperation")
def wrong_onehots(trial):
    x = whole(0, 6, 6, 6, dtype=I32)
    (y,) = trial.run({"axis": -1, "depth": 6}, [x, torch.tensor([3], dtype=I32), torch.tensor([-2], dtype=I32)])
    hot = x[..., None] == torch.arange(6)
    trial.sound(y, torch.where(hot, 3, -2))
    trial.caught("one and zero in place of the given values", y, hot.int())
    trial.caught("the values swapped", y, torch.where(hot, -2, 3))
    trial.caught("off by one", y, torch.where(hot.roll(1, -1), 3, -2))
    trial.caught("another axis", y, torch.where(hot.movedim(-1, 0), 3, -2))


@mutants_of("IndexAddOperation")
def wrong_index_adds(trial):
    var, updates, alpha = normal(6, 5), normal(4, 5, seed=1), normal(1, seed=2)
    rows = torch.tensor([4, 1, 4, 0], dtype=I32)
    (y,) = trial.run({"indexType": 1, "axis": 0}, [var, rows, updates, alpha])

    def kernel(rows=rows, updates=updates, alpha=alpha):
        after = var.float().index_add(0, rows, updates.float(), alpha=alpha.item()).half()
        return numbers(after).reshape(-1)[y.places]

    trial.sound(y, kernel())
    trial.caught("no alpha", y, kernel(alpha=torch.ones(1)))
    trial.caught("subtracted", y, kernel(alpha=-alpha))
    trial.caught("rows in another order", y, kernel(rows=rows.flip(0)))
    trial.caught("of two updates to a row the last alone", y, kernel(rows=rows[[1, 2, 3]], updates=updates[1:]))


@mutants_of("ScatterElementsV2Operation")
def wrong_scatters(trial):
    x, updates = normal(5, 5), normal(3, 2, seed=1)
    places = torch.tensor([[0, 3], [4, 1], [0, 2]], dtype=I32)
    (y,) = trial.run({"axis": 0, "reduction": 1}, [x, places, updates])
    written = lambda result: numbers(result).reshape(-1)[y.places]
    added = lambda axis, updates: written(x.float().scatter_add(axis, places.long(), updates.float()).half())
    trial.sound(y, added(0, updates))
    trial.caught("set in place of added", y, written(x.scatter(0, places.long(), updates)))
    trial.caught("subtracted", y, added(0, -updates))
    trial.caught("along another axis", y, added(1, updates))
    trial.caught("nothing written", y, written(x))


def test_what_cannot_be_computed_says_so():
    x, index = normal(4, 6), torch.zeros(2, dtype=I32)
    one_value = torch.tensor([1], dtype=I32)
    for kind, param, inputs, words in [
        ("Softmax", {"axes": []}, [x], "names no dimension"),
        ("Softmax", {"axes": [2]}, [x], "axes names the dimension 2"),
        ("Softmax", {"axes": [1, -1]}, [x], "twice"),
        ("Softmax", {"axes": [0, 2]}, [normal(2, 3, 4)], "axes that are not neighbours"),
        ("Reduce", {"reduceType": 0, "axis": [0]}, [x], "reduceType 0"),
        ("Reduce", {"reduceType": 3}, [x], "names no dimension"),
        ("Reduce", {"reduceType": 7, "axis": [0]}, [x], "not in range"),
        ("Cumsum", {"axes": [0, 1]}, [x], "several axes"),
        ("Sort", {"num": [7]}, [x], "num .* is not one number between 1 and the last dimension of x, 6"),
        ("Sort", {"num": [0]}, [x], "is not one number"),
        ("Sort", {}, [x], "is not one number"),
        ("Onehot", {"axis": 4, "depth": 3}, [index, one_value, one_value], "axis names the dimension 4"),
        ("Onehot", {"depth": -3}, [index, one_value, one_value], "cannot be"),
        ("Onehot", {"depth": 1 << 62}, [index, one_value, one_value], "cannot be|more memory"),
        ("Onehot", {"depth": 1 << 40}, [index, one_value, one_value], "more memory"),
        ("IndexAdd", {}, [x, index, x[:2], x[0, :1]], "indexType 0"),
        ("IndexAdd", {"indexType": 1}, [x, index + 4, x[:2], x[0, :1]], "indices has the element 4"),
        ("IndexAdd", {"indexType": 1}, [x, index - 1, x[:2], x[0, :1]], "indices has the element -1"),
        ("IndexAdd", {"indexType": 1}, [x, index, x[:3], x[0, :1]], "updates have the shape"),
        ("IndexAdd", {"indexType": 2}, [x, index, x[:2], one_value + 2], "validIndicesNum has the element 3"),
        ("IndexAdd", {"indexType": 2, "axis": 1}, [x, index, x[:, :2], one_value], "another axis"),
        ("ScatterElementsV2", {}, [x, index, x[0, :2]], "do not go together"),
        ("ScatterElementsV2", {}, [x, torch.full((4, 2), 6, dtype=I32), x[:, :2]], "element 6"),
    ]:
        with pytest.raises(Exception, match=words):
            golden.run(kind + "Operation", param, [t.contiguous() for t in inputs])
