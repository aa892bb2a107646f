"""Files written by ait, read by the original libraries."""

import ait_llm
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from tensor_bytes import bytes_of

NUMPY_DTYPES = [
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
TORCH_DTYPES = [
    torch.bool,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
    torch.complex32,
    torch.complex64,
    torch.complex128,
]
SAFETENSORS_DTYPES = [
    torch.bool,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.complex64,
]
BIN_DTYPES = [
    torch.bool,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
SHAPES = [(), (1,), (5,), (0,), (2, 0, 3), (2, 3, 4)]


def filled(dtype, shape):
    """Any bits at all; 0 and 1 for bool."""
    generator = torch.Generator().manual_seed(3)
    count = int(np.prod(shape)) * torch.empty(0, dtype=dtype).element_size()
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), generator=generator, dtype=torch.uint8)
    return raw.view(dtype).reshape(shape)


def equal(loaded, expected):
    assert loaded.dtype == expected.dtype
    assert loaded.shape == expected.shape
    assert torch.equal(bytes_of(loaded), bytes_of(expected))


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_npy_is_read_by_numpy(tmp_path, dtype):
    for shape in SHAPES:
        array = filled(getattr(torch, dtype), shape).numpy()
        ait_llm.save(tmp_path / "x.npy", array)
        loaded = np.load(tmp_path / "x.npy")
        assert loaded.dtype == array.dtype
        assert loaded.shape == array.shape
        assert loaded.tobytes() == array.tobytes()


@pytest.mark.parametrize("extension", ["pth", "pt"])
@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
def test_torch_files_are_read_by_torch(tmp_path, dtype, extension):
    for shape in SHAPES:
        tensor = filled(dtype, shape)
        ait_llm.save(tmp_path / f"x.{extension}", tensor)
        equal(torch.load(tmp_path / f"x.{extension}", weights_only=True), tensor)


@pytest.mark.parametrize("options", [{"mmap": True}, {"mmap": False}], ids=str)
def test_torch_files_of_dicts_are_read_by_torch(tmp_path, options):
    tensors = {f"layer.{i}.{dtype}": filled(dtype, SHAPES[i % len(SHAPES)]) for i, dtype in enumerate(TORCH_DTYPES)}
    ait_llm.save(tmp_path / "x.pth", tensors)
    loaded = torch.load(str(tmp_path / "x.pth"), weights_only=True, **options)
    assert list(loaded) == list(tensors)
    for name, tensor in tensors.items():
        equal(loaded[name], tensor)


def test_a_state_dict_survives_the_round_trip_through_ait(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4)).to(torch.bfloat16)
    ait_llm.save(tmp_path / "x.pth", model.state_dict())
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4)).to(torch.bfloat16)
    other.load_state_dict(torch.load(tmp_path / "x.pth", weights_only=True))
    for name, tensor in model.state_dict().items():
        equal(other.state_dict()[name], tensor)


@pytest.mark.parametrize("dtype", SAFETENSORS_DTYPES, ids=str)
def test_safetensors_are_read_by_the_library(tmp_path, dtype):
    tensors = {f'name "{i}" ä\n': filled(dtype, shape) for i, shape in enumerate(SHAPES)}
    ait_llm.save(tmp_path / "x.safetensors", tensors)
    loaded = safetensors.torch.load_file(tmp_path / "x.safetensors")
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        equal(loaded[name], tensor)


def test_safetensors_of_mixed_types_are_read_by_the_library(tmp_path):
    tensors = {str(dtype): filled(dtype, (3,)) for dtype in SAFETENSORS_DTYPES}
    ait_llm.save(tmp_path / "x.safetensors", tensors)
    for name, tensor in safetensors.torch.load_file(tmp_path / "x.safetensors").items():
        equal(tensor, tensors[name])


@pytest.mark.parametrize("dtype", BIN_DTYPES, ids=str)
def test_bin_comes_back(tmp_path, same, dtype):
    for shape in SHAPES:
        if 0 in shape:
            continue
        tensor = filled(dtype, shape)
        ait_llm.save(tmp_path / "x.bin", tensor)
        same.torch(ait_llm.load(tmp_path / "x.bin"), tensor)


