"""GE dump files as protobuf's own library encodes them, and tensors in the orders that devices store.

The schema is written here from the published one, and the packers are plain numpy: nothing is shared with the reader.
"""

import math
import pathlib
import struct

import ml_dtypes
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

LABELS = {"one": 1, "many": 3}
TYPES = {"float": 2, "int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9, "bytes": 12, "uint32": 13}

# field: number, type, how often
SCHEMA = {
    "Shape": {"dim": (1, "uint64", "many")},
    "DimRange": {"dim_start": (1, "uint64", "one"), "dim_end": (2, "uint64", "one")},
    "OriginalOp": {
        "name": (1, "string", "one"),
        "output_index": (2, "uint32", "one"),
        "data_type": (3, "int32", "one"),
        "format": (4, "int32", "one"),
    },
    "OpOutput": {
        "data_type": (1, "int32", "one"),
        "format": (2, "int32", "one"),
        "shape": (3, "Shape", "one"),
        "original_op": (4, "OriginalOp", "one"),
        "data": (5, "bytes", "one"),
        "size": (6, "uint64", "one"),
        "original_shape": (7, "Shape", "one"),
        "sub_format": (8, "int32", "one"),
        "address": (9, "uint64", "one"),
        "dim_range": (10, "DimRange", "many"),
        "offset": (11, "uint64", "one"),
    },
    "OpInput": {
        "data_type": (1, "int32", "one"),
        "format": (2, "int32", "one"),
        "shape": (3, "Shape", "one"),
        "data": (4, "bytes", "one"),
        "size": (5, "uint64", "one"),
        "original_shape": (6, "Shape", "one"),
        "sub_format": (7, "int32", "one"),
        "address": (8, "uint64", "one"),
        "offset": (9, "uint64", "one"),
        "arg_index": (10, "uint32", "one"),
        "input_type": (11, "uint32", "one"),
    },
    "OpBuffer": {"buffer_type": (1, "int32", "one"), "data": (2, "bytes", "one"), "size": (3, "uint64", "one")},
    "OpAttr": {"name": (1, "string", "one"), "value": (2, "string", "one")},
    "Workspace": {"type": (1, "int32", "one"), "data": (2, "bytes", "one"), "size": (3, "uint64", "one")},
    "DumpData": {
        "version": (1, "string", "one"),
        "dump_time": (2, "uint64", "one"),
        "output": (3, "OpOutput", "many"),
        "input": (4, "OpInput", "many"),
        "buffer": (5, "OpBuffer", "many"),
        "op_name": (6, "string", "one"),
        "attr": (7, "OpAttr", "many"),
        "space": (8, "Workspace", "many"),
        "dfx_message": (9, "string", "one"),
        "of_the_future": (4000, "OpAttr", "many"),
    },
}

# What a graph's text has of GraphDef. A map prints as a list of entries with a key and a value.
GRAPH_SCHEMA = {
    "ShapeDef": {"dim": (1, "int64", "many")},
    "ListValue": {"s": (2, "bytes", "many"), "i": (3, "int64", "many"), "val_type": (20, "int32", "one")},
    "AttrDef": {
        "list": (1, "ListValue", "one"),
        "s": (2, "bytes", "one"),
        "i": (3, "int64", "one"),
        "f": (4, "float", "one"),
        "b": (5, "bool", "one"),
    },
    "Attr": {"key": (1, "string", "one"), "value": (2, "AttrDef", "one")},
    "TensorDescriptor": {
        "name": (1, "string", "one"),
        "dtype": (2, "int32", "one"),
        "shape": (3, "ShapeDef", "one"),
        "layout": (4, "string", "one"),
        "attr": (5, "Attr", "many"),
    },
    "OpDef": {
        "name": (1, "string", "one"),
        "type": (2, "string", "one"),
        "input": (5, "string", "many"),
        "attr": (10, "Attr", "many"),
        "id": (21, "int64", "one"),
        "input_desc": (33, "TensorDescriptor", "many"),
        "output_desc": (34, "TensorDescriptor", "many"),
    },
    "GraphDef": {
        "name": (1, "string", "one"),
        "input": (4, "string", "many"),
        "output": (5, "string", "many"),
        "op": (6, "OpDef", "many"),
        "attr": (11, "Attr", "many"),
    },
}


def message_classes(schema, package, packed=True):
    """Classes of protobuf's library for a schema like SCHEMA."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in schema.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind, often) in fields.items():
            field = message.field.add(name=field_name, number=number, label=LABELS[often])
            if kind in TYPES:
                field.type = TYPES[kind]
                if often == "many" and kind in ("uint64", "uint32", "int32"):
                    field.options.packed = packed
            else:
                field.type = 11
                field.type_name = f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in schema}


PACKED = message_classes(SCHEMA, "toolkit.dumpdata")
UNPACKED = message_classes(SCHEMA, "toolkit.dump", packed=False)

GRAPH = message_classes(GRAPH_SCHEMA, "ge.proto")


def graph_text(name, operations):
    """The text of a graph; an operation is its name, type, inputs ("Cast_1:0") and the FX name of each output."""
    graph = GRAPH["GraphDef"](name=name)
    for op_name, op_type, inputs, fx_tensors in operations:
        op = graph.op.add(name=op_name, type=op_type, input=inputs, id=len(graph.op))
        op.attr.add(key="note: {").value.s = b'say "}" \\ \xff\n'
        for source in inputs:
            op.input_desc.add(name=source, dtype=1)
        for fx_tensor in fx_tensors:
            output = op.output_desc.add(name="y", dtype=1, layout="ND")
            output.shape.dim.extend([-1, 4])
            output.attr.add(key="format_for_int").value.i = 2
            if fx_tensor:
                output.attr.add(key="_fx_tensor_name").value.s = fx_tensor.encode()
    graph.attr.add(key="_executor_type").value.s = b"HOST"
    return text_format.MessageToString(graph)


ND, NCHW, NHWC, HWCN, NZ = 2, 0, 1, 16, 29

# numpy's type for each number of OutputDataType that numpy, or ml_dtypes, has.
NUMPY_TYPES = {
    1: np.float32,
    2: np.float16,
    3: np.int8,
    4: np.uint8,
    5: np.int16,
    6: np.uint16,
    7: np.int32,
    8: np.int64,
    9: np.uint32,
    10: np.uint64,
    11: np.bool_,
    12: np.float64,
    16: np.complex64,
    17: np.complex128,
    18: np.int8,
    19: np.int16,
    20: np.int32,
    21: np.uint8,
    22: np.uint16,
    23: np.int64,
    27: ml_dtypes.bfloat16,
    34: ml_dtypes.float8_e5m2,
    35: ml_dtypes.float8_e4m3fn,
    36: ml_dtypes.float8_e8m0fnu,
}
NUMBER_OF = {np.dtype(kind): number for number, kind in reversed(NUMPY_TYPES.items())}


class Stored:
    """A tensor as a device keeps it: its bytes, and what the header says of them."""

    def __init__(self, array, dtype=None, format=ND, logical=None, shape=None, data=None, size=None, groups=0):
        array = np.asarray(array)
        self.dtype = NUMBER_OF[array.dtype] if dtype is None else dtype
        self.format = format
        self.shape = list(array.shape if shape is None else shape)
        self.logical = list(self.shape if logical is None else logical)
        self.data = array.tobytes() if data is None else data
        self.size = len(self.data) if size is None else size
        self.groups = groups


def encode(op_name, inputs=(), outputs=(), classes=PACKED, buffers=(), spaces=(), extra=None, version="2.0"):
    """The bytes of a dump file."""
    message = classes["DumpData"](version=version, dump_time=1, op_name=op_name)
    for kind, tensors in (("output", outputs), ("input", inputs)):
        for tensor in tensors:
            entry = getattr(message, kind).add(data_type=tensor.dtype, format=tensor.format, size=tensor.size)
            entry.sub_format = tensor.groups
            entry.shape.dim.extend(tensor.shape)
            entry.original_shape.dim.extend(tensor.logical)
    for block in buffers:
        message.buffer.add(size=len(block))
    for block in spaces:
        message.space.add(size=len(block))
    if extra is not None:
        extra(message)
    header = message.SerializeToString()
    blocks = [tensor.data for tensor in (*inputs, *outputs)] + [*buffers, *spaces]
    return struct.pack("<Q", len(header)) + header + b"".join(blocks)


def as_stored(value):
    return value if isinstance(value, Stored) else Stored(np.asarray(value))


def write(path, op_name, inputs=(), outputs=(), **options):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(op_name, [as_stored(i) for i in inputs], [as_stored(o) for o in outputs], **options))
    return path


def garbage(shape, dtype):
    """What a device may leave in the part of a block that it does not use."""
    return np.full(shape, 77, dtype)


def padded(array, axis, multiple):
    size = math.ceil(array.shape[axis] / multiple) * multiple
    shape = list(array.shape)
    shape[axis] = size
    out = garbage(shape, array.dtype)
    out[tuple(slice(0, n) for n in array.shape)] = array
    return out


def to_nz(array, c0=16, n0=16):
    """FRACTAL_NZ: the columns in blocks of c0, one block after the other, and rows in blocks of n0 within."""
    matrix = array.reshape((1, *array.shape)) if array.ndim == 1 else array
    matrix = padded(padded(matrix, -1, c0), -2, n0)
    *lead, rows, columns = matrix.shape
    blocks = matrix.reshape(*lead, rows // n0, n0, columns // c0, c0)
    axes = list(range(len(lead)))
    n = len(lead)
    out = blocks.transpose(*axes, n + 2, n, n + 1, n + 3)
    return Stored(out, format=NZ, logical=array.shape)


def to_nc1hwc0(nchw, c0=16, logical=None, format=3):
    n, _, h, w = nchw.shape
    c = padded(nchw, 1, c0)
    out = c.reshape(n, c.shape[1] // c0, c0, h, w).transpose(0, 1, 3, 4, 2)
    return Stored(out, format=format, logical=nchw.shape if logical is None else logical)


def to_fractal_z(nchw, c0=16, n0=16, logical=None, groups=0):
    _, _, h, w = nchw.shape
    full = padded(padded(nchw, 0, n0), 1, c0)
    no, c1 = full.shape[0] // n0, full.shape[1] // c0
    blocks = full.reshape(no, n0, c1, c0, h, w).transpose(2, 4, 5, 0, 1, 3)
    out = blocks.reshape(c1 * h * w, no, n0, c0)
    return Stored(out, format=4, logical=nchw.shape if logical is None else logical, groups=groups)


def to_ndc1hwc0(ncdhw, c0=16, logical=None):
    n, _, d, h, w = ncdhw.shape
    c = padded(ncdhw, 1, c0)
    out = c.reshape(n, c.shape[1] // c0, c0, d, h, w).transpose(0, 3, 1, 4, 5, 2)
    return Stored(out, format=32, logical=ncdhw.shape if logical is None else logical)
