"""Writes the first inputs of each fuzz target, as the original libraries make them, to fuzz/corpus/<target>.

    python fuzz/make_seeds.py [FOLDER]        # needs numpy, torch and safetensors

Fuzzing grows a corpus from there and `-merge=1` thins it out again, so the committed files are not these alone.
"""

import csv
import io
import json
import pathlib
import pickle
import sys
import zipfile

import numpy as np
import safetensors.torch
import torch

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests" / "attacks"))
import hostile_rows as rows  # noqa: E402

MAX_SEED_BYTES = 2048


def npy_seeds():
    def saved(array, version=None):
        out = io.BytesIO()
        np.lib.format.write_array(out, array, version)
        return out.getvalue()

    yield "matrix", saved(np.arange(6, dtype=np.float32).reshape(2, 3))
    yield "fortran", saved(np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)))
    yield "big_endian", saved(np.arange(3, dtype=">f8"))
    yield "scalar", saved(np.array(True))
    yield "empty", saved(np.zeros((0, 3), np.complex64))
    yield "version_2", saved(np.arange(3, dtype=np.float16), (2, 0))
    yield "version_3", saved(np.arange(3, dtype=np.uint8), (3, 0))
    yield "structured", saved(np.zeros(2, [("a", "i4")]))
    yield "strings", saved(np.array(["a", "bc"]))


def npz_seeds():
    def saved(save, **arrays):
        out = io.BytesIO()
        save(out, **arrays)
        return out.getvalue()

    two = {"a": np.arange(4, dtype=np.float32), "b": np.ones((2, 2), np.int8)}
    yield "stored", saved(np.savez, **two)
    yield "deflated", saved(np.savez_compressed, **two)
    yield "empty", saved(np.savez)
    npy = next(npy_seeds())[1]
    zip64 = io.BytesIO()
    with zipfile.ZipFile(zip64, "w") as archive:
        with archive.open("x.npy", "w", force_zip64=True) as member:
            member.write(npy)
        archive.writestr("readme.txt", "no array")
        archive.comment = b"a comment"
    yield "zip64_and_comment", zip64.getvalue()


def torch_values():
    base = torch.arange(6, dtype=torch.float32)
    yield "tensor", base[:2].clone()
    yield "views", [base, base[1:], base.reshape(2, 3).t()]
    yield "state", {"w": torch.nn.Parameter(base[:2].clone()), "n": 1, "s": "text", "f": 0.5}
    yield "conjugate", torch.zeros(1, dtype=torch.complex64).conj()
    yield "half", (torch.zeros(1, dtype=torch.bfloat16), torch.empty(0), None)


def torch_seeds(zipped):
    for name, value in torch_values():
        out = io.BytesIO()
        torch.save(value, out, _use_new_zipfile_serialization=zipped)
        yield name, slim(out.getvalue()) if zipped else out.getvalue()


