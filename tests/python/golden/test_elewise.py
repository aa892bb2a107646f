"""ElewiseOperation against torch and NumPy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, numbers, whole
from mutants import mutants_of

UNARY = {3: torch.cos, 4: torch.sin, 5: torch.neg, 20: torch.tanh}
BINARY = {8: torch.add, 9: torch.mul, 10: torch.div, 15: torch.sub}
TRUTH = {
    11: lambda x, y: (x != 0) & (y != 0),
    12: lambda x, y: (x != 0) | (y != 0),
    13: torch.lt,
    14: torch.gt,
    16: torch.eq,
}


def run(kind, inputs, outputs=None, **param):
    return golden.run("ElewiseOperation", {"elewiseType": kind, **param}, inputs, outputs=outputs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", UNARY)
def test_functions_of_one_value(kind, dtype):
    x = normal(3, 17, dtype=dtype, seed=kind, scale=2)
    (expected,) = run(kind, [x])
    assert_agrees(expected, UNARY[kind](x.double()))
    assert_sound(expected, UNARY[kind](x.float()).to(x.dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize(
    "shapes", [((4, 6), (4, 6)), ((4, 6), (6,)), ((4, 1), (1, 6)), ((2, 4, 6), (4, 1)), ((5,), (1,))]
)
def test_functions_of_two_values(shapes, kind, dtype):
    x, y = (normal(*shape, dtype=dtype, seed=place) for place, shape in enumerate(shapes))
    (expected,) = run(kind, [x, y])
    assert_agrees(expected, BINARY[kind](x.double(), y.double()))
    assert_sound(expected, BINARY[kind](x.float(), y.float()).to(x.dtype))


def test_integers_are_exact():
    x, y = whole(-1000, 1000, 50, dtype=torch.int32), whole(-1000, 1000, 50, dtype=torch.int32, seed=1)
    for kind in (8, 9, 15):
        (expected,) = run(kind, [x, y])
        assert_agrees(expected, BINARY[kind](x, y), tolerance=0)
        assert (expected.bound() == 0).all()


@pytest.mark.parametrize("kind", TRUTH)
def test_truth(kind):
    x, y = whole(-2, 3, 6, 7), whole(-2, 3, 6, 7, seed=1)
    if kind in (13, 14, 16):
        x, y = x.half(), y.half()
    (expected,) = run(kind, [x, y], [("int8", (6, 7))])
    assert_agrees(expected, TRUTH[kind](x, y).to(torch.int8), tolerance=0)
    (expected,) = run(7, [whole(-1, 2, 9)])
    assert_agrees(expected, (whole(-1, 2, 9) == 0).to(torch.int8), tolerance=0)


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "int32", "int64"])
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "int32", "int64"])
def test_cast(source, target):
    types = {**FLOATS, "int32": torch.int32, "int64": torch.int64}
    x = (normal(200, dtype="float32", scale=100)).to(types[source])
    (expected,) = run(
        1,
        [x],
        [(target, (200,))],
        outTensorType={"float32": 0, "float16": 1, "int32": 3, "int64": 9, "bfloat16": 27}[target],
    )
    assert_agrees(expected, x.to(types[target]), tolerance=0)


def test_muls_in_the_old_and_the_new_spelling():
    x = normal(40)
    for param in ({"mulsParam": {"varAttr": 0.125}}, {"varAttr": 0.125}):
        (expected,) = run(2, [x], **param)
        assert_agrees(expected, x.double() * 0.125)
        assert_sound(expected, x * 0.125)


def saturated(steps):
    return np.clip(np.rint(steps), -128, 127)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_quantisation_by_given_scales(dtype):
    x = normal(30, 8, dtype=dtype, scale=20)
    (expected,) = run(6, [x], [("int8", (30, 8))], quantParam={"inputScale": 2.5, "inputOffset": 3})
    exact = numbers(x) * 2.5 + 3
    assert_agrees(expected, np.clip(exact, -128, 127))
    assert_sound(expected, saturated(exact), "int8")
    assert_sound(expected, torch.clamp(torch.round(x * 2.5 + 3), -128, 127), "int8")  # all in the type of x
    assert_caught(expected, saturated(numbers(x) * 2.5), "int8")  # the offset forgotten
    assert_caught(expected, np.clip(np.rint(numbers(x) / 2.5 + 3), -128, 127), "int8")  # divided

    scale, offset = normal(8, dtype=dtype, seed=1).abs() + 0.1, whole(-5, 5, 8)
    (expected,) = run(17, [x, scale, offset], [("int8", (30, 8))])
    exact = numbers(x) / numbers(scale) + numbers(offset)
    assert_agrees(expected, np.clip(exact, -128, 127))
    assert_sound(expected, torch.clamp(torch.round(x / scale + offset.to(x.dtype)), -128, 127), "int8")
    assert_caught(expected, saturated(numbers(x) * numbers(scale) + numbers(offset)), "int8")
    (expected,) = run(17, [x, scale, None], [("int8", (30, 8))])
    assert_agrees(expected, np.clip(numbers(x) / numbers(scale), -128, 127))


def test_back_from_int8():
    y, scale, offset = whole(-128, 128, 30, 8), normal(8, seed=1).abs(), whole(-5, 5, 8)
    (expected,) = run(18, [y, scale, offset], [("float16", (30, 8))])
    exact = (numbers(y) - numbers(offset)) * numbers(scale)
    assert_agrees(expected, exact)
    assert_sound(expected, torch.tensor(exact).half(), "float16")
    assert_caught(expected, torch.tensor(numbers(y) - numbers(offset) * numbers(scale)).half(), "float16")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(5, 16), (2, 3, 8), (7,)])
def test_scales_from_the_data(shape, dtype):
    x = normal(*shape, dtype=dtype, scale=4)
    q, scale = run(19, [x], [("int8", shape), ("float32", shape[:-1])])
    largest = np.abs(numbers(x)).max(-1)
    assert_agrees(scale, largest / 127)
    assert_agrees(q, numbers(x) / (largest / 127)[..., None])
    single = x.float()
    step = single.abs().amax(-1, keepdim=True) / 127
    assert_sound(q, torch.round(single / step), "int8")
    assert_sound(scale, step.squeeze(-1), "float32")
    assert_caught(scale, step.squeeze(-1) * 127 / 128, "float32")

    outputs = [("int8", shape), ("float32", shape[:-1]), ("float32", shape[:-1])]
    q, scale, offset = run(19, [x], outputs, quantParam={"asymmetric": True})
    low, high = numbers(x).min(-1), numbers(x).max(-1)
    assert_agrees(scale, (high - low) / 255)
    assert_agrees(offset, -(high + low) / (2 * (high - low) / 255))
    low, high = single.amin(-1, keepdim=True), single.amax(-1, keepdim=True)
    step = (high - low) / 255
    shift = -(high + low) / (2 * step)
    assert_sound(q, torch.round(torch.clamp(single / step + shift, -128, 127)), "int8")
    assert_sound(offset, shift.squeeze(-1), "float32")


def test_a_row_of_zeros_has_the_scale_zero():
    q, scale = run(19, [torch.zeros(2, 4).half()], [("int8", (2, 4)), ("float32", (2,))])
    assert (q.values == 0).all() and (scale.values == 0).all()


@mutants_of("ElewiseOperation")
def wrong_elewises(trial):
    x, y = normal(30, 8, scale=20), normal(8, seed=1)
    (sum_,) = trial.run({"elewiseType": 8}, [x, y])
    trial.sound(sum_, x + y)
    trial.caught("the residual not added", sum_, x)
    trial.caught("broadcast along another axis", sum_, x + y.repeat(30)[:30, None])
    trial.caught("added in bfloat16", sum_, (x.bfloat16() + y.bfloat16()).half())
    (difference,) = trial.run({"elewiseType": 15}, [x, y])
    trial.caught("subtracted the other way round", difference, y - x)
    (quotient,) = trial.run({"elewiseType": 10}, [x, y])
    trial.caught("multiplied in place of divided", quotient, x * y)
    outputs = [("int8", (30, 8))]
    steps = numbers(x) * 2.5 + 3
    (q,) = trial.run({"elewiseType": 6, "quantParam": {"inputScale": 2.5, "inputOffset": 3}}, [x], outputs=outputs)
    trial.sound(q, saturated(steps), "int8")
    trial.caught("no offset", q, saturated(steps - 3), "int8")
    trial.caught("divided by the scale", q, saturated(numbers(x) / 2.5 + 3), "int8")
    trial.caught("cut off in place of rounded", q, np.clip(np.trunc(steps), -128, 127), "int8")
    trial.caught("wrapped round in place of clamped", q, np.rint(steps).astype(int).astype(np.int8), "int8")
    (q, scale) = trial.run({"elewiseType": 19}, [x], outputs=[*outputs, ("float32", (30,))])
    trial.caught("128 in place of 127 steps", scale, np.abs(numbers(x)).max(-1) / 128, "float32")
    largest = np.abs(numbers(x)).max() / 127
    trial.caught("one scale for all rows", q, np.rint(numbers(x) / largest), "int8")


def test_what_int8_cannot_hold_is_open():
    x = normal(4, 6)
    x[1, 2], x[2, 3] = float("nan"), float("inf")
    outputs = [("int8", (4, 6)), ("float32", (4,))]
    q, scale = run(19, [x], outputs)
    assert scale.undefined.tolist() == [False, True, False, False] and scale.values[2] == np.inf
    assert q.undefined[1].all() and q.undefined[2].tolist() == [False] * 3 + [True] + [False] * 2
    assert not q.undefined[[0, 3]].any() and (q.values[2] == 0).all()
    q, scale, offset = run(19, [x], [*outputs, ("float32", (4,))], quantParam={"asymmetric": True})
    assert offset.undefined.tolist() == [False, True, True, False]
    (q,) = run(6, [x], outputs[:1], quantParam={"inputScale": 2.5})
    assert q.undefined.sum() == 1 and q.undefined[1, 2] and q.values[2, 3] == 127


def test_what_cannot_be_computed_says_so():
    for kind, inputs, words in [
        (99, [normal(2)], "elewiseType"),
        (8, [normal(2, 3), normal(4)], "do not go together"),
        (17, [normal(2, 3), normal(4)], "scale of shape"),
        (8, [normal(2, 3)], "input 1 \\(y\\) was not recorded"),
    ]:
        with pytest.raises(Exception, match=words):
            run(kind, inputs)
