"""Attacks on the reader of npy files, and the npy files that other attacks are made of."""

import struct

from attack_list import attack
from hostile_pickle import COMMAND, RUNS_COMMAND, TEBI


def npy(header, data=b"", version=(1, 0), header_bytes=None):
    if isinstance(header, str):
        header = header.encode()
    length = len(header) if header_bytes is None else header_bytes
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version[0] == 1 else "<I", length) + header + data


def npy_header(descr="'<f4'", order="False", shape="(3,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def npy_attacks():
    good = npy_header()

    def add(name, why, content, words, **more):
        attack(f"npy/{name}.npy", why, content, words, **more)

    add(
        "header_beyond_file",
        "a header length that reaches past the end of the file",
        npy(good, header_bytes=60000),
        "cut off",
    )
    add(
        "header_of_4_gib",
        "a version 2 header said to be 4 GiB long",
        npy(good, version=(2, 0), header_bytes=0xFFFFFFFF),
        "said to be 4294967295 bytes",
    )
    add("cut_after_magic", "nothing but the magic string", b"\x93NUMPY", "cut off")
    add("cut_in_header_length", "ends inside the 4 bytes of a version 3 header length", b"\x93NUMPY\3\0\1\0", "cut off")
    add("version_9_9", "a version that does not exist", npy(good, bytes(12), (9, 9)), "version 9.9", code="Unsupported")
    add(
        "negative_dimension",
        "a dimension of -1, huge once taken as unsigned",
        npy(npy_header(shape="(-1,)"), bytes(12)),
        "impossible shape",
    )
    add(
        "negative_times_negative",
        "two negative dimensions whose product is small and positive",
        npy(npy_header(shape="(-1, -3)"), bytes(12)),
        "impossible shape",
    )
    add(
        "elements_overflow",
        "a product of dimensions that is 0 modulo 2^64",
        npy(npy_header(shape="(4294967296, 4294967296)"), bytes(12)),
        "impossible shape",
    )
    add(
        "bytes_overflow",
        "an element count that fits while its size in bytes is 0 modulo 2^64",
        npy(npy_header(descr="'<c16'", shape="(1152921504606846976,)"), bytes(16)),
        "impossible shape",
    )
    add(
        "dimension_beyond_64_bits",
        "a dimension of 40 digits",
        npy(npy_header(shape=f"({'9' * 40},)"), bytes(12)),
        "bad value for 'shape'",
    )
    add(
        "hundred_dimensions",
        "more dimensions than numpy allows",
        npy(npy_header(shape="(" + "1, " * 100 + ")"), bytes(4)),
        "bad value for 'shape'",
    )
    add(
        "zero_hides_overflow",
        "a zero dimension beside two that overflow, so that nothing seems to be needed",
        npy(npy_header(shape=f"(0, {1 << 62}, {1 << 62})")),
        "impossible shape",
    )
    add(
        "two_tebibytes",
        "a shape of 2 TiB over 12 bytes of data",
        npy(npy_header(shape=f"({TEBI // 2},)"), bytes(12)),
        "promises 2199023255552 data bytes",
    )
    add(
        "nested_parentheses",
        "10 000 open parentheses for a recursive parser",
        npy(npy_header(shape="(" * 10000)),
        "bad value for 'shape'",
    )
    add("unterminated_string", "a string that never ends", npy("{'descr': '<f4, "), "bad value for 'descr'")
    add("not_a_dict", "a list where a dict is expected", npy("['<f4', False, (3,)]\n", bytes(12)), "start with a dict")
    add(
        "missing_shape", "no shape at all", npy("{'descr': '<f4', 'fortran_order': False}\n", bytes(12)), "lacks one of"
    )
    add(
        "shape_twice",
        "two shapes; a reader that checks one and uses the other is lost",
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'shape': (99999999,)}\n", bytes(12)),
        "repeated key 'shape'",
    )
    add(
        "nul_in_header",
        "a NUL that ends the header early for C's string functions",
        npy(good.replace("(3,)", "(3,)\0"), bytes(12)),
        "comma or the closing brace",
    )
    add(
        "expression_as_shape",
        "a header that runs a command in a reader that evaluates it",
        npy(npy_header(shape=f"(__import__('os').system('{COMMAND}'),)"), bytes(12)),
        "bad value for 'shape'",
    )
    add(
        "escape_sequence_in_key",
        "a key that clears the terminal it is printed on",
        npy("{'\x1b[2J\x1b]0;owned\x07': 1}\n"),
        "unknown or repeated key",
    )
    add(
        "object_array",
        "an object array, whose data is a pickle that runs a command",
        npy(npy_header(descr="'|O'", shape="(1,)").encode().ljust(117) + b"\n", RUNS_COMMAND),
        "object array",
        code="Refused",
        live=True,
    )
    add(
        "fields_of_objects",
        "objects hidden as a field of a structured array",
        npy(npy_header(descr="[('a', '|O')]", shape="(1,)"), RUNS_COMMAND),
        "structured array",
        code="Unsupported",
    )
