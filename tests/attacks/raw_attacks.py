"""Attacks on the reader of bare bytes, and files that no reader should take for its own."""

from attack_list import attack
from hostile_pickle import COMMAND, RUNS_COMMAND, TEBI


def raw_attacks():
    def add(name, why, content, words, options, code="Usage"):
        attack(f"raw/{name}.raw", why, content, words, code, options=options)

    data = bytes(range(12))
    add(
        "shape_overflows",
        "a shape that is 0 modulo 2^64",
        data,
        "not a shape",
        "--dtype float16 --shape 4294967296,4294967296",
    )
    add("shape_beyond_64_bits", "a size of 40 digits", data, "not a shape", "--dtype float16 --shape " + "9" * 40)
    add("shape_negative", "a negative size", data, "not a shape", "--dtype float16 --shape=-6")
    add("hundred_dimensions", "100 dimensions", data, "not a shape", "--dtype uint8 --shape " + ",".join(["1"] * 100))
    add(
        "shape_bytes_overflow",
        "a shape that fits while its size in bytes does not",
        data,
        "cannot have the shape",
        f"--dtype complex128 --shape {1 << 62}",
    )
    add(
        "shape_of_a_tebibyte",
        "a shape far larger than the file",
        data,
        "bytes but 12 are there",
        f"--dtype uint8 --shape {TEBI}",
        "Corrupt",
    )
    add(
        "half_an_element",
        "a size that is no whole number of elements",
        data[:11],
        "not a whole number",
        "--dtype float16",
        "Corrupt",
    )


def attacks_on_all():
    """Files that no reader should take for its own."""
    attack("any/empty.bin", "nothing at all", b"", "is empty")
    attack("any/text.txt", "plain text", b"This is not a tensor.\n", "not a tensor file", code="Unsupported")
    attack(
        "any/bare.pkl",
        "a bare pickle, which no tensor format is",
        RUNS_COMMAND,
        "not a tensor file",
        code="Unsupported",
        live=True,
    )
    attack(
        "any/program.pt",
        "a program under the name of a tensor",
        b"\x7fELF\2\1\1" + bytes(57),
        "not a tensor file",
        code="Unsupported",
    )
    attack(
        "any/script.npy",
        "a shell script under the name of an array",
        f"#!/bin/sh\n{COMMAND}\n".encode(),
        "not a tensor file",
        code="Unsupported",
    )
    attack(
        "any/gzip.npz",
        "a gzip stream, to be unpacked by whoever guesses",
        bytes.fromhex("1f8b0800000000000003") + bytes(10),
        "not a tensor file",
        code="Unsupported",
    )
