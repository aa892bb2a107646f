"""`ait show`."""

import json

import numpy as np
import pytest
from conftest import error_line


def test_one_tensor_is_described_in_full(ait, pair):
    process = ait("show", "golden.npy")
    assert process.returncode == 0
    words = dict(line.split(None, 1) for line in process.stdout.splitlines()[:9])
    assert words["dtype"] == "torch.float32"
    assert words["shape"] == "[2, 3, 4]"
    assert words["bytes"] == "96"
    assert words["min"] == "-1.5"
    assert words["max"] == "1.375"
    assert "values      -1.5, -1.375, -1.25" in process.stdout
    assert "█" in process.stdout


def test_json_agrees_with_numpy(ait, pair):
    process = ait("show", "actual.npy", "--json", "--values", "3")
    (tensor,) = json.loads(process.stdout)["tensors"]
    actual = pair[1].astype(np.float64)
    assert tensor["mean"] == pytest.approx(actual.mean())
    assert tensor["l1_norm"] == pytest.approx(np.abs(actual).sum())
    assert tensor["l2_norm"] == pytest.approx(np.linalg.norm(actual))
    assert tensor["values"] == [-1.5, -1.375, -1.25]
    assert sum(tensor["histogram"]) == actual.size


def test_several_tensors_are_listed(ait, tmp_path):
    np.savez(tmp_path / "two.npz", weight=np.eye(3, dtype=np.float16), bias=np.array([1, np.nan, np.inf]))
    process = ait("show", "two.npz")
    assert process.returncode == 0
    rows = [line.split() for line in process.stdout.splitlines()]
    assert ["name", "dtype", "shape", "min", "max", "mean", "nan", "inf"] in rows
    assert ["bias", "torch.float64", "[3]", "nan", "nan", "nan", "1", "1"] in rows
    assert "ait show two.npz --name weight" in process.stdout
    one = json.loads(ait("show", "two.npz", "--name", "weight", "--json").stdout)
    assert [tensor["name"] for tensor in one["tensors"]] == ["weight"]
    assert "weight, bias" in error_line(ait("show", "two.npz", "--name", "other"))


def test_nan_and_inf_are_counted(ait, tmp_path):
    np.save(tmp_path / "x.npy", np.array([np.nan, np.inf, -np.inf, -np.inf, 2], np.float32))
    (tensor,) = json.loads(ait("show", "x.npy", "--json").stdout)["tensors"]
    assert (tensor["nan"], tensor["positive_inf"], tensor["negative_inf"]) == (1, 1, 2)
    assert tensor["values"] == ["nan", "inf", "-inf", "-inf", 2.0]
    assert "+inf, -inf  1, 2" in ait("show", "x.npy").stdout


def test_bare_bytes_need_a_type(ait, tmp_path):
    np.arange(6, dtype=np.int16).tofile(tmp_path / "x.raw")
    (tensor,) = json.loads(ait("show", "x.raw", "--dtype", "int16", "--shape", "[2, 3]", "--json").stdout)["tensors"]
    assert tensor["shape"] == [2, 3]
    assert tensor["values"] == [0, 1, 2, 3, 4, 5]
    assert "--dtype" in error_line(ait("show", "x.raw", "--shape", "2,3"))
    assert "float17" in error_line(ait("show", "x.raw", "--dtype", "float17"))
    error_line(ait("show", "x.raw", "--dtype", "int16", "--shape", "7"))


@pytest.mark.parametrize("values", [0, 5, 100])
def test_as_many_values_as_asked_for(ait, pair, values):
    process = ait("show", "golden.npy", "--values", values, "--json")
    assert len(json.loads(process.stdout)["tensors"][0]["values"]) == min(values, 24)


