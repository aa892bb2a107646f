"""Writes the first inputs of each fuzz target, as the original libraries make them, to fuzz/corpus/<target>.

    python fuzz/make_seeds.py [FOLDER]        # needs numpy, torch, safetensors and protobuf

Fuzzing grows a corpus from there and `-merge=1` thins it out again, so the committed files are not these alone.
"""

import base64
import csv
import io
import json
import pathlib
import pickle
import struct
import sys
import zipfile
import zlib

import numpy as np
import safetensors.torch
import torch

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "tests" / folder) for folder in ("attacks", "python")]
import atb_statistics_attacks  # noqa: E402
import ge_files  # noqa: E402
import gguf_attacks  # noqa: E402
import hostile_pickle  # noqa: E402
import hostile_plan as plans  # noqa: E402
import hostile_rows as rows  # noqa: E402
import msprobe_json_attacks  # noqa: E402
import onnx_tensor_attacks  # noqa: E402
import polygraphy_json_attacks  # noqa: E402

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


def gguf_seeds():
    entry, gguf, pair, text = gguf_attacks.entry, gguf_attacks.gguf, gguf_attacks.pair, gguf_attacks.text
    yield "floats", gguf(entry(), entry("b", (2, 2), 1, 32), data=bytes(48))
    pairs = [pair("general.architecture", 8, text("llama")), pair("a", 9, struct.pack("<IQ", 8, 2) + text("x") * 2)]
    yield "pairs", gguf(entry(), pairs=[*pairs, pair("general.alignment", 4, struct.pack("<I", 64))], data=bytes(64))
    for name, kind, size, block_bytes in (
        ("q4_0", 2, 32, 18),
        ("q8_0", 8, 32, 34),
        ("q4_k", 12, 256, 144),
        ("q6_k", 14, 256, 210),
    ):
        yield name, gguf(entry(shape=(size,), kind=kind), data=bytes(range(block_bytes)))
    yield "not_decoded", gguf(entry(shape=(256,), kind=16), data=bytes(66))


def onnx_tensor_seeds():
    make, chunk = onnx_tensor_attacks.onnx_tensor, onnx_tensor_attacks.chunk
    yield "raw", make(chunk(8, b"x"), chunk(9, bytes(16)))
    yield "floats", make(chunk(4, bytes(16)), dims=(2, 2))
    yield "halves", make(chunk(5, b"\x80\x78" * 4), kind=10)
    yield "integers", make(chunk(7, b"\x01" + b"\xff" * 9 + b"\x01"), dims=(2,), kind=7)
    yield "single", make(onnx_tensor_attacks.number(7, 5), dims=(1,), kind=7)
    yield "external", make(onnx_tensor_attacks.number(14, 1))
    yield "scalar", make(chunk(10, bytes(8)), dims=(), kind=11)


def atb_statistics_seeds():
    header, line = atb_statistics_attacks.HEADER, atb_statistics_attacks.line
    yield "tensors", header + line() + line(direction="input", shape="", numbers="N/A,N/A,N/A,N/A")
    yield "odd", header + line(shape="0x4") + b"\r\n" + line("a/b/c", "1_2_3", dtype="bf16", numbers="nan,inf,-inf,1.5")
    yield "cut", header + line()[:-20]


def polygraphy_json_seeds():
    module = polygraphy_json_attacks
    first = module.array(module.npy(np.arange(3, dtype=np.float32)))
    yield "iterations", document(module.results({"x": first, "y": first}, {"x": first}), indent=1)
    small = hostile_pickle.torch_zip(hostile_pickle.whole(hostile_pickle.tensor()))
    yield "torch", document(module.results({"x": module.array(small, "tensor")}))
    yield "inputs", document([{"x": first["values"]}, {}])
    two = module.results({"x": first})
    yield "runners", document({**two, "lst": two["lst"] * 2})


