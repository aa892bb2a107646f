"""Attacks on the readers of torch files, both forms."""

import pickle
import struct

from attack_list import attack
from hostile_pickle import (
    RUNS_COMMAND,
    TEBI,
    legacy,
    pickles_that_break,
    pickles_that_call,
    storage,
    tensor,
    tensors_that_lie,
    torch_zip,
    value,
    whole,
)
from hostile_zip import ALL_ONES, Member, deflated, zip64_extra, zip_file


def torch_zip_attacks():
    def add(file, why, content, words, **more):
        attack(f"torch_zip/{file}.pt", why, content, words, **more)

    for file, why, pickled, words, live in pickles_that_call():
        add(file, why, torch_zip(pickled), words, code="Refused", live=live)
    for file, why, pickled, words in pickles_that_break():
        add(file, why, torch_zip(pickled), words)
    for file, why, pickled, words, code in tensors_that_lie():
        add(file, why, torch_zip(pickled), words, code=code)
    names = whole(b"](" + tensor() + b"q\x09" + b"h\x09" * 1_500_000 + b"e")
    add(
        "million_names",
        "3 KB, inflated to a list of one tensor 1 500 000 times",
        torch_zip(deflated("archive/data.pkl", names)),
        "shared too often",
    )
    laughs = whole(b"N" + b"2" * 5_000_000)
    add(
        "million_values",
        "5 KB, inflated to 5 000 000 copies of None",
        torch_zip(deflated("archive/data.pkl", laughs)),
        "too many values",
    )
    add(
        "byte_order_nonsense",
        "a byte order that is neither",
        torch_zip(whole(tensor()), Member("archive/byteorder", b"middle")),
        "byte order is given as",
    )
    add(
        "pickle_too_deep",
        "a pickle in a folder of a folder",
        zip_file([Member("a/b/data.pkl", whole(tensor()))]),
        "no data.pkl",
    )
    add(
        "pickle_encrypted",
        "an encrypted pickle",
        torch_zip(Member("archive/data.pkl", whole(tensor()), flags=1)),
        "is encrypted",
        code="Unsupported",
    )
    add(
        "pickle_tebibyte",
        "a pickle that claims 1 TiB",
        torch_zip(deflated("archive/data.pkl", whole(tensor()), uncompressed=ALL_ONES, extra=zip64_extra(TEBI))),
        "more than deflate can do",
    )
    add(
        "storage_deflated_lies",
        "a storage that inflates to less than its tensor needs",
        zip_file([Member("archive/data.pkl", whole(tensor())), deflated("archive/data/0", bytes(8), uncompressed=16)]),
        "does not inflate",
    )
    two = whole(b"}(" + value("good") + tensor() + value("bad") + tensor(storage(key="9")) + b"u")
    add(
        "one_of_two_missing",
        "one storage missing beside a good one",
        torch_zip(two),
        "is missing from the archive",
        outcome="listed",
    )


def torch_legacy_attacks():
    good = whole(tensor())

    def add(file, why, content, words, **more):
        attack(f"torch_legacy/{file}.pt", why, content, words, **more)

    add("cut_after_magic", "nothing but the magic number", legacy(b"")[:15], "ends in the middle")
    add("cut_in_version", "ends inside the version", legacy(b"")[:18], "ends in the middle")
    add(
        "version_of_text",
        "a version that is no number",
        legacy(good, version="x"),
        "unknown version",
        code="Unsupported",
    )
    add("cut_before_keys", "ends before the list of keys", legacy(good, b"", b""), "ends in the middle")
    add(
        "system_runs_command",
        "a command in the description of the machine, which readers like to skip",
        legacy(good, system=RUNS_COMMAND),
        "asks to run posix.system",
        code="Refused",
        live=True,
    )
    add(
        "tensor_runs_command",
        "a command in place of the tensor",
        legacy(RUNS_COMMAND),
        "asks to run posix.system",
        code="Refused",
        live=True,
    )
    add(
        "keys_run_command",
        "a command in place of the storage keys",
        legacy(good, RUNS_COMMAND),
        "asks to run posix.system",
        code="Refused",
        live=True,
    )
    add(
        "keys_are_a_number",
        "a number in place of the list of keys",
        legacy(good, pickle.dumps(7, 2)),
        "list of storage keys",
    )
    add("keys_are_numbers", "numbers in the list of keys", legacy(good, [0]), "storage key is not text")
    add(
        "keys_in_themselves",
        "a list of keys that holds itself",
        legacy(good, whole(b"]q\0h\0a")),
        "storage key is not text",
    )
    add(
        "storage_cut_short",
        "a storage that ends early",
        legacy(good, data=struct.pack("<Q", 4) + bytes(8)),
        "its storage is not in the file",
    )
    add(
        "storage_count_cut_short",
        "a storage count that ends early",
        legacy(good, data=b"\4\0\0"),
        "its storage is not in the file",
    )
    add(
        "storage_count_overflows",
        "2^62 floats, which are 0 bytes modulo 2^64",
        legacy(good, data=struct.pack("<Q", 1 << 62) + bytes(16)),
        "its storage is not in the file",
    )
    add(
        "storage_smaller_than_said",
        "fewer elements stored than the tensor says",
        legacy(good, data=struct.pack("<Q", 2) + bytes(16)),
        "should hold 4 elements",
    )
    add(
        "storage_of_two_types",
        "one storage used as bytes first and as doubles later",
        legacy(whole(tensor(storage("ByteStorage", "0", 4)) + tensor(storage("DoubleStorage", "0", 4)) + b"\x86")),
        "should hold 4 elements",
        outcome="listed",
    )
    add(
        "window_beyond_storage",
        "a window that starts inside the storage and leaves it",
        legacy(whole(tensor(storage("FloatStorage", "0", 4, ("w", 2, 4))))),
        "should hold 4 elements",
    )
    add(
        "window_overflows",
        "a window whose offset in bytes is 0 modulo 2^64",
        legacy(whole(tensor(storage("FloatStorage", "0", 4, ("w", 1 << 62, 4))))),
        "should hold 4 elements",
    )
    add(
        "shape_beyond_storage",
        "a shape larger than the storage",
        legacy(whole(tensor(shape=(2**40,)))),
        "elements but 4 are there",
    )
