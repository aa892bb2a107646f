"""Files written by NumPy and zipfile, read by ait."""

import io
import struct
import zipfile

import ait_llm
import numpy as np
import pytest
import torch

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
SHAPES = [(), (1,), (7,), (0,), (3, 0, 2), (2, 3), (1, 2, 1, 3), (2,) * 10]
WIDE = [name for name in DTYPES if np.dtype(name).itemsize > 1]


def filled(random, dtype, shape):
    """Any bits at all (0 and 1 for bool), NaN payloads and denormals included."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = random.integers(0, 2 if dtype == "bool" else 256, count, dtype=np.uint8)
    return raw.view(dtype).reshape(shape)


@pytest.fixture
def npy(tmp_path):
    def write(array, **options):
        path = tmp_path / "x.npy"
        with open(path, "wb") as file:
            np.lib.format.write_array(file, array, **options)
        return path

    return write


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_npy_of_every_type_and_shape(npy, same, random, dtype, shape):
    array = filled(random, dtype, shape)
    same.numpy(ait_llm.load(npy(array)), array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)], ids=str)
def test_npy_of_every_version(npy, same, random, version):
    array = filled(random, "float32", (2, 3))
    same.numpy(ait_llm.load(npy(array, version=version)), array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fortran_order_keeps_its_strides_and_is_not_copied(npy, same, random, dtype):
    array = np.asfortranarray(filled(random, dtype, (3, 4, 5)))
    tensor = ait_llm.load(npy(array))
    same.numpy(tensor, array)
    assert tensor.strides == (1, 3, 12)
    assert not tensor.numpy().flags.owndata


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("order", ["C", "F"])
def test_big_endian_reads_as_the_same_numbers(npy, same, random, dtype, order):
    array = np.asarray(filled(random, dtype, (3, 4)).astype(np.dtype(dtype).newbyteorder(">")), order=order)
    tensor = ait_llm.load(npy(array))
    same.numpy(tensor, array)
    same.torch(tensor, torch.from_numpy(array.astype(dtype)))


def test_strided_views_are_saved_and_read_as_they_look(npy, same):
    base = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    for view in (base[::-1], base[:, ::2, 1:4], base.transpose(2, 0, 1), np.broadcast_to(base[0, 0], (2, 5))):
        same.numpy(ait_llm.load(npy(view)), view)


def test_the_content_decides_not_the_name(tmp_path, same):
    array = np.arange(4, dtype=np.float32)
    with open(tmp_path / "x.safetensors", "wb") as file:
        np.save(file, array)
    same.numpy(ait_llm.load(tmp_path / "x.safetensors"), array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "deflated"])
def test_npz_of_every_type(tmp_path, same, random, save):
    arrays = {dtype: filled(random, dtype, (2, 3)) for dtype in DTYPES}
    arrays["empty"] = np.zeros((0, 4), np.float32)
    arrays["scalar"] = np.array(3.5)
    arrays["fortran"] = np.asfortranarray(filled(random, "float64", (4, 5)))
    arrays["big_endian"] = filled(random, "float32", (6,)).astype(">f4")
    save(tmp_path / "x.npz", **arrays)
    loaded = ait_llm.load(tmp_path / "x.npz")
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        same.numpy(loaded[name], array)


def test_npz_large_enough_to_deflate_in_several_blocks(tmp_path, same, random):
    array = random.integers(0, 50, 1_000_000, dtype=np.int32)
    np.savez_compressed(tmp_path / "x.npz", array)
    same.numpy(ait_llm.load(tmp_path / "x.npz", name="arr_0"), array)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_npz_members_with_zip64_sizes(tmp_path, same, method):
    array = np.arange(1000, dtype=np.int64)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", method) as archive:
        with archive.open("a.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, array)
    same.numpy(ait_llm.load(tmp_path / "x.npz", name="a"), array)


def test_npz_with_a_zip64_directory(tmp_path, same):
    """What a file beyond 4 GiB or 65535 members looks like: the numbers stand in the zip64 records only."""
    array = np.arange(10, dtype=np.float64)
    plain = io.BytesIO()
    np.savez(plain, a=array)
    data = plain.getvalue()
    end = data.rindex(b"PK\5\6")
    _, _, _, _, count, size, offset, _ = struct.unpack("<IHHHHIIH", data[end:])
    wide = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, offset)
    locator = struct.pack("<IIQI", 0x07064B50, 0, end, 1)
    short = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    (tmp_path / "x.npz").write_bytes(data[:end] + wide + locator + short)
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        assert archive.namelist() == ["a.npy"]
    same.numpy(ait_llm.load(tmp_path / "x.npz", name="a"), array)


def test_npz_through_a_pipe_has_its_sizes_after_the_data(tmp_path, same):
    class Unseekable(io.RawIOBase):
        def __init__(self, file):
            self.file = file

        def writable(self):
            return True

        def write(self, data):
            return self.file.write(data)

    array = np.arange(100, dtype=np.float32)
    with open(tmp_path / "x.npz", "wb") as file, zipfile.ZipFile(Unseekable(file), "w") as archive:
        with archive.open("a.npy", "w") as member:
            np.lib.format.write_array(member, array)
    same.numpy(ait_llm.load(tmp_path / "x.npz", name="a"), array)


def test_npz_with_many_members_and_odd_names(tmp_path, same):
    arrays = {name: np.full(3, i) for i, name in enumerate(["ä", "a/b", "with blank", "x" * 200])}
    arrays.update({f"m{i}": np.array(i) for i in range(500)})
    np.savez(tmp_path / "x.npz", **arrays)
    loaded = ait_llm.load(tmp_path / "x.npz")
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        same.numpy(loaded[name], array)


def test_empty_npz_is_an_empty_dict(tmp_path):
    np.savez(tmp_path / "x.npz")
    assert ait_llm.load(tmp_path / "x.npz") == {}


@pytest.mark.parametrize(
    "array",
    [np.array(["a"]), np.array([b"a"]), np.zeros(2, "M8[s]"), np.zeros(2, "i4,f4"), np.zeros(2, np.longdouble)],
    ids=lambda array: array.dtype.str,
)
def test_npy_of_other_types_is_unsupported(npy, array):
    with pytest.raises(ait_llm.UnsupportedError):
        ait_llm.load(npy(array))


def test_npy_of_objects_is_refused(npy):
    with pytest.raises(ait_llm.RefusedError):
        ait_llm.load(npy(np.array([{}], dtype=object)))


def test_npy_cut_short_is_corrupt(npy):
    path = npy(np.arange(100.0))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ait_llm.CorruptError, match="cut short"):
        ait_llm.load(path)
