"""Attacks on the reader of GE dumps."""

import struct

from attack_list import attack


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(size_field, dims=(2,), size=8, dtype=1, format=2, logical=(), more=b""):
    shape = message(3, message(1, b"".join(varint(dim) for dim in dims)))
    original = message(size_field + 1, message(1, b"".join(varint(dim) for dim in logical)))
    return number(1, dtype) + number(2, format) + shape + number(size_field, size) + original + more


def given(**fields):
    return message(4, tensor(5, **fields))


def result(**fields):
    return message(3, tensor(6, **fields))


VERSION = message(1, b"2.0") + number(2, 1)


def dump(header, data=bytes(8), header_bytes=None):
    return struct.pack("<Q", len(header) if header_bytes is None else header_bytes) + header + data


def ge_dump_attacks():
    good = VERSION + result()

    def add(name, why, content, words, **more):
        attack(f"ge_dump/{name}", why, content, words, **more)

    def one(name, why, words, data=bytes(8), code="Corrupt", **fields):
        add(name, why, dump(VERSION + result(**fields), data), words, code=code)

    add("header_of_2_to_63", "a header of 2^63 bytes", dump(good, header_bytes=1 << 63), "cut short")
    add("header_of_2_to_64", "a header whose end wraps around", dump(good, header_bytes=2**64 - 1), "cut short")
    add("header_beyond_file", "a header one byte longer than the file", dump(good, b"", len(good) + 1), "cut short")
    add("header_too_short", "a header that ends inside a field", dump(good, header_bytes=len(good) - 3), "cut short")
    add(
        "field_beyond_header", "a field that is longer than the header", dump(VERSION + b"\x1a\x7f"), "where 0 are left"
    )
    add(
        "field_of_2_to_63",
        "a field of 2^63 bytes",
        dump(VERSION + b"\x1a" + varint(1 << 63) + bytes(4)),
        "has a field of 9223372036854775808 bytes",
    )
    add("number_of_11_bytes", "a number that does not end", dump(VERSION + b"\x10" + b"\xff" * 11), "more than 64 bits")
    add("field_number_0", "a field that has no number", dump(VERSION + b"\x02\x00"), "no message can have")
    add("wire_type_7", "a kind of field that does not exist", dump(VERSION + b"\x0f"), "no message can have")
    add("end_without_group", "the end of a group that was not begun", dump(VERSION + b"\x0c"), "was not begun")
    add("group_ends_another", "a group that ends as another one", dump(VERSION + b"\x7b\x0c"), "was not begun")
    add("groups_5000_deep", "5 000 nested groups", dump(VERSION + b"\x7b" * 5000), "deeper than any message")
    add("group_without_end", "a group that does not end", dump(VERSION + b"\x7b"), "inside a group")
    add(
        "hundred_dimensions",
        "100 dimensions",
        dump(VERSION + result(dims=(1,) * 100)),
        "more than 64 dimensions",
    )
    add(
        "messages_in_messages",
        "5 000 messages, each in a field of the one before that means nothing",
        dump(VERSION + nested(5000), b""),
        "holds no tensor",
        code="Usage",
    )
    add("nano", "another kind of file with the same beginning", dump(b"ZZZZ" + good), "nano", code="Unsupported")
    one("size_of_2_to_63", "a block of 2^63 bytes", "reaches beyond the end", size=1 << 63)
    one("size_of_2_to_64", "a block whose end wraps around", "reaches beyond the end", size=2**64 - 8)
    one("size_of_0", "a block of no bytes for two elements", "needs 8 bytes", b"", size=0)
    one("dims_larger_than_block", "a shape that needs more than its block has", "needs 4000 bytes", dims=(1000,))
    one("dims_overflow", "a shape that is 0 modulo 2^64", "too many bytes", dims=(1 << 32, 1 << 32))
    one("dims_bytes_overflow", "a shape whose bytes are 0 modulo 2^64", "too many bytes", dims=(1 << 62,))
    one("dim_of_2_to_63", "a dimension that is negative as a signed number", "too many bytes", dims=(1 << 63,))
    one("zero_hides_overflow", "a zero beside dimensions that overflow", "too many", dims=(0, 1 << 40, 1 << 40))
    one("bits_of_2_to_63", "so many bits that their bytes are few when rounded", "needs", dims=(2**63 - 1,), dtype=29)
    one(
        "odd_number_of_halves",
        "half a byte too many",
        "data type not supported",
        dims=(3,),
        dtype=28,
        code="Unsupported",
    )
    one("type_unknown", "a type that nobody has", "data type not supported", dtype=1000, code="Unsupported")
    one("type_negative", "a negative type", "data type not supported", dtype=2**64 - 1, code="Unsupported")
    one(
        "strings",
        "texts, which are places in somebody's memory",
        "data type not supported",
        dtype=13,
        code="Unsupported",
    )
    listed = VERSION + given(size=8) + result(size=2**64 - 8)
    add(
        "later_block_wraps",
        "a block behind a good one whose end comes back into the file",
        dump(listed),
        "reaches beyond the end",
        outcome="listed",
    )


def nested(depth):
    content = b""
    for _ in range(depth):
        content = message(15, content)
        if len(content) > 15_000:
            break
    return content
