"""Files written by the safetensors library, read by ait."""

import ait_llm
import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

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
    torch.complex64,
]
SHAPES = [(), (1,), (5,), (0,), (2, 0), (2, 3, 4)]


def filled(dtype, shape):
    """Any bits at all; 0 and 1 for bool."""
    generator = torch.Generator().manual_seed(1)
    count = int(np.prod(shape)) * torch.empty(0, dtype=dtype).element_size()
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), generator=generator, dtype=torch.uint8)
    return raw.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
def test_every_type_and_shape(tmp_path, same, dtype):
    tensors = {f"t{i}": filled(dtype, shape) for i, shape in enumerate(SHAPES)}
    safetensors.torch.save_file(tensors, tmp_path / "x.safetensors")
    loaded = ait_llm.load(tmp_path / "x.safetensors")
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        same.torch(loaded[name], tensor)


def test_all_types_in_one_file_with_metadata_and_odd_names(tmp_path, same):
    tensors = {f'layer "ä" \\ {dtype}': filled(dtype, (3,)) for dtype in TORCH_DTYPES}
    safetensors.torch.save_file(tensors, tmp_path / "x.safetensors", metadata={"format": "pt", "note": 'a "b"'})
    loaded = ait_llm.load(tmp_path / "x.safetensors")
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        same.torch(loaded[name], tensor)


def test_files_of_the_numpy_side(tmp_path, same):
    array = np.arange(12, dtype=np.float64).reshape(3, 4)
    safetensors.numpy.save_file({"a": array}, tmp_path / "x.safetensors")
    same.numpy(ait_llm.load(tmp_path / "x.safetensors", name="a"), array)


def test_no_tensors_is_an_empty_dict(tmp_path):
    safetensors.torch.save_file({}, tmp_path / "x.safetensors")
    assert ait_llm.load(tmp_path / "x.safetensors") == {}


def test_a_missing_name_is_named_with_what_is_there(tmp_path):
    safetensors.torch.save_file({"present": torch.zeros(1)}, tmp_path / "x.safetensors")
    with pytest.raises(ait_llm.AitError, match="present"):
        ait_llm.load(tmp_path / "x.safetensors", name="absent")