@pytest.mark.parametrize("extension", ["npy", "pth", "safetensors", "bin"])
def test_views_are_written_as_they_look(tmp_path, extension):
    base = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    views = {
        "transposed": base.transpose(2, 0, 1),
        "stepped": base[:, ::2, 1:],
        "reversed": base[::-1, :, ::-1],
        "big endian": base.astype(">i4"),
        "repeated": np.broadcast_to(base[0, 0], (5, 4)),
    }
    for view in views.values():
        value = {"x": view} if extension == "safetensors" else view
        ait_llm.save(tmp_path / f"x.{extension}", value)
        loaded = ait_llm.load(tmp_path / f"x.{extension}")
        loaded = loaded["x"] if extension == "safetensors" else loaded
        np.testing.assert_array_equal(loaded.numpy(), view)


def test_ml_dtypes_arrays_are_written_as_what_they_are(tmp_path):
    array = np.arange(8).astype(ml_dtypes.bfloat16)
    ait_llm.save(tmp_path / "x.pt", array)
    equal(torch.load(tmp_path / "x.pt", weights_only=True), torch.arange(8).to(torch.bfloat16))


@pytest.mark.parametrize("source", ["npy", "pth", "safetensors", "bin"])
@pytest.mark.parametrize("target", ["npy", "pth", "safetensors", "bin"])
def test_every_format_converts_to_every_other(tmp_path, source, target):
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    ait_llm.save(tmp_path / f"a.{source}", {"x": array} if source == "safetensors" else array)
    tensor = ait_llm.load(tmp_path / f"a.{source}", name="x" if source == "safetensors" else None)
    ait_llm.save(tmp_path / f"b.{target}", {"y": tensor} if target == "safetensors" else tensor)
    back = ait_llm.load(tmp_path / f"b.{target}", name="y" if target == "safetensors" else None)
    np.testing.assert_array_equal(back.numpy(), array)


def test_an_unknown_extension_names_those_that_are_known(tmp_path):
    with pytest.raises(ait_llm.AitError, match="safetensors"):
        ait_llm.save(tmp_path / "x.xyz", np.zeros(2))
    assert not list(tmp_path.iterdir())


def test_a_dict_needs_a_container(tmp_path):
    with pytest.raises(ait_llm.AitError):
        ait_llm.save(tmp_path / "x.npy", {"a": np.zeros(1), "b": np.zeros(1)})
    assert not list(tmp_path.iterdir())


def test_a_type_that_the_format_lacks_is_unsupported(tmp_path):
    with pytest.raises(ait_llm.UnsupportedError):
        ait_llm.save(tmp_path / "x.npy", torch.zeros(2, dtype=torch.bfloat16))
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_to_is_a_write_error(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.npy").mkdir()
    for place in (tmp_path / "file" / "x.npy", tmp_path / "folder.npy", "/proc/x.npy"):
        with pytest.raises(ait_llm.WriteError):
            ait_llm.save(place, np.zeros(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.npy"]


def test_folders_are_made_on_the_way(tmp_path):
    ait_llm.save(tmp_path / "a" / "b" / "x.npy", np.arange(2))
    np.testing.assert_array_equal(np.load(tmp_path / "a" / "b" / "x.npy"), np.arange(2))


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(ait_llm.UnsupportedError):
        ait_llm.save(tmp_path / "x.npy", torch.zeros(2, dtype=torch.bfloat16))
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.arange(3))


def test_a_file_replaces_the_old_one_while_that_is_mapped(tmp_path):
    ait_llm.save(tmp_path / "x.npy", np.arange(3))
    old = ait_llm.load(tmp_path / "x.npy")
    ait_llm.save(tmp_path / "x.npy", np.arange(5))
    np.testing.assert_array_equal(old.numpy(), np.arange(3))
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.arange(5))
