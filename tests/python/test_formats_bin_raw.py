"""ATB .bin files, and bytes without any header."""

import ait_llm
import numpy as np
import pytest
import torch

# The example of the format's description, with a payload of its own.
HEADER = b"""$Version=1.0
$Object.Count=1
$Object.Length=16
format=2
dtype=1
dims=2,4
$Object.data=0,16
$End=1
"""
PAYLOAD = np.arange(8, dtype=np.float16).tobytes()

CODES = {
    0: "float32",
    1: "float16",
    2: "int8",
    3: "int32",
    4: "uint8",
    6: "int16",
    7: "uint16",
    8: "uint32",
    9: "int64",
    10: "uint64",
    11: "float64",
    12: "bool",
    16: "complex64",
    17: "complex128",
    27: "bfloat16",
}


def test_the_example_of_the_format_reads(tmp_path, same):
    (tmp_path / "x.bin").write_bytes(HEADER + PAYLOAD)
    same.numpy(ait_llm.load(tmp_path / "x.bin"), np.arange(8, dtype=np.float16).reshape(2, 4))


def test_the_example_of_the_format_is_written_byte_for_byte(tmp_path):
    ait_llm.save(tmp_path / "x.bin", np.arange(8, dtype=np.float16).reshape(2, 4))
    assert (tmp_path / "x.bin").read_bytes() == HEADER + PAYLOAD


@pytest.mark.parametrize("code", CODES)
def test_every_element_type(tmp_path, same, code):
    dtype = getattr(torch, CODES[code])
    raw = torch.arange(6 * torch.empty(0, dtype=dtype).element_size(), dtype=torch.uint8)
    expected = (raw % 2 if dtype == torch.bool else raw).view(dtype).reshape(2, 3)
    count = expected.numel() * expected.element_size()
    header = f"$Version=1.0\n$Object.Count=1\n$Object.Length={count}\nformat=2\ndtype={code}\ndims=2,3\n"
    payload = bytes(expected.reshape(-1).view(torch.uint8).tolist())
    (tmp_path / "x.bin").write_bytes(f"{header}$Object.data=0,{count}\n$End=1\n".encode() + payload)
    same.torch(ait_llm.load(tmp_path / "x.bin"), expected)


def test_an_unknown_element_type_is_named(tmp_path):
    (tmp_path / "x.bin").write_bytes(HEADER.replace(b"dtype=1\n", b"dtype=99\n") + PAYLOAD)
    with pytest.raises(ait_llm.UnsupportedError, match="99"):
        ait_llm.load(tmp_path / "x.bin")


@pytest.mark.parametrize("dtype", ["float32", "fp16", "bf16", "int64", "e4m3", "torch.uint8"])
def test_raw_bytes_with_a_type(tmp_path, dtype):
    (tmp_path / "x").write_bytes(bytes(range(48)))
    tensor = ait_llm.load(tmp_path / "x", dtype=dtype)
    assert tensor.ndim == 1
    assert tensor.nbytes == 48
    assert tensor.bits().tobytes() == bytes(range(48))


def test_raw_bytes_with_a_shape(tmp_path, same):
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    (tmp_path / "x").write_bytes(array.tobytes())
    same.numpy(ait_llm.load(tmp_path / "x", dtype="int32", shape=(3, 4)), array)


def test_raw_bytes_that_do_not_fit_the_shape_are_an_error(tmp_path):
    (tmp_path / "x").write_bytes(bytes(10))
    for shape in ((3, 4), None, (-1,)):
        with pytest.raises(ait_llm.AitError):
            ait_llm.load(tmp_path / "x", dtype="int32", shape=shape)


def test_a_raw_type_wins_over_what_the_file_looks_like(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(4))
    size = (tmp_path / "x.npy").stat().st_size
    assert ait_llm.load(tmp_path / "x.npy", dtype="uint8").shape == (size,)


def test_a_shape_alone_is_an_error(tmp_path):
    (tmp_path / "x").write_bytes(bytes(8))
    with pytest.raises(ait_llm.AitError, match="dtype"):
        ait_llm.load(tmp_path / "x", shape=(2,))


def test_an_unknown_raw_type_is_named(tmp_path):
    (tmp_path / "x").write_bytes(bytes(8))
    with pytest.raises(ait_llm.UnsupportedError, match="float12"):
        ait_llm.load(tmp_path / "x", dtype="float12")
