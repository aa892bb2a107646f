"""GE dump files, encoded by protobuf's library, read by ait."""

import ait_llm
import ge_files as ge
import ml_dtypes
import numpy as np
import pytest
from google.protobuf.internal import encoder
from tensor_bytes import bytes_of

SHAPES = [(), (1,), (5,), (0,), (2, 0), (2, 3, 4)]


def filled(kind, shape):
    """Any bits at all; 0 and 1 for bool."""
    generator = np.random.default_rng(3)
    count = int(np.prod(shape)) * np.dtype(kind).itemsize
    raw = generator.integers(0, 2 if kind is np.bool_ else 256, count, np.uint8)
    return raw.view(kind).reshape(shape)


def numbers(*shape, kind=np.float16):
    return np.random.default_rng(5).integers(-50, 50, shape).astype(kind)


def output_of(path, tensor):
    ge.write(path, "Op_1", outputs=[tensor])
    return ait_llm.load(path, name="output_0")


def bits(tensor):
    """Of types that numpy does not have, too."""
    return bytes_of(tensor.torch()).numpy().tobytes()


@pytest.mark.parametrize("number", ge.NUMPY_TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_type_that_numpy_has(tmp_path, number, shape):
    array = filled(ge.NUMPY_TYPES[number], shape)
    tensor = output_of(tmp_path / "x", ge.Stored(array, dtype=number))
    assert tensor.dtype == array.dtype.name
    assert tensor.shape == array.shape
    assert bits(tensor) == array.tobytes()


def test_inputs_lie_before_outputs_whatever_the_numbers_of_their_fields(tmp_path, same):
    inputs = [numbers(2, 3), numbers(4, kind=np.int64)]
    outputs = [numbers(3, kind=np.float32), numbers(2, 2, kind=np.int8)]
    ge.write(tmp_path / "x", "Add_1", inputs, outputs, buffers=[b"buffer"], spaces=[b"log"])
    loaded = ait_llm.load(tmp_path / "x")
    assert list(loaded) == ["input_0", "input_1", "output_0", "output_1"]
    for name, array in zip(loaded, [*inputs, *outputs]):
        same.numpy(loaded[name], array)


def test_the_worked_example_of_the_format(tmp_path, same):
    """Byte for byte what the library makes of it, so that the schema of this test is the right one."""
    values = np.array([1, 2], np.float32)
    example = bytes.fromhex(
        "3200000000000000 0a03322e30 1001 1a10 0801 1002 1a030a0102 3008 3a030a0102"
        "2210 0801 1002 1a030a0102 2808 32030a0102 3205 4164645f31 0000803f 00000040 00000040 00008040"
    )
    assert ge.encode("Add_1", [ge.Stored(values)], [ge.Stored(2 * values)]) == example
    (tmp_path / "x").write_bytes(example)
    same.numpy(ait_llm.load(tmp_path / "x", name="output_0"), 2 * values)


def test_dimensions_may_be_packed_or_not_and_unknown_fields_are_passed_over(tmp_path, same):
    array = numbers(2, 3)

    def extra(message):
        message.attr.add(name="slices", value="{}")
        message.dfx_message = "nothing"
        message.of_the_future.add(name="x")
        message.output[0].address = 2**63
        message.output[0].dim_range.add(dim_start=1, dim_end=2)
        message.output[0].original_op.name = "Cast_1"

    for classes in (ge.PACKED, ge.UNPACKED):
        ge.write(tmp_path / "x", "Op", outputs=[array], classes=classes, extra=extra)
        same.numpy(ait_llm.load(tmp_path / "x", name="output_0"), array)


def test_a_group_of_an_old_writer_is_passed_over(tmp_path, same):
    array = numbers(3)
    whole = ge.encode("Op", outputs=[ge.Stored(array)])
    group = encoder.TagBytes(15, 3) + encoder.TagBytes(1, 0) + b"\x05" + encoder.TagBytes(15, 4)
    header = whole[8 : len(whole) - array.nbytes] + group
    (tmp_path / "x").write_bytes(len(header).to_bytes(8, "little") + header + array.tobytes())
    same.numpy(ait_llm.load(tmp_path / "x", name="output_0"), array)


def test_bytes_beyond_the_tensor_are_padding(tmp_path, same):
    array = numbers(5)
    tensor = ge.Stored(array, data=array.tobytes() + bytes(22))
    same.numpy(output_of(tmp_path / "x", tensor), array)


def test_a_type_without_a_name_is_bytes(tmp_path, same):
    tensor = ge.Stored(np.zeros(0, np.int8), dtype=0, shape=[7, 7], data=bytes(range(5)))
    same.numpy(output_of(tmp_path / "x", tensor), np.arange(5, dtype=np.int8))


def test_bits_are_unpacked_from_the_top(tmp_path, same):
    tensor = ge.Stored(np.zeros(0, np.uint8), dtype=29, shape=[11], data=bytes([0b10110001, 0b01011111]))
    expected = np.unpackbits(np.array([0b10110001, 0b01011111], np.uint8))[:11]
    same.numpy(output_of(tmp_path / "x", tensor), expected)


def hifloat8(byte):
    """The table of the format, written down a second time: the prefix, exponent bits and mantissa bits."""
    text = f"{byte:08b}"
    sign = -1.0 if text[0] == "1" else 1.0
    special = {0x00: 0.0, 0x80: np.nan, 0x6F: np.inf, 0xEF: -np.inf}
    if byte in special:
        return special[byte]
    prefixes = {"11": (4, 1), "10": (3, 2), "01": (2, 3), "001": (1, 3), "0001": (0, 3)}
    for prefix, (e, m) in prefixes.items():
        if text[1:].startswith(prefix):
            rest = text[1 + len(prefix) :]
            assert len(rest) == e + m
            field, mantissa = rest[:e], int(rest[e:], 2)
            exponent = int("1" + field[1:], 2) * (-1 if field[:1] == "1" else 1) if e else 0
            return sign * 2.0**exponent * (1 + mantissa / 2**m)
    return sign * 2.0 ** (int(text[5:], 2) - 23)


def test_hifloat8(tmp_path):
    tensor = ge.Stored(np.zeros(0, np.uint8), dtype=33, shape=[256], data=bytes(range(256)))
    loaded = output_of(tmp_path / "x", tensor)
    assert loaded.dtype == "float32"
    expected = np.array([hifloat8(byte) for byte in range(256)], np.float32)
    np.testing.assert_array_equal(loaded.numpy(), expected)


@pytest.mark.parametrize("number, kind", [(28, "int4"), (39, "float4_e2m1fn_x2")])
def test_two_values_in_a_byte(tmp_path, number, kind):
    tensor = ge.Stored(np.zeros(0, np.int8), dtype=number, shape=[2, 4], data=bytes([0x21, 0x43, 0x65, 0x87]))
    loaded = output_of(tmp_path / "x", tensor)
    assert loaded.shape == (2, 2)
    assert loaded.dtype == kind


@pytest.mark.parametrize("number", [13, 14, 15, 24, 25, 26, 30, 31, 37, 38, 40, 41, 1000, -5])
def test_a_type_that_is_not_read_is_an_error_of_its_tensor_alone(tmp_path, same, number):
    array = numbers(3)
    ge.write(tmp_path / "x", "Op", [ge.Stored(array, dtype=number)], [array])
    same.numpy(ait_llm.load(tmp_path / "x", name="output_0"), array)
    with pytest.raises(ait_llm.AitError, match="data type not supported"):
        ait_llm.load(tmp_path / "x", name="input_0")


# Orders -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c0, kind", [(8, np.float32), (16, np.float16), (32, np.int8), (4, np.complex128)])
@pytest.mark.parametrize(
    "shape", [(3,), (16,), (2, 3), (16, 16), (17, 33), (5, 64), (2, 3, 4), (2, 1, 20, 40), (2, 2, 2, 5, 6)]
)
def test_fractal_nz(tmp_path, same, shape, c0, kind):
    array = numbers(*shape, kind=kind)
    same.numpy(output_of(tmp_path / "x", ge.to_nz(array, c0)), array)


NCHW_SHAPES = [(2, 3, 4, 5), (1, 16, 2, 2), (2, 40, 1, 3), (1, 1, 1, 1), (3, 33, 7, 2)]
ORDERS = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 2, 3, 1), "HWCN": (2, 3, 1, 0)}