def msprobe_json_seeds():
    module = msprobe_json_attacks
    yield "statistics", document(module.dump(module.call(module.tensor(md5="f8a08fe5"))), indent=1)
    parts = {"input_args": [], "input_kwargs": {"a": {"type": "int", "value": 3}, "b": [None, module.tensor()]}}
    parts |= {"output": [{"last": module.tensor(data_name="x.pt")}], "parameters": {"weight": module.tensor()}}
    yield "kwargs", document(module.dump({"Cell.fc.Dense.forward.0": parts}))
    gradient = {"Module.fc.Linear.parameters_grad.0": {"bias": [module.tensor(dtype="Float32", Max=True)]}}
    operation = {"Distributed.send.0.forward": {"input_args": [{"class_type": "P2POp", "tensor": module.tensor()}]}}
    yield "others", document(module.dump(gradient | operation))
    yield "not_finite", document(module.dump(module.call(module.tensor(Max=float("nan"), Min=float("-inf")))))


def msprobe_dump_seeds():
    module = msprobe_json_attacks

    def both(parents, *gradients):
        value = module.tensor(shape=[2, 2])
        data = {
            key: {"input" if "backward" in key else "input_args": [value], "output": [value]}
            for key in parents
            if "parameters_grad" not in key
        }
        data |= {key: {"weight": [value]} for key in gradients}
        return document(module.dump(data)) + b"\0" + document(parents)

    outer, inner = "Module.a.Block.forward.0", "Module.a.softmax.Softmax.forward.0"
    yield (
        "mix",
        both({"Torch.softmax.0.forward": outer, outer: None, "Functional.softmax.0.forward": inner, inner: outer}),
    )
    forward, backward = "Module.a.fc.Linear.forward", "Module.a.fc.Linear.backward"
    parents = {f"{forward}.0": "Module.a.A.forward.0", f"{forward}.1": "Module.a.A.forward.1", f"{backward}.1": ""}
    yield "rounds", both(parents, "Module.a.fc.Linear.parameters_grad.1", "Module.a.fc.Linear.parameters_grad")
    yield "megatron", both({"Cell.a.A.forward.7": [None, 0], "Mint.add.3.forward": ["Cell.a.A.forward.7", 1]})
    yield "circle", both({outer: inner, inner: outer, "NPU.f.4294967295.forward": inner})


def ge_statistics_seeds():
    def saved(save, inputs, outputs):
        out = io.BytesIO()
        save(out, inputs=inputs, outputs=outputs)
        return out.getvalue()

    rows = np.array([[1, 2], [3, 4]], np.float32)
    yield "rows", saved(np.savez, rows, rows[:1])
    yield "deflated", saved(np.savez_compressed, np.asfortranarray(rows), np.array([]))
    yield "integers", saved(np.savez, np.array([], np.int8), rows.astype(">i8"))
    yield "three_columns", saved(np.savez, np.zeros((2, 3)), rows)


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
    more = ["File", "NaN", "Inf", "SameAs"]
    again = [*line, "root.norm#1/output", 0, 3, "root.norm/output"]
    yield "round", table([*columns, *more], [*line, "root.norm/output", 0, 3, ""], again)
    sketch = "1:" + base64.b64encode(bytes(4 * (256 + 7 + 64))).decode()
    yield "sketches", table([*columns, *more, "Sketch"], [*line, "root.norm/output", "", "", "", sketch])
    yield "columns_in_another_order", table([*columns, "Sketch", "Inf", "File"], [*line, sketch, 1, "output"])


def rows_seeds():
    """Stores of rows with every kind of field; those of real runs are too long to begin with."""
    measured = rows.side(dtype=9, shape=(2, 3), statistics=rows.statistics())
    compared = rows.whole(1) + rows.comparison(
        rows.whole(1) + rows.whole(2) + rows.whole(1) + rows.real(0.9) + rows.real(0.1) * 2,
        rows.whole(1) + rows.profile(),
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
        made=rows.origin(sources=(), passed=[rows.text(b"view"), rows.text(b"s", 4)]),
    )
    shards = rows.side(
        [rows.record(), rows.record(rows.text(b"1.bin", 4))],
        transform=rows.whole(4) * 4 + rows.whole(1) + rows.whole(1),
    )
    kept = rows.row(
        my=rows.side(dtype=10, shape=(6,), kept=2),
        at_least=rows.whole(1) + rows.real(0.5),
        reason=rows.text(b"why."),
        made=rows.origin(is_copy=1),
    )
    missing = rows.row(golden=rows.side([]), my=rows.side(lacks=1), reason=rows.text("ünicode".encode()))
    yield "full", rows.store(rows.block(full))
    yield "shards", rows.store(rows.block(rows.row(golden=shards, my=shards)))
    yield "several", rows.store(rows.block(full + kept + missing, 3))
    yield "without_end", rows.header() + rows.block(missing) + rows.block(kept)
    yield "none", rows.store()


