"""Every file that a command reads may be a FIFO, a folder, a socket or a device: one line, at once."""

import json
import shutil

import numpy as np
import pytest
from conftest import atb_bin, error_line
from strange import KINDS, plant

SECONDS = 5  # a command ends in a fraction of one; whoever waits for a FIFO waits for ever

TREE = {"name": "root", "type": "Linear", "order": 0, "children": []}
TOPOLOGY = {"opName": "Linear_0", "opType": "Linear", "inTensors": ["a"], "outTensors": ["b"]}


@pytest.fixture
def dumps(tmp_path, pair):
    """A dump of torch, one of the library, a checkpoint and a manual mapping, all readable."""
    golden, _ = pair
    tensors = np.arange(64, dtype=np.float32).reshape(4, 16)
    torch_rank = tmp_path / "torch/ait_dump/torch_tensors/cpu_7"
    (torch_rank / "0/root").mkdir(parents=True)
    np.save(torch_rank / "0/root/output.npy", tensors)
    (torch_rank / "model_tree.json").write_text(json.dumps(TREE))
    operation = tmp_path / "library/ait_dump/tensors/0_7/0/0_Linear"
    (operation / "after").mkdir(parents=True)
    (operation / "after/outtensor0.bin").write_bytes(atb_bin(tensors, 0))
    layer = tmp_path / "library/ait_dump/layer/7"
    layer.mkdir(parents=True)
    (layer / "Linear_0.json").write_text(json.dumps(TOPOLOGY))
    shutil.copytree(tmp_path / "library", tmp_path / "library2")
    for side in ("weights", "weights2"):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "shard.npy", golden)
        index = {"weight_map": {"w": "shard.npy"}}
        (tmp_path / side / "model.safetensors.index.json").write_text(json.dumps(index))
    mapping = tmp_path / "manual/golden_tensor"
    mapping.mkdir(parents=True)
    paths = [str(tmp_path / "golden.npy"), str(tmp_path / "actual.npy")]
    (mapping / "metadata.json").write_text(json.dumps({"0": {"0": paths}}))
    (tmp_path / "op_mapping.json").write_text('{"Linear": "Linear"}')
    return tmp_path


COMPARE = ("llm", "compare", "-o", "out")
DUMPS = (*COMPARE, "-gp", "torch", "-mp", "library")

# Without the file there is nothing to compare, or it is not known what was meant.
NEEDED = {
    "tensor shown": ("x", ("show", "x")),
    "bare bytes shown": ("x", ("show", "x", "--dtype", "float16")),
    "golden tensor": ("x", (*COMPARE, "-gp", "x", "-mp", "actual.npy")),
    "golden bare bytes": ("x", (*COMPARE, "-gp", "x", "-mp", "actual.npy", "--golden-dtype", "float16")),
    "my tensor": ("x", (*COMPARE, "-gp", "golden.npy", "-mp", "x")),
    "metadata": ("manual/golden_tensor/metadata.json", (*COMPARE, "-gp", "manual")),
    "index": ("weights2/model.safetensors.index.json", (*COMPARE, "-gp", "weights", "-mp", "weights2")),
    "model tree": ("torch/ait_dump/torch_tensors/cpu_7/model_tree.json", DUMPS),
    "op mapping": ("op_mapping.json", (*DUMPS, "-mf", "op_mapping.json")),
}

# What can be compared without the file is.
WANTED = {
    "tensor of a mapping": ("actual.npy", (*COMPARE, "-gp", "manual")),
    "shard": ("weights2/shard.npy", (*COMPARE, "-gp", "weights", "-mp", "weights2")),
    "parameters": ("library/ait_dump/tensors/0_7/0/0_Linear/op_param.json", DUMPS),
    "layer": ("library/ait_dump/layer/7/Other_1.json", DUMPS),
    "model": ("library/ait_dump/model/7/Model.json", DUMPS),
    "statistics": ("torch/ait_dump/torch_tensors/cpu_7/0/root/statistics.csv", DUMPS),
    "manifest of torch": ("torch/ait_dump/torch_tensors/cpu_7/manifest.json", DUMPS),
    "manifest of the library": ("library/ait_dump/manifest.json", DUMPS),
    "tensor of a dump": ("library/ait_dump/tensors/0_7/0/0_Linear/after/outtensor1.bin", DUMPS),
    "tensor of one of two dumps": (
        "library2/ait_dump/tensors/0_7/0/0_Linear/after/outtensor0.bin",
        (*COMPARE, "-gp", "library", "-mp", "library2"),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NEEDED)
def test_what_is_needed_and_no_file_is_one_line(ait, dumps, name, kind):
    place, command = NEEDED[name]
    plant(dumps / place, kind)
    done = ait(*command, timeout=SECONDS)
    if kind != "folder":  # which may be meant
        line = error_line(done)
        assert f"{place}: is a {kind} where a file is expected" in line


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WANTED)
def test_what_is_wanted_and_no_file_ends_no_comparison(ait, dumps, name, kind):
    place, command = WANTED[name]
    plant(dumps / place, kind)
    done = ait(*command, timeout=SECONDS)
    assert done.returncode == 0 or kind == "folder", done.stderr


@pytest.mark.parametrize("name", ["parameters", "layer", "model", "statistics"])
def test_what_is_wanted_and_no_file_is_a_warning(ait, dumps, name):
    place, command = WANTED[name]
    plant(dumps / place, "FIFO")
    assert f"{place}: is a FIFO where a file is expected" in ait(*command, timeout=SECONDS).stderr


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_are_no_file_are_a_warning(ait, tmp_path, kind):
    plant(tmp_path / "7_0_labels.jsonl", kind)
    done = ait("debug", "compare", "aclcmp", "--labels", tmp_path, timeout=SECONDS)
    if kind != "folder":
        assert f"7_0_labels.jsonl: is a {kind} where a file is expected" in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_that_is_no_file_is_one_line(ait, tmp_path, kind):
    plant(tmp_path / "command", kind)
    if kind in ("FIFO", "socket"):
        (tmp_path / "command").chmod(0o755)
    done = ait("llm", "dump", "--exec", "./command", timeout=SECONDS)
    assert done.returncode != 0
    assert "command" in done.stderr
