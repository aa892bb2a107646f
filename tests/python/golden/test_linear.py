"""LinearOperation and its relatives against torch in float64, and NumPy's integers for the quantised ones."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, numbers, to_fractal, whole
from mutants import mutants_of


def linear(inputs, outputs=None, fractal=(), **param):
    return golden.run("LinearOperation", param, inputs, outputs=outputs, fractal=fractal)[0]


def turned(tensor, turn):
    return tensor.transpose(-1, -2).contiguous() if turn else tensor


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("turn_x", [False, True])
@pytest.mark.parametrize("turn_weight", [False, True])
@pytest.mark.parametrize(
    "x_shape,weight_shape",
    [
        ((5, 19), (19, 7)),
        ((1, 64), (64, 33)),
        ((3, 5, 19), (19, 7)),
        ((3, 5, 19), (3, 19, 7)),
        ((1, 5, 19), (1, 19, 7)),
        ((40, 300), (300, 50)),
    ],
)
def test_products(x_shape, weight_shape, turn_weight, turn_x, dtype):
    x, weight = normal(*x_shape, dtype=dtype), normal(*weight_shape, dtype=dtype, seed=1)
    inputs = [turned(x, turn_x), turned(weight, turn_weight)]
    y = linear(inputs, transposeA=turn_x, transposeB=turn_weight, hasBias=False)
    assert_agrees(y, x.double() @ weight.double())
    assert_sound(y, (x.float() @ weight.float()).to(x.dtype))
    plain = golden.run(
        "LinearOperation",
        {"transposeA": turn_x, "transposeB": turn_weight, "hasBias": False},
        inputs,
        reference_loops=True,
    )[0]
    assert_agrees(plain, y.values)


def test_keys_that_are_missing_have_the_defaults_of_the_library():
    x, weight, bias = normal(4, 16), normal(6, 16, seed=1), normal(6, seed=2)
    y = linear([x, weight, bias])  # transposeB and hasBias are true
    assert_agrees(y, (x.double() @ weight.double().T).half().double() + bias.double())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("bias_shape", [(7,), (1, 7), (3, 7)])
def test_a_half_bias_is_added_to_the_rounded_or_to_the_unrounded_product(bias_shape, dtype):
    x, weight = normal(3, 5, 64, dtype=dtype), normal(3, 64, 7, dtype=dtype, seed=1)
    bias = normal(*bias_shape, dtype=dtype, seed=2, scale=4)
    y = linear([x, weight, bias], transposeB=False)
    each = bias.double().reshape(-1, 1, 7)
    product = x.double() @ weight.double()
    assert_agrees(y, product.to(x.dtype).double() + each)
    assert list(y.forms) == ["bias added to the rounded product", "bias added to the unrounded product"]
    assert_agrees_with_form(y, 1, product + each)
    single = x.float() @ weight.float()
    assert_sound(y, (single.to(x.dtype) + each.to(x.dtype)).to(x.dtype))
    assert_sound(y, (single + each.float()).to(x.dtype))
    assert_caught(y, single.to(x.dtype))  # no bias
    assert_caught(y, (single + each.flip(-1).float()).to(x.dtype))  # the bias of another column
    assert_caught(y, (single + 2 * each.float()).to(x.dtype))  # added twice


def assert_agrees_with_form(expected, place, oracle):
    values = list(expected.forms.values())[place]
    assert np.allclose(values, numbers(oracle), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_bias_of_float32_is_added_as_it_is_or_in_the_type_of_x(dtype):
    x, weight, bias = normal(5, 64, dtype=dtype), normal(7, 64, dtype=dtype, seed=1), normal(7, dtype="float32", seed=2)
    y = linear([x, weight, bias])
    product = x.double() @ weight.double().T
    assert list(y.forms) == ["bias added in float32", "bias rounded to the type of x"]
    assert_agrees(y, product + bias.double())
    assert_agrees_with_form(y, 1, product + bias.to(x.dtype).double())
    y = linear([x.float(), weight.float(), bias])
    assert y.forms == {}
    assert_agrees(y, product + bias.double())
    assert_sound(y, torch.nn.functional.linear(x.float(), weight.float(), bias), "float32")


def test_a_product_is_added_to_what_was_there():
    x, weight, accum = normal(5, 40), normal(40, 8, seed=1), normal(5, 8, dtype="float32", seed=2, scale=3)
    param = {"transposeB": False, "hasBias": False, "enAccum": True}
    y = linear([x, weight, accum], outputs=[("float32", (5, 8))], **param)
    assert_agrees(y, accum.double() + x.double() @ weight.double())
    single = x.float() @ weight.float()
    assert_sound(y, accum + single, "float32")
    assert_caught(y, single, "float32")  # what was there is lost
    assert_caught(y, accum + single.half(), "float32", by=4)  # rounded before it is added
    assert golden.changed_inputs("LinearOperation", param) == [2]
    assert golden.changed_inputs("LinearOperation", {}) == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("turn_weight", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_ein_sum(shared, turn_weight, dtype):
    x = normal(5, 3, 32, dtype=dtype)
    weight = normal(*(() if shared else (3,)), 32, 9, dtype=dtype, seed=1)
    param = {"matmulType": 1, "transposeB": turn_weight}
    y = linear([x, turned(weight, turn_weight)], hasBias=False, **param)
    each = weight.double().expand(3, 32, 9)
    product = torch.einsum("mbk,bkn->mbn", x.double(), each)
    assert_agrees(y, product)
    single = torch.einsum("mbk,bkn->mbn", x.float(), each.float())
    assert_sound(y, single.to(x.dtype))
    if not shared:
        assert_caught(y, torch.einsum("mbk,bkn->mbn", x.float(), each.float().roll(1, 0)).to(x.dtype))  # another batch
    bias = normal(3, 9, dtype=dtype, seed=2)
    y = linear([x, turned(weight, turn_weight), bias], **param)
    assert_agrees(y, product + bias.double())
    assert y.forms == {}
    assert_caught(y, (single + bias.roll(1, 0).float()).to(x.dtype))  # the bias of another batch


@pytest.mark.parametrize("turn_weight", [False, True])
@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("depth,columns", [(32, 48), (40, 18), (64, 16)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_in_fractal_storage(depth, columns, batches, turn_weight, dtype):
    x = normal(batches, 5, depth, dtype=dtype)
    weight = normal(batches, depth, columns, dtype=dtype, seed=1)
    oracle = x.double() @ weight.double()
    lies = turned(weight, turn_weight)
    stored = to_fractal(lies, 16)
    outputs = [(dtype, (batches, 5, columns))]
    for fractal in ((), (1,)):  # by its four dimensions, and by its format
        y = linear([x, stored], outputs, fractal, transposeB=turn_weight, hasBias=False)
        assert_agrees(y, oracle)
    if lies.shape[-1] % 16 == 0 and lies.shape[-2] % 16 == 0:  # with the dimensions of the matrix
        as_rows = stored.reshape(lies.shape)
        y = linear([x, as_rows], outputs, (1,), transposeB=turn_weight, hasBias=False)
        assert_agrees(y, oracle)
        if lies.shape[-1] > 16:
            assert_caught(y, (x.float() @ turned(as_rows, turn_weight).float()).to(x.dtype))  # taken for row-major
        assert linear(
            [x, stored], transposeB=turn_weight, hasBias=False
        ).notes  # nothing says how many columns there are
    else:
        with pytest.raises(Exception, match="end was not recorded"):
            linear([x, lies], outputs, (1,), transposeB=turn_weight, hasBias=False)


def packed(scale, dtype=np.int64, high=0):
    return (numbers(scale).astype(np.float32).view(np.uint32).astype(np.uint64) | np.uint64(high << 32)).astype(dtype)


def short(scale):
    """With the 13 lowest bits cleared, as weights that were made for the device are."""
    return (scale.view(torch.int32) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("turn_weight", [False, True])
@pytest.mark.parametrize("batches", [(), (3,)])
@pytest.mark.parametrize("kind", ["float32", "int64", "uint64", "high bits"])
def test_int8_with_a_scale_for_each_column(kind, batches, turn_weight, has_bias):
    x, weight = whole(-128, 128, *batches, 6, 70), whole(-128, 128, *batches, 70, 9, seed=1)
    bias = whole(-5000, 5000, *batches, 9, dtype=torch.int32, seed=2)
    scale = short(normal(*batches, 9, dtype="float32", seed=3, scale=1e-3).abs())
    given = {
        "float32": scale,
        "int64": packed(scale),
        "uint64": packed(scale, np.uint64),
        "high bits": packed(scale, np.int64, high=0x4001),  # beyond the low 32, and beyond 2^53
    }[kind]
    dtype = "bfloat16" if kind == "float32" else "float16"
    inputs = [x, turned(weight, turn_weight), *([bias] if has_bias else []), given]
    y = linear(
        inputs,
        [(dtype, (*batches, 6, 9))],
        transposeB=turn_weight,
        hasBias=has_bias,
        outDataType=27 if kind == "float32" else 1,
        quantMode=1,
    )
    acc = x.numpy().astype(np.int64) @ weight.numpy().astype(np.int64)
    total = acc + (bias.numpy()[..., None, :] if has_bias else 0)
    each = numbers(scale)[..., None, :]
    assert_agrees(y, total * each)
    assert y.forms == {}
    single = torch.tensor(total, dtype=torch.float32) * torch.tensor(each, dtype=torch.float32)
    assert_sound(y, single.to(FLOATS[dtype]))
    assert_caught(y, torch.tensor(total * np.flip(each, -1)).to(FLOATS[dtype]))  # the scale of another column
    assert_caught(y, torch.tensor(acc * each + bias.numpy()[..., None, :]).to(FLOATS[dtype]))  # bias after the scale
    assert_caught(y, torch.tensor((total + 40) * each).to(FLOATS[dtype]))  # a sum that lost something
    if has_bias:
        assert_caught(y, torch.tensor(acc * each).to(FLOATS[dtype]))  # no bias


def test_packed_scales_are_read_whole_or_cut():
    x, weight, scale = whole(-9, 9, 30, 32), whole(-9, 9, 64, 32, seed=1), normal(64, dtype="float32", seed=3).abs()
    y = linear([x, weight, packed(scale)], [("float16", (30, 64))], hasBias=False, outDataType=1)
    acc = numbers(x) @ numbers(weight).T
    assert list(y.forms) == ["scales in float32", "scales cut to 19 bits"]
    assert_agrees(y, acc * numbers(scale))
    assert_agrees_with_form(y, 1, acc * numbers(short(scale)))
    for each in (scale, short(scale)):
        assert_sound(y, torch.tensor(acc * numbers(each)).half())
    assert_caught(y, torch.tensor(acc * numbers(scale.half())).half())  # scales in half
    y = linear([x, weight, scale], [("bfloat16", (30, 64))], hasBias=False, outDataType=27)
    assert y.forms == {}  # not packed: there is one way to read them


@pytest.mark.parametrize("batches", [(), (2,)])
@pytest.mark.parametrize("out", ["float16", "bfloat16"])
def test_int8_with_a_scale_for_each_row_as_well(out, batches):
    x, weight = whole(-128, 128, *batches, 6, 70), whole(-128, 128, *batches, 9, 70, seed=1)
    bias = whole(-500, 500, *batches, 9, dtype=torch.int32, seed=2)
    scale, rows = (normal(count, dtype="float32", seed=count, scale=0.05).abs() for count in (9, 6))
    y = linear(
        [x, weight, bias, scale, rows],
        [(out, (*batches, 6, 9))],
        outDataType=1 if out == "float16" else 27,
        quantMode="PER_TOKEN",
    )
    total = x.numpy().astype(np.int64) @ np.swapaxes(weight.numpy().astype(np.int64), -1, -2)
    total = total + bias.numpy()[..., None, :]
    assert_agrees(y, total * numbers(scale) * numbers(rows)[:, None])
    single = torch.tensor(total).float() * scale * rows[:, None]
    assert_sound(y, single.to(FLOATS[out]))
    assert_caught(y, (torch.tensor(total).float() * scale).to(FLOATS[out]))  # no scale of rows
    assert_caught(y, (torch.tensor(total).float() * scale * rows.flip(0)[:, None]).to(FLOATS[out]))


def test_int8_weights_in_fractal_storage():
    x, weight, scale = whole(-9, 9, 5, 40), whole(-9, 9, 18, 40, seed=1), short(normal(18, dtype="float32").abs())
    y = linear([x, to_fractal(weight, 32), packed(scale)], hasBias=False, outDataType=1)
    assert_agrees(y, numbers(x) @ numbers(weight).T * numbers(scale))


def test_relatives():
    x, weight = normal(5, 24), normal(24, 16, seed=1)
    for turn_x in (False, True):
        for turn_weight in (False, True):
            inputs = [turned(x, turn_x), turned(weight, turn_weight)]
            param = {"transposeA": turn_x, "transposeB": turn_weight}
            (y,) = golden.run("MatmulOperation", param, inputs)
            assert_agrees(y, x.double() @ weight.double())
    (y,) = golden.run("MatmulOperation", {}, [x, to_fractal(weight, 16)], outputs=[("float16", (5, 16))])
    assert_agrees(y, x.double() @ weight.double())
    assert_caught(y, (x.half() @ weight.half().roll(1, 0)).half())

    x, weight, bias = whole(-9, 9, 5, 40), whole(-9, 9, 18, 40, seed=1), whole(-99, 99, 18, dtype=torch.int32)
    scale = short(normal(18, dtype="float32").abs())
    oracle = (numbers(x) @ numbers(weight).T + numbers(bias)) * numbers(scale)
    for kind in ("LinearQuantOperation", "LinearSparseOperation"):
        for given in (weight, to_fractal(weight, 32)) if kind == "LinearQuantOperation" else (weight,):
            (y,) = golden.run(kind, {}, [x, given, bias, packed(scale)], outputs=[("float16", (5, 18))])
            assert_agrees(y, oracle)
    for compressed in (whole(-9, 9, 500), whole(-9, 9, 18 * 40), whole(-9, 9, 10, 50)):
        with pytest.raises(Exception, match="compressed weight"):
            golden.run("LinearSparseOperation", {}, [x, compressed, bias, packed(scale), whole(0, 9, 8)])


@mutants_of("LinearOperation")
def wrong_linears(trial):
    x, weight, bias = normal(64, 1024, scale=0.5), normal(96, 1024, seed=1, scale=0.5), normal(96, seed=2, scale=9)
    (y,) = trial.run({"hasBias": False}, [x, weight])
    single = x.float() @ weight.float().T
    trial.sound(y, single.half())
    cut = x[:, :-8].float() @ weight[:, :-8].float().T
    trial.caught("the last block of the depth not added", y, cut.half(), by=4)
    trial.caught("columns off by one", y, single.roll(1, 1).half(), by=4)
    trial.caught("1 % too large", y, (single * 1.01).half(), by=4)
    narrow = torch.zeros(64, 96).half()
    for k in range(0, 1024, 16):
        narrow += (x[:, k : k + 16].float() @ weight[:, k : k + 16].float().T).half()
    trial.caught("added up in half", y, narrow)
    brain = x.bfloat16().float() @ weight.bfloat16().float().T
    trial.caught("inputs rounded to bfloat16", y, brain.half())
    trial.missed("0.0002 % too large: less than one rounding of the result", y, (single * (1 + 2e-6)).half())
    trial.caught("the last row not written", y, torch.cat([single[:-1], torch.zeros(1, 96)]).half())
    (y,) = trial.run({}, [x, weight, bias])
    trial.caught("no bias", y, single.half())
    trial.caught("the bias of the next column", y, (single + bias.roll(1).float()).half())
    either = (
        "the bias added to the unrounded product where the device adds it to the rounded one, or the other way round"
    )
    for result in ((single + bias.float()).half(), single.half() + bias):
        trial.sound(y, result)
    trial.missed(either, y, (single + bias.float()).half())


def wrong_quantised_products(trial):
    x, weight, bias = whole(-99, 99, 6, 70), whole(-99, 99, 9, 70, seed=1), whole(-5000, 5000, 9, dtype=torch.int32)
    scale = short(normal(9, dtype="float32", seed=3, scale=1e-3).abs())
    param = {"outDataType": 1} if trial.operation == "LinearOperation" else {}
    (y,) = trial.run(param, [x, weight, bias, packed(scale)], outputs=[("float16", (6, 9))])
    total, each = numbers(x) @ numbers(weight).T, numbers(scale)
    half = lambda values: torch.tensor(values).half()
    trial.sound(y, half((total + numbers(bias)) * each))
    trial.caught("no bias", y, half(total * each))
    trial.caught("the bias added after the scale", y, half(total * each + numbers(bias)))
    trial.caught("the scale of another column", y, half((total + numbers(bias)) * each[::-1]))
    trial.caught("no scale", y, half(total + numbers(bias)))
    cut = numbers(x[:, :-6]) @ numbers(weight[:, :-6]).T
    trial.caught("the last products not added", y, half((cut + numbers(bias)) * each))


mutants_of("LinearQuantOperation")(wrong_quantised_products)
mutants_of("LinearSparseOperation")(wrong_quantised_products)


@mutants_of("MatmulOperation")
def wrong_matmuls(trial):
    x, weight = normal(24, 24), normal(24, 24, seed=1)
    (y,) = trial.run({}, [x, weight])
    single = x.float() @ weight.float()
    trial.sound(y, single.half())
    trial.caught("the second matrix transposed", y, (x.float() @ weight.float().T).half())
    trial.caught("the result transposed", y, single.T.half())
    trial.caught("factors in the other order", y, (weight.float() @ x.float()).half())
    trial.caught("added up in half", y, sum(torch.outer(x[:, k], weight[k]) for k in range(24)))


def test_values_that_are_not_finite_stay_in_their_rows():
    x, weight = normal(12, 20), normal(30, 20, seed=1)
    x[3, 4], x[7, 1] = float("inf"), float("nan")
    y = linear([x, weight], hasBias=False)
    oracle = x.double() @ weight.double().T
    assert np.isinf(y.values[3]).all() and np.isnan(y.values[7]).all()
    finite = np.isfinite(numbers(oracle))
    assert np.allclose(y.values[finite], numbers(oracle)[finite])
    assert_sound(y, (x.float() @ weight.float().T).half())


X, W = normal(4, 16), normal(6, 16, seed=1)
X8, W8 = whole(-9, 9, 4, 16), whole(-9, 9, 6, 16, seed=1)


@pytest.mark.parametrize(
    "inputs,param,words",
    [
        ([X, W], {}, "input 2 \\(bias\\) was not recorded"),
        ([X, W, normal(5)], {}, "bias has 5 elements, not one for each of 6 columns"),
        ([X, W, normal(1)], {}, "bias has 1 elements"),
        ([X, W], {"hasBias": False, "transposeB": False}, "does not go with x, whose rows have 16 numbers"),
        ([X, normal(6)], {"hasBias": False}, "neither two nor three dimensions"),
        ([normal(16), W], {"hasBias": False}, "two dimensions"),
        ([normal(2, 4, 16), normal(3, 6, 16)], {"hasBias": False}, "weight of 3 matrices"),
        ([X, normal(1, 1, 16, 8)], {"hasBias": False}, "16 columns in each piece"),
        ([X, normal(1, 3, 16, 16)], {"hasBias": False}, "does not hold"),
        ([X, normal(1, 1, 16, 16, dtype="float32")], {"hasBias": False}, "FRACTAL_NZ: no golden"),
        ([X, W, normal(4, 6, dtype="float32")], {"enAccum": True}, "both true"),
        ([X, W, normal(4, 5, dtype="float32")], {"enAccum": True, "hasBias": False}, "cannot be added"),
        ([X, W], {"hasBias": False, "matmulType": 1}, "three dimensions"),
        ([X, W], {"hasBias": False, "matmulType": 1, "transposeA": True}, "EIN_SUM with transposeA"),
        ([X8, W8], {"hasBias": False, "outDataType": 1}, "input 2 \\(deqScale\\)"),
        ([X, W, normal(6)], {"hasBias": False, "outDataType": 1}, "quantised product of float16 and float16"),
        ([X, W8], {"hasBias": False}, "weight of type int8: no golden"),
        ([X8, W8, normal(5)], {"hasBias": False, "outDataType": 1}, "deqScale has 5 elements"),
        ([X8, W8, normal(6), normal(3)], {"hasBias": False, "quantMode": 2}, "perTokenScale has 3 elements"),
        ([X, W], {"hasBias": "perhaps"}, "hasBias"),
        ([X, W], {"hasBias": False, "quantMode": 7}, "quantMode"),
    ],
)
def test_what_cannot_be_computed_says_so(inputs, param, words):
    with pytest.raises(Exception, match=words):
        linear(inputs, **param)


def test_memory_is_asked_for_before_it_is_taken():
    with pytest.raises(Exception, match="MiB"):
        golden.run("LinearOperation", {"hasBias": False}, [normal(2000, 1), normal(2000, 1)], memory_bytes=16_000_000)