def ge_dump_seeds():
    matrix = np.arange(6, dtype=np.float16).reshape(2, 3)
    image = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    stored = ge_files.Stored
    yield "add", ge_files.encode("Add_1", [stored(matrix)] * 2, [stored(2 * matrix)])
    yield "nz", ge_files.encode("MatMul_1", [], [ge_files.to_nz(matrix)])
    yield "image", ge_files.encode("Conv_1", [], [ge_files.to_nc1hwc0(image, c0=4)])
    yield "filter", ge_files.encode("Conv_1", [ge_files.to_fractal_z(image, c0=4, n0=4)])
    yield "volume", ge_files.encode("Conv3D", [ge_files.to_ndc1hwc0(image[..., None], c0=4)])
    yield "channels_last", ge_files.encode("X", [stored(image, format=ge_files.NHWC, logical=[1, 2, 3, 2])])
    yield "bits", ge_files.encode("X", [stored(matrix, dtype=29, shape=[11], data=b"ab")], buffers=[b"l1"])
    yield "hifloat8", ge_files.encode("X", [stored(matrix, dtype=33, shape=[3], data=b"abc")], spaces=[b"log"])
    yield "half_bytes", ge_files.encode("X", [stored(matrix, dtype=28, shape=[1, 4], data=b"ab")])
    yield "unknown_type", ge_files.encode("X", [stored(matrix, dtype=0), stored(matrix, dtype=13)])
    yield "unpacked", ge_files.encode("X", [stored(matrix)], classes=ge_files.UNPACKED)
    yield "cut", ge_files.encode("Add_1", [stored(matrix)])[:-5]


