"""Attacks on the reader of ONNX's TensorProto. What is no such message at all is of no format."""

from attack_list import attack

FLOAT, STRING, INT32, INT64, INT4 = 1, 8, 6, 7, 22
VARINT, BYTES = 0, 2


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3 | VARINT) + varint(value)


def chunk(field, content):
    return varint(field << 3 | BYTES) + varint(len(content)) + content


def onnx_tensor(*data, dims=(4,), kind=FLOAT):
    return b"".join(number(1, size) for size in dims) + number(2, kind) + b"".join(data)


def onnx_tensor_attacks():
    raw = chunk(9, bytes(16))

    def add(name, why, content, words, **more):
        attack(f"onnx_tensor/{name}.pb", why, content, words, **more)

    def no_tensor(name, why, content):
        add(name, why, content, "not a tensor file", code="Unsupported")

    add("too_few_bytes", "a shape that needs more than there is", onnx_tensor(raw, dims=(5,)), "needs 20 bytes")
    add("too_many_bytes", "bytes beyond the shape", onnx_tensor(raw, dims=(3,)), "needs 12 bytes")
    add("terabyte", "a terabyte over 16 bytes", onnx_tensor(raw, dims=(2**38,)), "needs 1099511627776 bytes")
    add("bytes_overflow", "bytes that are 0 modulo 2^64", onnx_tensor(raw, dims=(2**62,)), "impossible shape")
    external = number(14, 1) + chunk(13, chunk(1, b"location") + chunk(2, b"/etc/passwd"))
    add("external", "data in a file of its choice", onnx_tensor(external), "not followed", code="Unsupported")
    add("segment", "a part of a tensor", onnx_tensor(raw, chunk(3, b"\x08\x01")), "segment", code="Unsupported")
    add("strings", "texts for numbers", onnx_tensor(chunk(6, b"a"), kind=STRING), "STRING", code="Unsupported")
    add("int4", "a packed type", onnx_tensor(raw, kind=INT4), "INT4", code="Unsupported")
    add("other_field", "integers in the field of floats", onnx_tensor(chunk(4, bytes(16)), kind=INT64), "another type")
    few = onnx_tensor(chunk(7, b"\x01\x02"), dims=(2**50,), kind=INT64)
    add("few_numbers", "two numbers for 2^50 elements", few, "fewer numbers")
    add(
        "more_numbers",
        "four numbers for two",
        onnx_tensor(chunk(5, b"\1\2\3\4"), dims=(2,), kind=INT32),
        "more or fewer",
    )
    cut = onnx_tensor(chunk(5, b"\xff" * 4), dims=(1,), kind=INT32)
    add("endless_number", "a number that does not end", cut, "ends inside a number")
    pieces = onnx_tensor(chunk(4, bytes(8)), chunk(4, bytes(8)))
    add("pieces", "floats in two pieces", pieces, "several pieces", code="Unsupported")
    no_tensor("negative_size", "a size of -1", onnx_tensor(raw, dims=(2**64 - 1,)))
    no_tensor("hundred_dimensions", "more dimensions than anybody has", onnx_tensor(raw, dims=(1,) * 100))
    no_tensor("elements_overflow", "a product of sizes beyond 64 bits", onnx_tensor(raw, dims=(2**40, 2**40)))
    no_tensor("type_0", "no type at all", onnx_tensor(raw, kind=0))
    no_tensor("type_of_2_to_63", "a type beyond every table", onnx_tensor(raw, kind=2**63))
    no_tensor("field_beyond", "a field said to be longer than the file", onnx_tensor() + b"\x4a\xff\xff\xff\xff\x0f")
    no_tensor("strange_field", "a field that no tensor has", onnx_tensor(raw, chunk(40, b"x")))
    no_tensor("group", "a group that never ends", onnx_tensor(raw) + b"\x0b")