def slim(archive_bytes):
    """The same archive without the padding and side files that make it five times as long."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive_bytes)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if name.endswith(("/data.pkl", "/byteorder")) or "/data/" in name:
                folderless = name.split("/", 1)[1]
                new.writestr(zipfile.ZipInfo("a/" + folderless), old.read(name))
    return out.getvalue()


def pickle_seeds():
    plain = [1, -2, 2**40, 2**80, 0.5, True, None, "text", b"bytes", (1,), {"k": [1]}, {3}, "text"]
    for protocol in range(6):
        yield f"protocol_{protocol}", pickle.dumps(plain, protocol)
    for name, archive_bytes in torch_seeds(zipped=True):
        with zipfile.ZipFile(io.BytesIO(archive_bytes)) as archive:
            yield name, archive.read("a/data.pkl")


def safetensors_seeds():
    tensors = {"w": torch.arange(4.0).reshape(2, 2), "b.bias": torch.zeros(2, dtype=torch.bfloat16)}
    yield "two", safetensors.torch.save(tensors)
    yield "metadata", safetensors.torch.save({"x": torch.zeros(0, 3)}, {"format": "pt"})
    yield "fp8", safetensors.torch.save({"q": torch.zeros(2, dtype=torch.float8_e4m3fn)})
    yield "none", safetensors.torch.save({})


def atb_bin_seeds():
    def record(dtype, dims, data, *more):
        lines = ["$Version=1.0", "$Object.Count=1", f"$Object.Length={len(data)}", "format=2"]
        lines += [f"dtype={dtype}", f"dims={dims}", *more, "$End=1", ""]
        return "\n".join(lines).encode() + data

    yield "half", record(1, "2,3", bytes(12), "$Object.data=0,12")
    yield "scalar", record(0, "", bytes(4), "$Object.data=0,4")
    yield "no_object", record(27, "2", bytes(4))
    yield "int4", record(29, "4", bytes(2), "$Object.data=0,2")
    yield "nz", record(1, "1,2", bytes(4)).replace(b"format=2", b"format=29")
    yield "twice", record(2, "1", b"\1") * 2
    yield "statistics", record(1, "2", b"", "max=1", "min=0", "mean=0.5", "l2norm=1")
    yield "link", record(1, "2", b"", "data=../other.bin")
    yield "dos_lines", record(1, "2", bytes(4)).replace(b"\n", b"\r\n")


def topology_seeds():
    """A file, what the acceleration library reports of a layer and a model, and a table: JSON as Python writes it."""
    leaf = {"opName": "LinearOperation_4_0", "opType": "LinearOperation", "param": {"bias": False, "eps": 1e-05}}
    named = {**leaf, "inTensors": ["a", "b"], "outTensors": ["x"]}
    in_place = {
        "opName": "Add_4_1",
        "param": {"t": "ADD", "n": [1], "o": {"p": {}}},
        "inTensors": ["x"],
        "outTensors": ["x"],
    }
    layer = {"opName": "L_4", "opType": "L", "param": "", "inTensors": ["a", "b"], "outTensors": ["x"]}
    yield "layer", json.dumps({**layer, "nodes": [named, in_place]}).encode()
    model = {"modelName": "M", "inTensors": ["i"], "weightTensors": ["w"], "outTensors": ["o"]}
    yield "model", json.dumps({**model, "nodes": [{**layer, "nodes": [named]}]}, indent=1).encode()
    yield "bare", json.dumps({"modelName": "\u00e9\U0001f600", "nodes": [named]}).encode()
    raw_leaf = {**leaf, "inTensorNum": 1, "inTensorIds": [0], "outTensorNum": 1, "outTensorIds": [2]}
    raw = {"opName": "L_0", "opType": "L", "inTensorNum": 1, "outTensorNum": 1, "internalTensorNum": 1, "param": ""}
    yield "reported_graph", b"L_0\n" + json.dumps({**raw, "nodes": [raw_leaf]}).encode()
    node = {"opName": "L", "inTensors": ["i"], "outTensors": ["o"]}
    yield "reported_model", b"M\n" + json.dumps({**model, "nodes": [node, node]}).encode()
    yield (
        "table",
        (
            b"CaseNum|CaseName|OpName|OpParam|InNum|InDType|InFormat|InShape|OutNum|OutDType|OutFormat|OutShape\n"
            b"1|X_11|X_1|{}|2|float16;ACL_BF16|nd;nd|2,3;|1|float|nd|2,3\n"
        ),
    )


def statistics_csv_seeds():
    """As register_hook writes it, and as its predecessors do: without the last column, appended."""

    def table(columns, *lines):
        text = io.StringIO()
        csv.writer(text).writerows([columns, *lines])
        return text.getvalue().encode()

    columns = ["NodeName", "NodeType", "InputOutput", "Index", "DataType", "Shape", "Max", "Min", "Mean", "L2Norm"]
    line = ["root.norm", "LlamaRMSNorm", "Output", 0, torch.float16, (1, 7, 64), 1.5, -1.25, 0.01, 3.2]
    yield (
        "file",
        table([*columns, "File"], [*line, "output"], ["a", "b", "Input", 0, torch.int8, (), 1, 1, 1, 1, "input_0"]),
    )
    yield "older", table(columns, line, line, [*line[:3], 1, *line[4:]])
    yield "odd_numbers", table(columns, [*line[:6], "nan", "-inf", "N/A", ""], [*line[:5], (0, 3), "", "", "", ""])
    yield (
        "quoted",
        table([*columns, "File"], ['say "root"', "a,b", "Output", 0, torch.bool, (3,), 1, 0, 0.5, 1, "out\nput"]),
    )
    yield "bare_line_ends", table(columns, line).replace(b"\r\n", b"\n")


def rows_seeds():
    """Stores of rows with every kind of field; those of real runs are too long to begin with."""
    measured = rows.side(dtype=9, shape=(2, 3), statistics=rows.statistics())
    compared = rows.whole(1) + rows.comparison(
        rows.whole(1) + rows.whole(2) + rows.whole(1) + rows.real(0.9) + rows.real(0.1) * 2
    )
    full = rows.row(
        phase=rows.whole(1),
        first_column=rows.whole(1) + rows.whole(64),
        layer=rows.whole(1) + rows.whole(3),
        certainty=rows.whole(1) + rows.whole(1),
        why=rows.text(b"types and order fit"),
        golden=measured,
        my=measured,
        compared=compared,
    )
    shards = rows.side(
        [rows.record(), rows.record(rows.text(b"1.bin", 4))],
        transform=rows.whole(4) * 4 + rows.whole(1) + rows.whole(1),
    )
    kept = rows.row(
        my=rows.side(dtype=10, shape=(6,), kept=2), at_least=rows.whole(1) + rows.real(0.5), reason=rows.text(b"why.")
    )
    missing = rows.row(golden=rows.side([]), my=rows.side(lacks=1), reason=rows.text("ünicode".encode()))
    yield "full", rows.store(rows.block(full))
    yield "shards", rows.store(rows.block(rows.row(golden=shards, my=shards)))
    yield "several", rows.store(rows.block(full + kept + missing, 3))
    yield "without_end", rows.header() + rows.block(kept) + rows.block(missing)
    yield "none", rows.store()


SEEDS = {
    "fuzz_npy": npy_seeds(),
    "fuzz_npz": npz_seeds(),
    "fuzz_torch_zip": torch_seeds(zipped=True),
    "fuzz_torch_legacy": torch_seeds(zipped=False),
    "fuzz_pickle": pickle_seeds(),
    "fuzz_safetensors": safetensors_seeds(),
    "fuzz_atb_bin": atb_bin_seeds(),
    "fuzz_statistics_csv": statistics_csv_seeds(),
    "fuzz_rows": rows_seeds(),
    "fuzz_topology": topology_seeds(),
}


def main():
    root = pathlib.Path(__file__).parent / "corpus"
    if len(sys.argv) > 1:
        root = pathlib.Path(sys.argv[1])
    for target, seeds in SEEDS.items():
        folder = root / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in seeds:
            assert len(content) <= MAX_SEED_BYTES, (target, name, len(content))
            (folder / f"seed_{name}").write_bytes(content)


if __name__ == "__main__":
    main()