def ge_text_seeds():
    fx = "add_1-aten.add.Tensor.OUTPUT.0"
    operations = [("Cast_1", "Cast", ["x:0"], [""]), ("Add_2", "Add", ["Cast_1:0", "x:-1", ""], [fx, ""])]
    whole = ge_files.graph_text("graph_1", operations)
    yield "graph", whole.encode()
    yield "cut", whole[: len(whole) // 2].encode()
    yield "lists", b'op: <>, op: { a: [1, {b: "]"}] [x.y]: 1; name: \'A\' "B" } # end'


# What follows are files as runs have left them, made shorter by hand.


def document(value, **options):
    return json.dumps(value, **options).encode()


def operation_table_seeds():
    columns = b"CaseNum|CaseName|OpName|OpParam|InNum|InDType|InFormat|InShape|OutNum|OutDType|OutFormat|OutShape\n"
    linear = b'1|C_1|LinearOperation_4_0|{"hasBias":false}|2|float16;float16|nd;nd|7,64;64,64|1|float16|nd|7,64\n'
    yield "whole", columns + linear
    yield "plugin", columns + b"2|C_2|MyPlugin_3|a|b|0||||1|ACL_BF16|nd|\n" + linear
    yield "cut", (columns + linear)[:-9]
    yield "dos_lines", (columns + linear).replace(b"\n", b"\r\n")


def operation_rows_seeds():
    yield from operation_table_seeds()
    columns = b"OpName|OpType|OpParam|OutDType|InTensorFile|OutTensorFile|InShape|OutShape\n"
    yield "files", columns + b"A_1_2|BOperation|{}|float|a.bin;;b.bin|c.bin|2,3;;4|5\n"
    yield "in_place", columns + b"KvCacheOperation_3||{}||||\nSetValueOperation_3||{}|\n"
    yield "senseless", columns + b"A|\nA_x|\n_1|\nA_99999999999999999999|\n\n|||\nA_1\n"


def golden_seeds():
    """The type, the parameters and a line for each tensor, one character a number."""

    def call(operation, params, *tensors):
        return "\n".join([operation + "Operation", json.dumps(params), *tensors]).encode()

    yield "linear", call("Linear", {"hasBias": False}, "i float16 2,16 01.a", "i float16 3,16 1_2")
    yield "linear_nz", call("Linear", {"hasBias": False}, "i float16 16,16 12", "f float16 1,1,16,16 01")
    norm = {"layerType": 1, "normParam": {"epsilon": 1e-5}}
    yield "norm", call("RmsNorm", norm, "i bfloat16 2,8 12.3", "i bfloat16 8 1")
    heads = {"headNum": 2, "kvHeadNum": 1, "qkScale": 0.5}
    paged = ["i float16 2,2,8 1a.", "i float16 3,4,1,8 1_", "i float16 3,4,1,8 12", "i int32 2,2 0121", "i int32 2 53"]
    yield "paged", call("PagedAttention", heads, *paged)
    packed = ["i float16 3,2,8 1a.", "i float16 3,1,8 1_", "i float16 3,1,8 12", "i int32 2 21"]
    yield "packed", call("SelfAttention", heads | {"calcType": 3}, *packed)
    caches = ["i float16 3,4,1,8 0", "i float16 3,4,1,8 1", "i int32 2 4a"]
    yield "cache", call("ReshapeAndCache", {}, "i float16 2,1,8 12", "i float16 2,1,8 34", *caches)
    yield "written", call("SetValue", {"starts": [0], "ends": [2], "strides": [1]}, "i int8 4 0", "i int8 2 12")
    ranks = [f'r {{"rank": {rank}, "rankSize": 2}}\ni float32 3 {rank}12' for rank in range(2)]
    yield "ranks", call("AllReduce", {"rank": 0, "rankSize": 2}, "i float32 3 012", *ranks)
    yield "huge", call("Repeat", {"multiples": [1 << 40, 2]}, "i float16 2,2 12", "o float16 4,4")
    yield "missing", call("Elewise", {"elewiseType": 8}, "i float16 2,2 12", "-")


def metadata_seeds():
    golden = "/data/golden/ait_dump/4711_-1/golden_tensor"
    mine = "/data/ait_dump/tensors/0_9/0/0_Linear/after/outtensor0.bin"
    entries = {"layers.0.mlp": {token: [f"{golden}/{token}/layers.0.mlp_tensor.pth", mine] for token in "01"}}
    yield "dump_data", document({**entries, "7": {"0": [f"{golden}/0/7_tensor.pth", mine]}}, indent=2)
    yield "relative", document({"1": {"0": ["0/1_tensor.pth", "../../x.bin"]}})
    yield "twice", b'{"1": {"0": ["/g", "/m"]}, "1": {"1": ["/g", "/m"]}}'
    yield "odd", document({"1": {"0": ["/g"], "1": "text"}, "2": 7, "\ud83d\ude00\u0000": {"": ["", ""]}})


def index_seeds():
    shards = {"model.embed_tokens.weight": "model-00001-of-00002.safetensors", "lm_head.weight": "b.safetensors"}
    yield "transformers", document({"metadata": {"total_size": 13476831232}, "weight_map": shards}, indent=2)
    yield "escape", document({"weight_map": {"a": "../../etc/passwd", "b": "/dev/zero", "c": ".."}})


def labels_seeds():
    first = {"data_id": "data_1700000000.25_0", "source": "pta", "path": "/w/pta_tensor/0_tensor.bin"}
    second = {**first, "source": "acl", "path": "/w/0/after/outTensor0.bin", "problem": "", "waits": True}
    lines = document(first) + b"\n" + document({**second, "seen_ns": None}) + b"\n"
    yield "pair", lines
    yield "cut", lines[:-20]
    yield "odd", lines + b'\n{"data_id": 7}\n[]\n' + document({**first, "source": "x"})


def model_tree_seeds():
    def module(name, kind, *children, **more):
        return {"name": name, "type": kind, "children": list(children), **more}

    norm = module("root.a", "LlamaRMSNorm", order=2)
    layers = module("root.layers", "ModuleList", module("root.layers.0", "Block", order=1))
    yield "hooks", document(module("root", "Model", layers, norm, order=0), indent=1)
    tied = {"name": "root.tied", "type": "Norm", "alias_of": "root.a", "children": []}
    yield "alias", document(module("root", "Model", norm, tied))
    part = module("root.transformer.h.2", "BloomLayer", module("root.transformer.h.2.mlp", "BloomMLP"))
    yield "older", document(part)
    yield "twins", document(module("a", "M", norm, norm, module("a", "M", norm, order=2**64 - 1)))


def op_param_seeds():
    yield "linear", b'{"transposeA":false,"transposeB":true,"hasBias":false,"outDataType":-1}\n'
    quant = {"inputScale": 0.017, "inputOffset": -3}
    yield "elewise", document({"elewiseType": "ELEWISE_ADD", "quantParam": quant, "mulsParam": {"varAttr": 1.0}})
    yield "lists", document({"shape": [1, -1, 64], "scales": [0.5, 1e-05], "name": "x\n", "nothing": None})
    yield "graph", b'""'


def op_mapping_seeds():
    yield "types", document({"RmsNormOperation": ["LlamaRMSNorm"], "Demo_Layer_outtensor0": "Demo_Block_output_0"})
    records = [{"atb": "LinearOperation", "torch": "Linear", "atb_tensor": "outtensor0", "torch_tensor": "output"}]
    yield "records", document(records)


def manifest_seeds():
    reasons = [{"reason": "the file system is full", "first": "root.a", "count": 3}]
    rounds = {"0": {"state": "finished", "expected": 3, "seen": 2, "calls": 3, "never_ran": ["root.b"]}}
    written = {"format": 1, "tool": "ait_llm 0.1.0", "state": "complete", "pid": 7, "device": "cpu", "rank": 1}
    config = {"dump_path": "/data/t", "token_range": [0], "dump_statistics_mode": 1}
    lists = {"never_ran_because": ["it was not called"], "not_stored": reasons, "errors": reasons}
    counts = {"submitted": 6, "written": 6, "failed": 0, "first_failure": None}
    yield "torch", document({**written, "config": config, "rounds": rounds, **lists, "tensors": counts}, indent=1)
    run = {"tool": "ait llm dump", "version": "0.1.0", "complete": False, "incomplete_because": ["it was killed"]}
    yield "launcher", document({**run, "start": "2025-01-02T03:04:05+08:00", "tensors": {"announced": 9, "lost": 2}})


def run_file_seeds():
    yield "overflow", b"Overflow detected! Operator name: ElewiseOperation_1:AddF32Kernel\n" * 2
    setup = b"[LinearOperation_4_0]:totalTime:40, runnerSetupTime:7\n"
    execute = b"[LinearOperation_4_0]:totalTime:12, kernelExecuteTime:3\n"
    yield "profile", setup + execute + setup + b"[Other_1]:totalTime:1, kernelExecuteTime:1"
    yield "ledger", b"Aledgr01" + bytes(1000)


def program_seeds():
    """Scripts, and a library with a symbol of the probe as a linker lays it out."""
    yield "script", b"#!/usr/bin/env -S X=1 python3 -u\nprint()\n"
    yield "shell", b"#! /bin/sh\n"
    names = b"\0_ZN3atb5Probe10SaveTensorERKSsS2_S2_PKvmS2_\0"
    interpreter = b"/lib64/ld-linux-x86-64.so.2\0"
    interp_at, names_at = 64 + 56, 64 + 56 + len(interpreter)
    symbols_at = names_at + len(names)
    sections_at = symbols_at + 48
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 1, 64, 3, 0)
    program = struct.pack("<IIQQQQQQ", 3, 4, interp_at, 0, 0, len(interpreter), len(interpreter), 1)
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 18, 0, 1, 4096, 8)
    sections = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, symbols_at, 48, 2, 1, 8, 24),
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
    ]
    library = header + program + interpreter + names + symbols + b"".join(sections)
    yield "library", library
    yield "other_machine", library[:18] + b"\xb7\0" + library[20:]
    yield "cut", library[:-70]


