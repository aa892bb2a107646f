"""Attacks on the reader of GGUF files."""

import struct

from attack_list import attack

F32, Q4_0, IQ2_XXS = 0, 2, 16
UINT32, STRING, ARRAY = 4, 8, 9


def text(content):
    content = content.encode()
    return struct.pack("<Q", len(content)) + content


def entry(name="w", shape=(4,), kind=F32, offset=0, dimensions=None):
    """One tensor of the header; the innermost dimension first."""
    dimensions = len(shape) if dimensions is None else dimensions
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", dimensions, *shape, kind, offset)


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def gguf(*entries, pairs=(), data=bytes(16), version=3, tensors=None, pair_count=None):
    tensors = len(entries) if tensors is None else tensors
    pair_count = len(pairs) if pair_count is None else pair_count
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, pair_count) + b"".join(pairs) + b"".join(entries)
    return head + bytes(-len(head) % 32) + data


def gguf_attacks():
    def add(name, why, content, words, **more):
        attack(f"gguf/{name}.gguf", why, content, words, **more)

    add("only_magic", "nothing but the magic", b"GGUF", "ends too early")
    add("version_9", "a version that does not exist", gguf(entry(), version=9), "version 9", code="Unsupported")
    big = b"GGUF" + struct.pack(">I", 3) + bytes(16)
    add("big_endian", "the other byte order", big, "big-endian", code="Unsupported")
    add("tensors_2_to_64", "2^64 - 1 tensors", gguf(entry(), tensors=2**64 - 1), "ends too early")
    add("pairs_2_to_63", "2^63 pairs", gguf(entry(), pair_count=2**63), "GGUF")
    add("name_of_2_to_63", "a name of 2^63 bytes", gguf(struct.pack("<Q", 2**63)), "ends too early")
    add("name_of_2_kb", "a name longer than any", gguf(entry("x" * 2048)), "a name of 2048 bytes")
    many = pair("a", ARRAY, struct.pack("<IQ", UINT32, 2**62))
    add("array_overflows", "an array of 2^64 bytes, which is 0", gguf(entry(), pairs=[many]), "ends too early")
    strings = pair("a", ARRAY, struct.pack("<IQ", STRING, 2**63))
    add("array_of_strings", "2^63 strings, all of them missing", gguf(pairs=[strings], data=b""), "ends too early")
    nested = pair("a", ARRAY, struct.pack("<IQ", ARRAY, 1) * 500)
    add("arrays_in_arrays", "arrays 500 deep for a recursive reader", gguf(entry(), pairs=[nested]), "unknown type")
    add("value_type_99", "a value of no type", gguf(entry(), pairs=[pair("a", 99, bytes(8))]), "unknown type")
    zero = pair("general.alignment", UINT32, struct.pack("<I", 0))
    add("alignment_0", "an alignment of 0, to divide by", gguf(entry(), pairs=[zero]), "impossible alignment 0")
    odd = pair("general.alignment", UINT32, struct.pack("<I", 0xFFFFFFFF))
    add("alignment_4_gib", "data 4 GiB away", gguf(entry(), pairs=[odd]), "impossible alignment")
    add("dimensions_4_billion", "a tensor of 2^32 - 1 dimensions", gguf(entry(dimensions=2**32 - 1)), "dimensions")

    def one(name, why, words, code="Corrupt", data=bytes(64), **fields):
        add(name, why, gguf(entry(**fields), entry("good"), data=data), words, code=code, outcome="listed")

    one("dimension_2_to_63", "sizes whose product is 0", "impossible shape", shape=(2**62, 4))
    one("elements_overflow", "a product of sizes beyond 64 bits", "impossible shape", shape=(2**40, 2**40))
    one("bytes_overflow", "elements that fit, and bytes that do not", "impossible shape", shape=(2**62,))
    one("beyond_the_file", "a terabyte over 64 bytes", "cut short", shape=(2**38,))
    one("offset_beyond", "data said to lie behind the end", "cut short", offset=2**63)
    one("half_a_block", "a quantised row that is no whole number of blocks", "impossible shape", shape=(33,), kind=Q4_0)
    one("blocks_beyond", "blocks of a terabyte over 64 bytes", "cut short", shape=(2**40,), kind=Q4_0)
    one("not_decoded", "a type that is named, not guessed", "IQ2_XXS", "Unsupported", shape=(256,), kind=IQ2_XXS)
    one("type_1000", "a type that nobody has", "type number 1000", "Unsupported", kind=1000)
    one("scalar_block", "a quantised tensor without dimensions", "impossible shape", shape=(), kind=Q4_0)
