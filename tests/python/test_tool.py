"""Reading and saving the data of dumps with the functions that the older tools documented."""

import os
import pathlib
import subprocess
import sys

import ait_llm
import ge_files as ge
import ml_dtypes
import numpy as np
import pytest
import torch
from ait_llm.common import tool

COMPAT = pathlib.Path(__file__).resolve().parents[2] / "python" / "compat"
NAME = "Add.Add_2.44.6.1706596912161941"


@pytest.fixture
def add(tmp_path):
    """A file with two inputs, one of them stored in blocks, and two outputs."""
    inputs = [np.arange(6, dtype=np.float16).reshape(2, 3), np.arange(12, dtype=np.float16).reshape(3, 4)]
    outputs = [np.arange(4, dtype=np.int64) - 2, np.array([1.5, -2], ml_dtypes.bfloat16)]
    path = ge.write(tmp_path / NAME, "Add_2", [inputs[0], ge.to_nz(inputs[1])], outputs)
    return path, inputs, outputs


def test_a_ge_dump_is_read(add):
    path, inputs, outputs = add
    dump = tool.read_dump_data(str(path))
    assert [tensor.data for tensor in dump.input_data] == [array.tobytes() for array in inputs]
    assert [tensor.data for tensor in dump.output_data] == [array.tobytes() for array in outputs]
    assert [tensor.shape for tensor in dump.input_data] == [(2, 3), (3, 4)]
    assert [tensor.dtype for tensor in dump.output_data] == ["int64", "bfloat16"]


def test_more_than_ten_tensors_keep_their_order(tmp_path):
    path = ge.write(tmp_path / NAME, "Add_2", [np.full(2, i, np.int32) for i in range(12)], [np.zeros(1, np.int8)])
    inputs, outputs = tool.parse_torchair_dump_data(path)
    assert [array[0] for array in inputs] == list(range(12)) and len(outputs) == 1


def test_an_operation_without_inputs(tmp_path):
    path = ge.write(tmp_path / NAME, "Const", [], [np.zeros((0, 2), np.float32)])
    inputs, outputs = tool.parse_torchair_dump_data(path)
    assert inputs == [] and [array.shape for array in outputs] == [(0, 2)]


@pytest.mark.parametrize("dtype", [None, "int16", np.float16], ids=str)
def test_bytes_are_taken_for_what_one_says(add, dtype):
    path, inputs, outputs = add
    dump = tool.read_dump_data(path)
    converted = tool.convert_bin_data_to_npy(dump) if dtype is None else tool.convert_bin_data_to_npy(dump, dtype)
    for arrays, stored in zip(converted, (inputs, outputs)):
        assert isinstance(arrays, list)
        for array, original in zip(arrays, stored, strict=True):
            expected = np.frombuffer(original.tobytes(), dtype or np.uint8)
            assert array.dtype == expected.dtype and array.tobytes() == expected.tobytes()
            assert array.shape == expected.shape


def test_tensors_in_their_own_types(add):
    path, inputs, outputs = add
    read_inputs, read_outputs = tool.parse_torchair_dump_data(path)
    for array, original in zip([*read_inputs, *read_outputs], [*inputs, *outputs], strict=True):
        assert np.array_equal(array, original.astype(np.float32)) and array.shape == original.shape
    assert [array.dtype for array in read_outputs] == [np.int64, np.float32]


def test_statistics_in_place_of_data(tmp_path):
    np.savez(tmp_path / "x_min_max.npz", inputs=[[0.0, 1.0], [2.0, 3.0]], outputs=[])
    inputs, outputs = tool.parse_torchair_dump_data(str(tmp_path / "x_min_max.npz"))
    assert [row.tolist() for row in inputs] == [[0, 1], [2, 3]] and outputs == []
    np.savez(tmp_path / "outputs.npz", outputs=[[0.0, 1.0]])
    inputs, outputs = tool.parse_torchair_dump_data(tmp_path / "outputs.npz")
    assert inputs == [] and [row.tolist() for row in outputs] == [[0, 1]]


def test_other_files_are_refused(tmp_path, add):
    np.save(tmp_path / "x.npy", np.zeros(2))
    with pytest.raises(ait_llm.AitError, match=r"x\.npy is not a GE dump"):
        tool.read_dump_data(tmp_path / "x.npy")
    with pytest.raises(ait_llm.NotFoundError, match="missing"):
        tool.read_dump_data(tmp_path / "missing")
    add[0].write_bytes(add[0].read_bytes()[:-3])
    with pytest.raises(ait_llm.CorruptError, match="Add_2"):
        tool.read_dump_data(add[0])


def test_a_bin_file_becomes_a_torch_tensor(tmp_path):
    expected = torch.arange(6).reshape(2, 3).bfloat16()
    ait_llm.save(tmp_path / "x.bin", expected)
    tensor = tool.convert_bin_data_to_pt(tool.read_bin_data(str(tmp_path / "x.bin")))
    assert tensor.dtype == torch.bfloat16 and torch.equal(tensor, expected)
    ait_llm.save(tmp_path / "x.pth", expected)
    with pytest.raises(ValueError, match=r"x\.pth must end with \.bin"):
        tool.read_bin_data(tmp_path / "x.pth")


def test_bin_files_of_a_folder(tmp_path):
    for name in ("b.bin", "a/c.bin", "a/d/e.bin", "a/f.npy"):
        path = tmp_path / "dump" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    root = os.path.realpath(tmp_path / "dump")
    assert tool.get_bin_data_from_dir(root) == [f"{root}/a/c.bin", f"{root}/a/d/e.bin", f"{root}/b.bin"]
    with pytest.raises(RecursionError, match="a/d is more than 2 folders deep"):
        tool.get_bin_data_from_dir(root, max_depth=2)
    with pytest.raises(ait_llm.NotFoundError, match="missing is not a folder"):
        tool.get_bin_data_from_dir(tmp_path / "missing")


def test_saving_makes_folders_and_whole_files(tmp_path, monkeypatch):
    tool.save_npy_data(str(tmp_path / "a/b/x.npy"), np.arange(3))
    tool.save_torch_data({"x": torch.ones(2)}, str(tmp_path / "a/c/x.pth"))
    assert np.load(tmp_path / "a/b/x.npy").tolist() == [0, 1, 2]
    assert torch.equal(torch.load(tmp_path / "a/c/x.pth", weights_only=True)["x"], torch.ones(2))
    monkeypatch.chdir(tmp_path)
    tool.save_npy_data("x.npy", [1])
    with pytest.raises(ValueError, match=r"x must end with \.npy"):
        tool.save_npy_data("x", [1])
    with pytest.raises(ValueError, match=r"x\.npy must end with \.pt or \.pth"):
        tool.save_torch_data(torch.ones(1), "x.npy")
    with pytest.raises(Exception, match="pickle"):
        tool.save_torch_data(lambda: 0, "y.pt")
    assert sorted(os.listdir(tmp_path)) == ["a", "x.npy"]


def test_the_older_names_are_the_same_functions():
    code = """
from ait_llm.common import tool
import components.utils.acc_cmp, components.utils.tool, llm.common.tool, msit_llm.common.tool
for module in (components.utils.acc_cmp, components.utils.tool, llm.common.tool, msit_llm.common.tool):
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is getattr(tool, name)
assert components.utils.acc_cmp.parse_torchair_dump_data
"""
    path = os.pathsep.join([str(COMPAT), str(pathlib.Path(ait_llm.__file__).parents[1])])
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True, timeout=60)