def dump_tree_seeds():
    """Two runs as lists of their files: a path and what it holds; @3 is a tensor, &3 one that GE dumped."""
    tree = '{"name":"root","type":"M","order":0,"children":[{"name":"root.a","type":"Linear","order":1,"children":[]}]}'
    torch_run = [
        f"golden/ait_dump/torch_tensors/cpu_7/model_tree.json {tree}",
        'golden/ait_dump/torch_tensors/cpu_7/manifest.json {"rank": 0}',
        "golden/ait_dump/torch_tensors/cpu_7/0/root.a/output.pth @3",
        "golden/ait_dump/torch_tensors/cpu_7/0/root.a/input_0.pth @4",
        "golden/ait_dump/torch_tensors/cpu_7/1/root.a#1/output_0.pth @5",
    ]
    library_run = [
        'my/ait_dump/layer/7/L_0.json {"opName":"L_0","nodes":[{"opName":"LinearOperation_0_0"}]}',
        'my/ait_dump/tensors/0_7/0/0_L/0_LinearOperation/op_param.json {"hasBias":false}',
        "my/ait_dump/tensors/0_7/0/0_L/0_LinearOperation/after/outtensor0.bin @3",
        "my/ait_dump/tensors/0_7/0/0_L/after/outtensor0.bin @3",
        "my/ait_dump/tensors/0_7/1/0_L/after/outtensor0.bin @5",
        "my/ait_dump/tensors/1_8/0/0_L/before/intensor0.bin @4",
    ]

    def listed(*lines):
        return "\n".join(lines).encode()

    named = 'output_desc { attr { key: "_fx_tensor_name" value { s: "add_1-aten.add.OUTPUT.0" } } }'
    graph = f'op {{ name: "Add_1" type: "Add" {named} }} op {{ name: "Cast_2" input: "Add_1:0" }}'
    ge_run = [
        f"my/dynamo_original_graph_1_rank_0_pid_7_ts_1.txt {graph}",
        "my/worldsize1_global_rank0/20240125031118/0/graph_1/1/0/Add.Add_1.1.2.1700000000000001 &3",
        "my/worldsize1_global_rank0/20240125031118/0/graph_1/1/0/AutomaticBufferFusionOp.Add_1Cast_2.1.2.3 &4",
        "my/worldsize1_global_rank0/20240125031118/0/graph_1/1/1/TransData.trans_1.1.2.1700000000000002 &5",
    ]
    fx_run = [
        "golden/worldsize1_global_rank0/graph_1/0/add_1-aten.add.OUTPUT.0.20240125031118000001.npy @3",
        "golden/worldsize1_global_rank0/graph_1/0/add_1-aten.add.INPUT.1.0.20240125031118000001.npy @4",
        "golden/worldsize1_global_rank0/graph_2/1/mm-aten.mm.OUTPUT.0.20240125031118000002.npy @5",
    ]
    older = ["golden/data_dump/1/gm_20240125031118_dump/add_1-aten.add.OUTPUT.0.20240125031118000001.npy @3"]
    flat = [line.replace("worldsize1_global_rank0/", "") for line in ge_run]
    yield "ge_and_fx", listed(*ge_run, *fx_run)
    yield "ge_and_older_fx", listed(*flat, *older)
    yield "two_ge", listed(*ge_run, *(line.replace("my/", "golden/") for line in ge_run))
    yield "two_fx", listed(*fx_run, *(line.replace("golden/", "my/") for line in older))
    yield "torch_and_fx", listed(*torch_run, *(line.replace("golden/", "my/") for line in fx_run))

    yield "torch_and_library", listed(*torch_run, *library_run)
    yield "two_libraries", listed(*library_run, *(line.replace("my/", "golden/") for line in library_run))
    yield "two_torch", listed(*torch_run, *(line.replace("golden/", "my/") for line in torch_run))
    yield "folders", listed("golden/a.npy @1", "golden/sub/b.bin @2", "my/a.bin @1", "my/c.npy")
    index = 'model.safetensors.index.json {"weight_map":{"w":"s.safetensors"}}'
    yield (
        "checkpoints",
        listed(*(f"{side}/{line}" for side in ("golden", "my") for line in (index, "s.safetensors @1"))),
    )
    yield "mapping", listed('golden/golden_tensor/metadata.json {"1":{"0":["0/1_tensor.pth","x.bin"]}}', "my/x.bin @1")