@pytest.mark.parametrize("array", [np.zeros((0, 4), np.float32), np.float64(2.5), np.array(True)])
def test_empty_and_scalar_tensors_are_shown(ait, tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    assert ait("show", "x.npy").returncode == 0
    (tensor,) = json.loads(ait("show", "x.npy", "--json").stdout)["tensors"]
    assert tensor["elements"] == array.size


def test_escape_sequences_in_names_stay_harmless(ait, tmp_path):
    np.savez(tmp_path / "evil.npz", **{"\033[2Jx": np.zeros(2), "y": np.zeros(2)})
    assert "\033" not in ait("show", "evil.npz").stdout


def test_a_member_that_would_fill_the_disk_is_not_inflated(ait, tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", zeros=np.zeros(1 << 22, np.uint8), small=np.zeros(3))
    process = ait("show", "bomb.npz", "--name", "zeros", env={"AIT_MAX_TEMPORARY_BYTES": "1000000"})
    line = error_line(process)
    assert "bomb.npz" in line and "zeros.npy cannot be inflated: /tmp" in line
    assert "more than AIT_MAX_TEMPORARY_BYTES=1000000 allows" in line
    assert ait("show", "bomb.npz", "--name", "small", env={"AIT_MAX_TEMPORARY_BYTES": "1000"}).returncode == 0


def test_integers_are_shown_as_integers(ait, tmp_path):
    np.save(tmp_path / "x.npy", np.array([2**32 - 1, 7], np.uint32))
    words = dict(line.split(None, 1) for line in ait("show", "x.npy").stdout.splitlines()[:9] if line)
    assert (words["min"], words["max"]) == ("7", "4294967295")
    (tensor,) = json.loads(ait("show", "x.npy", "--json").stdout)["tensors"]
    assert (tensor["min"], tensor["max"]) == (7, 4294967295)


def described(**numbers):
    """A file of the acceleration library without data; numbers are statistics in their place."""
    lines = ["$Version=1.0", "$Object.Count=0", "$Object.Length=0", "format=2", "dtype=1", "dims=2,3"]
    return "\n".join([*lines, *(f"{name}={value}" for name, value in numbers.items()), "$End=1", ""]).encode()


def test_a_file_that_only_describes_its_tensor_is_shown(ait, tmp_path):
    (tmp_path / "x.bin").write_bytes(described())
    process = ait("show", "x.bin")
    assert process.returncode == 0, process.stderr
    words = dict(line.split(None, 1) for line in process.stdout.splitlines() if line)
    assert (words["dtype"], words["shape"], words["elements"]) == ("torch.float16", "[2, 3]", "6")
    assert words["data"] == "not kept: the file holds type and shape only"
    (tensor,) = json.loads(ait("show", "x.bin", "--json").stdout)["tensors"]
    assert (tensor["dtype"], tensor["shape"], tensor["kept"]) == ("torch.float16", [2, 3], "description")
    assert "min" not in tensor and "values" not in tensor


def test_statistics_in_place_of_data_are_shown(ait, tmp_path):
    (tmp_path / "x.bin").write_bytes(described(max=2.5, min=-1, mean=0.25, l2norm=3))
    shown = ait("show", "x.bin").stdout
    words = dict(line.split(None, 1) for line in shown.splitlines() if line)
    assert (words["min"], words["max"], words["mean"]) == ("-1.0", "2.5", "0.25")
    assert words["data"] == "not kept: the file holds statistics only"
    (tensor,) = json.loads(ait("show", "x.bin", "--json").stdout)["tensors"]
    assert (tensor["kept"], tensor["max"], tensor["l2_norm"]) == ("statistics", 2.5, 3.0)
    header = "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File\n"
    lines = 'root,M,Output,0,torch.float32,"(2, 3)",2.5,-1.0,0.25,3.0,output\n'
    (tmp_path / "statistics.csv").write_text(header + lines + lines.replace("output", "output_1"))
    rows = [line.split() for line in ait("show", "statistics.csv").stdout.splitlines()]
    assert ["output", "torch.float32", "[2,", "3]", "-1.0", "2.5", "0.25"] in rows


def test_a_file_without_data_is_compared_by_what_it_says(ait, tmp_path):
    (tmp_path / "x.bin").write_bytes(described())
    np.save(tmp_path / "y.npy", np.ones((2, 3), np.float16))
    process = ait("llm", "compare", "-gp", "x.bin", "-mp", "y.npy")
    assert process.returncode == 0, process.stderr
    assert "Reason: golden_data holds type and shape only." in process.stdout
    assert "golden  torch.float16  [2, 3]" in process.stdout
    process = ait("llm", "compare", "-gp", "y.npy", "-mp", "x.bin", "--fail-on", "failed")
    assert process.returncode == 1
