"""Makes the torch files beside it and expected.txt, which says what each of them holds.

    python tests/data/torch/make_torch_data.py        # needs torch 2.8 or newer

expected.txt has one line per tensor: file, name, dtype, shape, bytes in hexadecimal (row-major,
little-endian), separated by tabs. Tensors that ait refuses to load have "unsupported" as dtype.
"""

import io
import pathlib
import warnings
import zipfile

import torch
from torch import nn

HERE = pathlib.Path(__file__).parent
DTYPES = """bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64
    float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu complex32 complex64
    complex128 float4_e2m1fn_x2""".split()


def pattern(dtype, *shape):
    """A tensor whose bytes count up (0 and 1 for bool), so that any mix-up shows."""
    empty = torch.empty(shape, dtype=dtype)
    count = empty.numel() * empty.element_size()
    values = torch.arange(count, dtype=torch.int64) % (2 if dtype == torch.bool else 251)
    return values.to(torch.uint8).view(dtype).reshape(shape) if count else empty


def dtypes():
    return {name: pattern(getattr(torch, name), 2, 3) for name in DTYPES}


def structure():
    parameter = nn.Parameter(torch.arange(4.0))
    parameter.remark = "attributes are ignored"
    return {
        "model": nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict(),
        "optimizer": {"state": {0: {"step": torch.tensor(7.0)}}, "groups": [{"lr": 0.1, "params": [0, 1]}]},
        "a.b": torch.ones(2),
        "pair": (torch.zeros(1), {"mask": torch.tensor([True, False])}),
        "parameter": parameter,
        "buffer": nn.Buffer(torch.arange(3)),
        "plain": [1, 2.5, None, "text", b"bytes", {1, 2}, 2**80, torch.float16, torch.Size([1]), torch.device("cpu")],
    }


def views():
    base = torch.arange(24, dtype=torch.int32).reshape(4, 6)
    return {
        "base": base,
        "transposed": base.t(),
        "window": base[1:3, 2:5],
        "every_other": base.reshape(-1)[1::2],
        "expanded": base[0].expand(2, 6),
        "element": base[2, 3],
        "scalar": torch.tensor(1.5, dtype=torch.float64),
        "empty": torch.empty(0, 3),
        "channels_last": pattern(torch.float16, 1, 2, 2, 3).to(memory_format=torch.channels_last),
    }


def lazy():
    def fresh(dtype=torch.complex64):
        return torch.tensor([[1 + 2j, -3 - 4j], [0 + 0j, 5 - 6j]], dtype=dtype)

    return {
        "conjugate": fresh().conj(),
        "adjoint": fresh(torch.complex128).mH,
        "negative": fresh().conj().imag,
        "both": torch._neg_view(fresh().conj()),
        "half": fresh(torch.complex32).conj(),
    }


def not_plain():
    return {
        "sparse": torch.eye(2).to_sparse(),
        "quantised": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "nested": torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
        "meta": torch.ones(2, device="meta"),
        "good": torch.arange(2.0),
    }


def flatten(value, name=""):
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flatten(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from flatten(item, f"{name}[{index}]")


def line(file, name, tensor):
    refused = tensor.is_sparse or tensor.is_quantized or tensor.is_nested or tensor.is_meta
    if refused:
        return f"{file}\t{name}\tunsupported\n"
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return f"{file}\t{name}\t{str(tensor.dtype)[6:]}\t{list(tensor.shape)}\t{data.hex()}\n"


def script(path):
    """A TorchScript archive without its debug members, which hold paths of the machine."""
    archive = io.BytesIO()
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), archive)
    with zipfile.ZipFile(archive) as full, zipfile.ZipFile(path, "w") as small:
        for name in full.namelist():
            if not name.endswith(".debug_pkl"):
                small.writestr(zipfile.ZipInfo(name), full.read(name))


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    contents = {
        "bare": pattern(torch.bfloat16, 3, 2),
        "parameter": nn.Parameter(torch.arange(6.0).reshape(2, 3)),
        "dtypes": dtypes(),
        "structure": structure(),
        "views": views(),
        "lazy": lazy(),
        "not_plain": not_plain(),
        "values": {"epoch": 3, "loss": [0.5, 0.25]},
    }
    lines = []
    for stem, value in contents.items():
        for old in (False, True):
            file = f"{stem}{'_legacy' if old else ''}.pt"
            torch.save(value, HERE / file, _use_new_zipfile_serialization=not old)
            lines += [line(file, name, tensor) for name, tensor in flatten(value)]
    # Protocol 4 has other instructions and frames.
    for old in (False, True):
        file = f"protocol4{'_legacy' if old else ''}.pt"
        torch.save(contents["views"], HERE / file, pickle_protocol=4, _use_new_zipfile_serialization=not old)
        lines += [line(file, name, tensor) for name, tensor in flatten(contents["views"])]
    script(HERE / "script.pt")
    torch.save(nn.Linear(2, 2), HERE / "module.pt")
    (HERE / "expected.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