def plan_seeds():
    chosen = (
        rows.whole(1) + rows.whole(4) + rows.whole(2) + rows.whole(1) + rows.whole(2) + rows.whole(1) + rows.whole(3)
    )
    padding = rows.whole(1) + rows.whole(9) + rows.whole(129) * 2
    first = plans.pair(golden=plans.side(rows=chosen), my=plans.side(rows=rows.whole(1)), padding=padding, fit=1)
    scaled = plans.side([rows.record()] * 2, dequantise=1)
    second = plans.pair(1, 70, my=scaled, padding=rows.whole(1), certainty=1, made=rows.origin())
    token = rows.text(b"0") + rows.text(b"1") * 2 + rows.whole(1) * 2
    facts = plans.facts(2, 170, blocks=((0, 131242, 0),), tokens=rows.whole(1) + token, kind=rows.whole(1) * 2)
    yield "full", plans.plan((first + second, 2), note=facts)
    blocks = ((1, 65606, 1), (0, 65636, 0))
    nodes = (rows.text(b"n0"), rows.text(b"1", 1))
    yield "nodes", plans.plan(plans.pair(1), plans.pair(), note=plans.facts(2, 200, blocks=blocks, nodes=nodes))
    only = plans.facts(9, only=rows.whole(1) + rows.whole(2) + rows.whole(3), blocks=((0, 65636, 4),))
    yield "cut", plans.plan(plans.pair(4), note=only)