@pytest.mark.parametrize("shape", NCHW_SHAPES, ids=str)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pack", [ge.to_nc1hwc0, ge.to_fractal_z], ids=["NC1HWC0", "FRACTAL_Z"])
def test_images_in_blocks(tmp_path, same, pack, order, shape):
    array = numbers(*shape)
    logical = np.ascontiguousarray(array.transpose(ORDERS[order]))
    tensor = pack(array, logical=logical.shape)
    same.numpy(output_of(tmp_path / "x", tensor), logical)


def test_blocks_of_four_channels(tmp_path, same):
    array = numbers(2, 3, 4, 5)
    same.numpy(output_of(tmp_path / "x", ge.to_nc1hwc0(array, c0=4, format=12)), array)


@pytest.mark.parametrize("logical", [(40, 1, 3), (40,)], ids=str)
def test_an_image_may_have_lost_its_ones(tmp_path, same, logical):
    array = numbers(1, 40, *(logical[1:] or (1, 1)))
    same.numpy(output_of(tmp_path / "x", ge.to_nc1hwc0(array, logical=logical)), array.reshape(logical))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 6), (1, 17, 2, 1, 3)], ids=str)
def test_volumes(tmp_path, same, shape):
    array = numbers(*shape)
    same.numpy(output_of(tmp_path / "x", ge.to_ndc1hwc0(array)), array)
    last = np.ascontiguousarray(array.transpose(0, 2, 3, 4, 1))
    same.numpy(output_of(tmp_path / "x", ge.to_ndc1hwc0(array, logical=last.shape)), last)


