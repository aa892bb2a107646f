"""Reading and saving the data of dumps, file by file.

    from ait_llm.common.tool import convert_bin_data_to_npy, parse_torchair_dump_data, read_dump_data, save_npy_data

    inputs, outputs = parse_torchair_dump_data("Add.Add_2.44.6.1706596912161941")  # arrays of their own types
    inputs, outputs = convert_bin_data_to_npy(read_dump_data(path), dtype="float16")  # their bytes as what one says
    save_npy_data("out/add.npy", outputs[0])

See docs/torchair.md. `ait_llm.load` reads any file that these read.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from ait_llm._api import load
from ait_llm._errors import AitError, NotFoundError
from ait_llm._folders import make_folders
from ait_llm._tensor import Tensor

if TYPE_CHECKING:
    import torch
    from numpy.typing import DTypeLike, NDArray

__all__ = [
    "DEFAULT_PARSE_DTYPE",
    "DumpData",
    "DumpTensor",
    "convert_bin_data_to_npy",
    "convert_bin_data_to_pt",
    "get_bin_data_from_dir",
    "parse_torchair_dump_data",
    "read_bin_data",
    "read_dump_data",
    "save_npy_data",
    "save_torch_data",
]

DEFAULT_PARSE_DTYPE = "uint8"


class DumpTensor(Tensor):
    """A tensor of a GE dump. `data` are its bytes, in the order of its elements."""

    __slots__ = ()

    @property
    def data(self) -> bytes:
        bits = self.bits()
        return bits.astype(bits.dtype.newbyteorder("<"), copy=False).tobytes()


class DumpData:
    """What a GE dump holds of one operation."""

    def __init__(self, input_data: list[DumpTensor], output_data: list[DumpTensor]) -> None:
        self.input_data = input_data
        self.output_data = output_data


def read_dump_data(dump_data_path: str | os.PathLike[str]) -> DumpData:
    """The inputs and outputs in a file that GE dumped of one operation, as lists."""
    tensors = load(dump_data_path)
    sides: dict[str, list[DumpTensor]] = {"input": [], "output": []}
    for name, tensor in tensors.items() if isinstance(tensors, dict) else [("", tensors)]:
        side, _, index = name.partition("_")
        # In the order of the file: input_0, input_1, …, output_0, …
        if side not in sides or index != str(len(sides[side])):
            raise AitError(f"{os.fspath(dump_data_path)} is not a GE dump; read it with ait_llm.load")
        sides[side].append(DumpTensor(tensor._operand))
    return DumpData(sides["input"], sides["output"])


def convert_bin_data_to_npy(
    bin_dump_data: DumpData, dtype: DTypeLike = DEFAULT_PARSE_DTYPE
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """The bytes of each input and each output as an array of one dimension and of the type `dtype`, whatever the
    tensor's own type. `numpy()` of a tensor in `input_data` and `output_data` has its own type and shape."""
    import numpy

    def arrays(tensors: list[DumpTensor]) -> list[NDArray[Any]]:
        return [numpy.frombuffer(tensor.data, dtype=dtype) for tensor in tensors]

    return arrays(bin_dump_data.input_data), arrays(bin_dump_data.output_data)


def parse_torchair_dump_data(dump_file: str | os.PathLike[str]) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """The inputs and outputs in a file that GE dumped, each in its own type and shape; bfloat16 and the 8-bit floats
    as float32. Of a file of statistics (.npz) the rows of its arrays `inputs` and `outputs`."""
    if os.fspath(dump_file).endswith(".npz"):
        tensors = load(dump_file)
        assert isinstance(tensors, dict)  # no other format is a zip archive with names
        if "inputs" in tensors or "outputs" in tensors:  # of another kind than ait itself writes
            inputs, outputs = (list(tensors[name].numpy()) if name in tensors else [] for name in ("inputs", "outputs"))
            return inputs, outputs
    dump = read_dump_data(dump_file)
    return [tensor.numpy() for tensor in dump.input_data], [tensor.numpy() for tensor in dump.output_data]


def read_bin_data(bin_data_path: str | os.PathLike[str]) -> Tensor:
    """The tensor in a .bin file of the acceleration library."""
    _check_suffix(bin_data_path, ".bin")
    tensor = load(bin_data_path)
    if not isinstance(tensor, Tensor):
        raise AitError(f"{os.fspath(bin_data_path)} holds several tensors; read it with ait_llm.load")
    return tensor


def convert_bin_data_to_pt(bin_tensor: Tensor) -> torch.Tensor:
    """What read_bin_data gave, as a torch tensor."""
    return bin_tensor.torch()


def get_bin_data_from_dir(dump_data_dir: str | os.PathLike[str], max_depth: int = 20) -> list[str]:
    """The paths of all .bin files in a folder and its folders, sorted. Folders behind links are not looked into. Files
    more than `max_depth` folders deep, the first one counted, are a RecursionError."""
    root = os.path.realpath(dump_data_dir)
    if not os.path.isdir(root):
        raise NotFoundError(f"{root} is not a folder")
    found = []
    for folder, _, names in os.walk(root):
        depth = 0 if folder == root else os.path.relpath(folder, root).count(os.sep) + 1
        if depth >= max_depth:
            raise RecursionError(f"{folder} is more than {max_depth} folders deep; give a larger max_depth")
        found += [os.path.join(folder, name) for name in names if name.endswith(".bin")]
    return sorted(found)


def save_torch_data(pt_data: Any, pt_file_path: str | os.PathLike[str]) -> None:
    """torch.save to a path that ends in .pt or .pth; missing folders are made."""
    import torch

    _check_suffix(pt_file_path, ".pt", ".pth")
    with _whole_file(pt_file_path) as file:
        torch.save(pt_data, file)


def save_npy_data(npy_file_path: str | os.PathLike[str], npy_data: Any) -> None:
    """numpy.save to a path that ends in .npy; missing folders are made."""
    import numpy

    _check_suffix(npy_file_path, ".npy")
    with _whole_file(npy_file_path) as file:
        numpy.save(file, npy_data)


def _check_suffix(path: str | os.PathLike[str], *suffixes: str) -> None:
    if not os.fspath(path).endswith(suffixes):
        raise ValueError(f"{os.fspath(path)} must end with {' or '.join(suffixes)}")


@contextlib.contextmanager
def _whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that appears under its name when everything is written, and not at all where that fails."""
    folder, name = os.path.split(os.path.abspath(path))
    make_folders(folder)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name[:200]}.", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            os.fchmod(file.fileno(), 0o640)
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        os.unlink(temporary)
        raise