def part_seeds():
    yield "one", plans.part()
    several = plans.part_row(3) + plans.part_row(3) + plans.part_row(0, made=rows.whole(0))
    yield "runs", plans.part(several, 3, note=plans.part_facts(runs=((0, 3), (2, 0))))


def folder_index_seeds():
    def text(value):
        return struct.pack("<I", len(value)) + value

    def index(shapes, rounds):
        rest = text(b"/dump/0_77") + struct.pack("<QQ", 1, 2)
        rest += struct.pack("<I", len(shapes))
        for folders, files in shapes:
            rest += struct.pack("<I", len(folders))
            rest += text(b"".join(f + b"\0" for f in folders)) + text(b"".join(f + b"\0" for f in files))
        rest += struct.pack("<I", len(rounds))
        for name, units in rounds:
            rest += text(name) + struct.pack("<I", len(units))
            for unit in units:
                rest += struct.pack("<I", unit) + struct.pack("<QQQ", 3, 4, 5) * len(shapes[unit][0])
        return b"ait tree" + struct.pack("<II", 1, zlib.crc32(rest)) + rest

    word = ([b"0_Word", b"0_Word/after"], [b"after/outtensor0.bin"])
    layer = ([b"1_Layer", b"1_Layer/0_Linear"], [b"0_Linear/op_param.json", b"x.bin"])
    yield "empty", index([], [])
    yield "one", index([word], [(b"0", [0])])
    yield "rounds", index([word, layer, ([b"1_Layer"], [])], [(b"0", [0, 1]), (b"1", [0, 2]), (b"10", [])])


SEEDS = {
    "fuzz_npy": npy_seeds(),
    "fuzz_npz": npz_seeds(),
    "fuzz_ge_statistics": ge_statistics_seeds(),
    "fuzz_torch_zip": torch_seeds(zipped=True),
    "fuzz_torch_legacy": torch_seeds(zipped=False),
    "fuzz_pickle": pickle_seeds(),
    "fuzz_safetensors": safetensors_seeds(),
    "fuzz_atb_bin": atb_bin_seeds(),
    "fuzz_statistics_csv": statistics_csv_seeds(),
    "fuzz_ge_dump": ge_dump_seeds(),
    "fuzz_gguf": gguf_seeds(),
    "fuzz_onnx_tensor": onnx_tensor_seeds(),
    "fuzz_polygraphy_json": polygraphy_json_seeds(),
    "fuzz_atb_statistics": atb_statistics_seeds(),
    "fuzz_msprobe_json": msprobe_json_seeds(),
    "fuzz_msprobe_dump": msprobe_dump_seeds(),
    "fuzz_ge_text": ge_text_seeds(),
    "fuzz_folder_index": folder_index_seeds(),
    "fuzz_rows": rows_seeds(),
    "fuzz_plan": plan_seeds(),
    "fuzz_part": part_seeds(),
    "fuzz_topology": topology_seeds(),
    "fuzz_operation_table": operation_table_seeds(),
    "fuzz_operation_rows": operation_rows_seeds(),
    "fuzz_golden": golden_seeds(),
    "fuzz_metadata": metadata_seeds(),
    "fuzz_index": index_seeds(),
    "fuzz_labels": labels_seeds(),
    "fuzz_model_tree": model_tree_seeds(),
    "fuzz_op_param": op_param_seeds(),
    "fuzz_op_mapping": op_mapping_seeds(),
    "fuzz_manifest": manifest_seeds(),
    "fuzz_run_file": run_file_seeds(),
    "fuzz_program": program_seeds(),
    "fuzz_dump_tree": dump_tree_seeds(),
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