@pytest.mark.parametrize("order, format", [("NHWC", ge.NHWC), ("HWCN", ge.HWCN)])
def test_plain_images_of_another_order(tmp_path, same, order, format):
    array = numbers(2, 3, 4, 5)
    stored = np.ascontiguousarray(array.transpose(ORDERS[order]))
    same.numpy(output_of(tmp_path / "x", ge.Stored(stored, format=format, logical=array.shape)), array)
    same.numpy(output_of(tmp_path / "x", ge.Stored(stored, format=format)), stored)


def test_other_formats_take_the_logical_shape_where_it_fits(tmp_path, same):
    array = numbers(2, 6)
    for format in (0, 2, 27, 30, 35, 40, 47, 255, 9999):
        same.numpy(output_of(tmp_path / "x", ge.Stored(array, format=format, logical=[3, 4])), array.reshape(3, 4))


@pytest.mark.parametrize(
    "tensor",
    [
        ge.Stored(numbers(1, 1, 16, 16), format=ge.NZ, logical=[40, 5]),
        ge.Stored(numbers(1, 1, 16, 16), format=ge.NZ, logical=[]),
        ge.Stored(numbers(16, 16), format=ge.NZ, logical=[4, 5]),
        ge.Stored(numbers(2, 6), logical=[5]),
        ge.Stored(numbers(2, 6), logical=[2**63 + 1]),
        ge.Stored(numbers(2, 6), format=28, logical=[3, 4]),
        ge.to_fractal_z(numbers(4, 3, 2, 2), groups=2),
        ge.Stored(numbers(3, 4), format=ge.NHWC, logical=[3, 5]),
    ],
)
def test_a_logical_shape_that_does_not_fit_leaves_the_stored_one(tmp_path, same, tensor):
    loaded = output_of(tmp_path / "x", tensor)
    same.numpy(loaded, np.frombuffer(tensor.data, np.float16).reshape(tensor.shape))


def test_bfloat16_in_blocks(tmp_path):
    array = numbers(17, 33, kind=ml_dtypes.bfloat16)
    loaded = output_of(tmp_path / "x", ge.to_nz(array))
    assert loaded.shape == (17, 33)
    assert bits(loaded) == array.tobytes()


def test_hifloat8_in_blocks(tmp_path, same):
    codes = numbers(5, 40, kind=np.uint8)
    stored = ge.to_nz(codes, c0=32)
    stored.dtype = 33
    same.numpy(output_of(tmp_path / "x", stored), np.vectorize(hifloat8)(codes).astype(np.float32))
