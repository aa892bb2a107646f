"""Uses the package in a Python of another machine, under an emulator, where no program of that machine can be started.

Records a torch model, reads back every tensor, and runs those files of the Python suite that start no process.
"""

import pathlib
import platform
import sys
import tempfile

import ait_llm
import numpy as np
import pytest
import torch

SUITE = pathlib.Path(__file__).resolve().parents[1] / "python"
FILES = ["test_ear.py", "test_file_names.py", "test_formats_bin_raw.py", "test_formats_numpy.py", "test_labels.py"]
FILES += ["test_metrics_oracle.py", "test_strange_inputs.py"]
# torch 2.1, which these compare with, has no unsigned types of more than one byte.
NEWER_TORCH = [f"test_formats_bin_raw.py::test_every_element_type[{code}]" for code in (7, 8, 10)]
NEWER_TORCH += [
    f"test_formats_numpy.py::test_big_endian_reads_as_the_same_numbers[{order}-uint{bits}]"
    for order in "CF"
    for bits in (16, 32, 64)
]


def record():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)).to(torch.bfloat16)
    data = torch.randn(4, 8, dtype=torch.bfloat16)
    at = data
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        handle = ait_llm.register_hook(model, ait_llm.DumpConfig(dump_path=folder))
        result = model(data)
        handle.remove()
        outputs = []
        for layer in model:
            at = layer(at)
            outputs.append(at)
        files = sorted(pathlib.Path(folder).rglob("*.pth"))
        assert files, "nothing was recorded"
        stored = [ait_llm.load(str(path)).torch() for path in files]
        for tensor in (data, *outputs, result):
            bits = tensor.view(torch.int16)
            assert any(each.shape == tensor.shape and torch.equal(each.view(torch.int16), bits) for each in stored)
        measured = ait_llm.compare(result, result.float().numpy().astype(np.float32))
        assert measured.max_absolute_error == 0, measured
    return len(files)


if __name__ == "__main__":
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, NumPy {np.__version__}"
    print(f"{platform.machine()}, glibc {platform.libc_ver()[1]}, {versions}", flush=True)
    print(f"recorded {record()} tensors of a torch model, the same bits as in the model", flush=True)
    left_out = [word for name in NEWER_TORCH for word in ("--deselect", f"tests/python/{name}")]
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *left_out, *(str(SUITE / name) for name in FILES)]))
