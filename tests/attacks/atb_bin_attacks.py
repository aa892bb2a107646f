"""Attacks on the reader of ATB .bin files."""

from attack_list import attack


def atb(*lines, data=bytes(12), end="$End=1\n"):
    return ("\n".join(["$Version=1.0", "$Object.Count=1", *lines]) + "\n" + end).encode() + data


def atb_bin_attacks():
    def add(name, why, content, words, **more):
        attack(f"atb_bin/{name}.bin", why, content, words, **more)

    half = "dtype=1", "dims=2,3"
    add("no_end", "a header without its end", atb(*half, end="", data=b""), "no $End line")
    add(
        "data_for_header",
        "no end line, so that the data is taken for more header",
        atb(*half, end="", data=bytes(64)),
        "name=value",
    )
    add(
        "header_above_limit",
        "17 KB of lines that mean nothing",
        atb(*["junk=" + "x" * 200] * 82, *half),
        "no $End line within its first 16384 bytes",
    )
    add("line_without_equals", "a line that is no attribute", atb(*half, "hello"), "not of the form name=value")
    add("hundred_dims", "100 dimensions", atb("dtype=1", "dims=" + ",".join(["1"] * 100)), "bad value for dims")
    add(
        "dims_negative",
        "negative dimensions whose product is positive",
        atb("dtype=1", "dims=-2,-3"),
        "impossible dims",
    )
    add(
        "dims_overflow",
        "dimensions whose product is 0 modulo 2^64",
        atb("dtype=1", "dims=4294967296,4294967296"),
        "impossible dims",
    )
    add(
        "dims_bytes_overflow",
        "2^61 complex numbers, whose size in bytes is 0 modulo 2^64",
        atb("dtype=17", f"dims={1 << 61}"),
        "impossible dims",
    )
    add("dims_empty_part", "a dimension left out", atb("dtype=1", "dims=2,,3"), "bad value for dims")
    add("dims_trailing_comma", "a comma after the last dimension", atb("dtype=1", "dims=2,3,"), "bad value for dims")
    add("dims_beyond_64_bits", "a dimension of 2^64 + 6", atb("dtype=1", f"dims={2**64 + 6}"), "bad value for dims")
    add(
        "dims_with_nul",
        "a NUL that ends the number early for C's functions",
        atb("dtype=1", "dims=6\x00000000"),
        "bad value for dims",
    )
    add(
        "dims_too_large",
        "dimensions that need more than is there",
        atb("dtype=1", "dims=1000,1000"),
        "the dims need 2000000 data bytes",
    )
    add("no_dims", "no dimensions", atb("dtype=1"), "lacks its dims")
    add("dtype_text", "a type in words", atb("dtype=float16", "dims=2,3"), "bad value for dtype")
    add("dtype_beyond_64_bits", "a type of 30 digits", atb("dtype=" + "1" * 30, "dims=2,3"), "bad value for dtype")
    add("dtype_unknown", "a type that does not exist", atb("dtype=99", "dims=2,3"), "dtype 99", code="Unsupported")
    add("dtype_negative", "the type `undefined`", atb("dtype=-1", "dims=2,3"), "undefined", code="Unsupported")
    add("dtype_twice", "two types", atb(*half, "dtype=0"), "dtype twice")
    add("dims_twice", "two sets of dimensions", atb(*half, "dims=99999"), "dims twice")
    add(
        "length_lies",
        "a length of 1 TB over 12 bytes",
        atb("$Object.Length=1000000000000", "dtype=1", "dims=500000000000"),
        "but 12 are there",
    )
    add("length_negative", "a negative length", atb("$Object.Length=-1", *half), "bad value for $Object.Length")
    add(
        "offset_beyond",
        "data said to start past the end",
        atb(*half, "$Object.data=1000,12"),
        "said to start 1000 bytes behind",
    )
    add(
        "offset_wraps",
        "an offset that wraps when the length is added",
        atb(*half, f"$Object.data={2**64 - 6},12"),
        "said to start 18446744073709551610 bytes behind",
    )
    add(
        "offset_beyond_for_nothing",
        "int4 of no bytes that start far past the end",
        atb("$Object.Length=0", "dtype=29", "dims=2", f"$Object.data={1 << 62},5"),
        "said to start 4611686018427387904 bytes behind",
    )
    add(
        "object_of_three",
        "three numbers for offset and length",
        atb(*half, "$Object.data=0,12,24"),
        "bad value for $Object.data",
    )
    add("described_only", "no data, only a description", atb(*half, data=b""), "tensor has no data", code="Unsupported")
    add(
        "link_climbs",
        "data said to be in a system file, by a relative path",
        atb(*half, "data=" + "../" * 12 + "etc/passwd", data=b""),
        "outside the dump",
        code="Refused",
    )
    add(
        "link_absolute",
        "data said to be in a system file, by its full path",
        atb(*half, "data=/etc/passwd", data=b""),
        "outside the dump",
        code="Refused",
    )
    add(
        "link_to_process",
        "data said to be in this process's own environment",
        atb(*half, "data=/proc/self/environ", data=b""),
        "outside the dump",
        code="Refused",
    )
    add(
        "link_by_detour",
        "a way out that first goes in",
        atb(*half, "data=x/../../../npy/object_array.npy", data=b""),
        "outside the dump",
        code="Refused",
    )
    add(
        "link_to_itself",
        "a link to itself",
        atb(*half, "data=link_to_itself.bin", data=b""),
        "itself a link",
        code="Refused",
    )
    add(
        "link_to_link",
        "a link to a link",
        atb(*half, "data=link_climbs.bin", data=b""),
        "itself a link",
        code="Refused",
    )
    add(
        "link_to_folder", "a link to the folder it lies in", atb(*half, "data=.", data=b""), "folder", code="Unreadable"
    )
    add(
        "link_to_nothing",
        "a link to a file that is not there",
        atb(*half, "data=nowhere.bin", data=b""),
        "no such file",
        code="NotFound",
    )
    add(
        "link_with_nul",
        "a NUL in the path, which hides the rest from the system",
        atb(*half, "data=dims_too_large.bin\0/../../x", data=b""),
        "not a path",
        code="Refused",
    )
    add(
        "link_to_other_type",
        "a link to data of another type",
        atb("dtype=0", "dims=3", "data=dims_too_large.bin", data=b""),
        "links to a file of dtype 1",
    )
