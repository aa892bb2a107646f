"""Attacks on the reader of safetensors files."""

import struct

from attack_list import attack


def safetensors(header, data=bytes(16), header_bytes=None):
    header = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(header) if header_bytes is None else header_bytes) + header + data


def entry(dtype='"F32"', shape="[4]", offsets="[0, 16]", name="w"):
    return f'"{name}": {{"dtype": {dtype}, "shape": {shape}, "data_offsets": {offsets}}}'


def safetensors_attacks():
    good = "{" + entry() + "}"

    def add(name, why, content, words, **more):
        attack(f"safetensors/{name}.safetensors", why, content, words, **more)

    def one(name, why, words, data=bytes(16), code="Corrupt", **fields):
        add(name, why, safetensors("{" + entry(**fields) + "}", data), words, code=code)

    add(
        "header_of_2_to_63",
        "a header of 2^63 bytes",
        safetensors(good, header_bytes=1 << 63),
        "not a tensor file",
        code="Unsupported",
    )
    add(
        "header_of_99_mb",
        "a header of 99 MB in a file of 100 bytes",
        safetensors(good, header_bytes=99_000_000),
        "said to be 99000000 bytes long but",
    )
    add(
        "header_above_limit",
        "a header above the format's own limit",
        safetensors(good, header_bytes=100_000_001),
        "the format allows",
        code="Unsupported",
    )
    add(
        "header_beyond_file",
        "a header one byte longer than the file",
        safetensors(good, b"", len(good) + 1),
        "cut short",
    )
    add(
        "header_of_0",
        "a header of no bytes before what looks like one",
        safetensors(good, header_bytes=0),
        "not a tensor file",
        code="Unsupported",
    )
    add("header_cut_in_string", "a header that ends inside a string", safetensors(good[:8]), "not the JSON object")
    add("not_json", "a header that only starts like JSON", safetensors("{w: 4}"), "not the JSON object")
    add("two_documents", "a second document after the first", safetensors(good + good), "not the JSON object")
    add(
        "nested_5000_deep",
        "5 000 nested arrays",
        safetensors('{"w": ' + "[" * 5000 + "]" * 5000 + "}"),
        "not the JSON object",
    )
    add(
        "entry_nested_1000_deep",
        "1 000 nested objects as a tensor",
        safetensors('{"w": ' + '{"w":' * 1000 + "1" + "}" * 1001),
        "once each",
    )
    add(
        "nul_in_header",
        "a NUL in the middle of the header",
        safetensors(good.replace(" ", "\0", 1)),
        "not the JSON object",
    )
    add(
        "name_is_no_utf8",
        "a name that is not UTF-8",
        safetensors(good.encode().replace(b"w", b"\xff\xfe")),
        "not the JSON object",
    )
    add(
        "name_with_escapes",
        "a name that clears the terminal it is printed on",
        safetensors("{" + entry(name="\\u001b[2J\\u001b]0;owned\\u0007", offsets="[0, 99]") + "}"),
        "cut short",
    )
    add(
        "name_twice",
        "one name for two tensors",
        safetensors("{" + entry() + ", " + entry(shape="[2]", offsets="[0, 8]") + "}"),
        "twice",
    )
    add(
        "name_twice_when_unescaped",
        "two spellings of one name",
        safetensors("{" + entry() + ", " + entry(name="\\u0077") + "}"),
        "twice",
    )
    add(
        "offsets_twice",
        "two sets of offsets for one tensor",
        safetensors('{"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16], "data_offsets": [0, 9999]}}'),
        "once each",
    )
    add("no_dtype", "a tensor without type", safetensors('{"w": {"shape": [4], "data_offsets": [0, 16]}}'), "once each")
    one("offsets_reversed", "an end before its beginning: a negative size", "of the data, but", b"", offsets="[16, 0]")
    one("offsets_outside", "data past the end of the file", "cut short", offsets="[0, 1000000]", shape="[250000]")
    one(
        "offsets_at_2_to_64",
        "offsets at the top of the 64 bit range",
        "cut short",
        offsets=f"[{2**64 - 17}, {2**64 - 1}]",
    )
    one(
        "offsets_beyond_64_bits",
        "offsets that are 0 and 16 when cut to 64 bits",
        "not the JSON object",
        offsets=f"[{2**64}, {2**64 + 16}]",
    )
    one("offsets_negative", "an offset in front of the data: the header itself", "once each", offsets="[-16, 0]")
    one("offsets_fractional", "offsets that are no whole numbers", "once each", offsets="[0.0, 16.5]")
    one("offsets_exponent", "an offset that a lenient reader takes as 10^300", "once each", offsets="[0, 1e300]")
    one("three_offsets", "three offsets", "once each", offsets="[0, 16, 32]")
    one(
        "shape_overflows",
        "a shape that is 0 modulo 2^64",
        "too many bytes",
        b"",
        shape="[4294967296, 4294967296]",
        offsets="[0, 0]",
    )
    one("shape_negative", "a negative size", "too many bytes", shape="[-4]")
    one("shape_larger_than_data", "a shape that needs more than the offsets give", "needs 4000 bytes", shape="[1000]")
    one("hundred_dimensions", "100 dimensions", "once each", shape="[" + "1," * 99 + "1]")
    one("shape_of_text", "a string for a shape", "once each", shape='"4"')
    one("type_unknown", "a type that nobody has", "has the type F128", code="Unsupported", dtype='"F128"')
    one("type_is_a_number", "a number for a type", "once each", dtype="32")
    add("empty", "no tensor at all", safetensors("{}", b""), "holds no tensor", code="Usage")
    add(
        "metadata_is_a_tensor",
        "a tensor under the name of the metadata",
        safetensors("{" + entry(name="__metadata__") + "}", b""),
        "holds no tensor",
        code="Usage",
    )
    add(
        "one_of_two_outside",
        "one tensor outside the file beside a good one",
        safetensors("{" + entry() + ", " + entry(name="v", offsets="[16, 32]") + "}"),
        "cut short",
        outcome="listed",
    )
