"""Attacks on the reader of stores of rows."""

from attack_list import attack
from hostile_rows import (
    ROWS_PER_BLOCK,
    block,
    comparison,
    header,
    origin,
    profile,
    record,
    row,
    side,
    statistics,
    store,
    text,
    whole,
)

DAMAGED = "holds a damaged block"


def full_block():
    """256 rows of tensors that neither side has: almost nothing each."""
    return block(row(golden=side([]), my=side([])) * ROWS_PER_BLOCK, ROWS_PER_BLOCK)


def rows_attacks():
    def add(name, why, content, words=DAMAGED, **more):
        attack(f"rows/{name}.rows", why, content, words, **more)

    def payload(name, why, content):
        add(name, why, store(block(content)))

    good = block(row())
    add(
        "other_magic",
        "another kind of file",
        store(good, magic=b"ait cols"),
        "is not a store of rows",
        code="Unsupported",
    )
    add("cut_in_header", "the first 15 bytes", header()[:15], "is not a store of rows", code="Unsupported")
    add("version_1", "a version that is no longer read", store(good, version=1), "compare again", code="Unsupported")
    add("version_4", "a version that does not exist", store(good, version=4), "rows of version 4", code="Unsupported")
    add(
        "version_of_32_bits",
        "the largest version",
        store(good, version=2**32 - 1),
        "version 4294967295",
        code="Unsupported",
    )

    index = "its index does not fit"
    add("rows_of_64_bits", "2^64 - 1 rows said to be in one block", store(good, rows=2**64 - 1), index)
    add("rows_wrap", "a number of rows that is 0 blocks modulo 2^56", store(good, rows=2**64 - 255, offsets=[]), index)
    add("index_outside", "an index said to lie past the end", store(good, index=1 << 40), index)
    add("index_wraps", "an index whose distance to the end is negative", store(good, index=2**64 - 8), index)
    add(
        "index_odd",
        "an index that is no whole number of offsets",
        store(good, offsets=[16, 16], rows=257, index=19),
        index,
    )
    add("index_too_short", "257 rows and one offset", store(good, rows=257), index)
    add("block_outside", "a block said to lie past the end", store(good, offsets=[1 << 40]))
    add("block_wraps", "an offset that wraps when a header is added", store(good, offsets=[2**64 - 1]))
    add("block_in_header", "a block said to be the header of the file", store(good, offsets=[0]))
    add("block_is_the_end", "a block said to lie in the index", store(good, offsets=[len(header() + good)]))
    add(
        "same_block_twice",
        "one block of one row listed as two of 257 rows",
        store(good, rows=257, offsets=[16, 16]),
        DAMAGED,
        outcome="listed",
    )
    add("block_of_no_rows", "a block that says it has no rows", store(block(row(), 0), rows=1))
    add("block_of_more_rows", "a block that says it has 4 billion rows", store(block(row(), 2**32 - 1), rows=1))
    add("payload_beyond_file", "a payload of 4 GiB over 100 bytes", store(block(row(), length=2**32 - 1)))
    add("checksum_wrong", "a payload with another checksum", store(block(row(), checksum=1)))
    add(
        "second_block_damaged",
        "a good block before one whose checksum is wrong",
        store(full_block(), block(row(), checksum=1)),
        DAMAGED,
        outcome="listed",
    )
    add("rows_left_over", "bytes behind the last row", store(block(row() + b"more")))
    add("rows_missing", "two rows said to be in the payload of one", store(block(row(), 2)))
    add("empty_payload", "a row of no bytes", store(block(b"")))

    payload("number_without_end", "a number whose bytes all say that there is more", b"\xff" * 64)
    payload("number_of_65_bits", "a number of ten bytes that does not fit", row(token=b"\xff" * 9 + b"\x02" + whole(0)))
    payload("text_of_16_eib", "a text of 2^64 - 1 bytes", row(token=whole(0) + whole(2**64 - 1)))
    payload("text_wraps", "two lengths whose sum is 0 modulo 2^64", row(token=whole(2**64 - 1) + whole(1)))
    payload("shares_with_nothing", "the first text of a block shares a byte", row(token=text(b"0", 1)))
    payload("phase_beyond", "a phase that does not exist", row(phase=whole(3)))
    payload("phase_of_64_bits", "a phase that is 0 once cut to 8 bits", row(phase=whole(1 << 40)))
    payload("layer_of_33_bits", "a layer that is 0 once cut to 32 bits", row(layer=whole(1) + whole(1 << 32)))
    payload("bool_of_two", "an optional field that is there twice over", row(layer=whole(2) + whole(0)))
    payload("dtype_beyond", "a type that does not exist", row(golden=side(dtype=23)))
    payload("dtype_of_9_bits", "a type that is 0 once cut to 8 bits", row(golden=side(dtype=256)))
    payload("hundred_dimensions", "100 dimensions", row(golden=side(dtype=0, shape=(1,) * 100)))
    payload(
        "shape_overflows",
        "dimensions whose product is 0 modulo 2^64",
        row(golden=side(dtype=0, shape=(1 << 32, 1 << 32))),
    )
    payload("dimension_negative", "a dimension of -1", row(golden=side(dtype=0, shape=(2**64 - 1,))))
    billion = whole(1 << 30) + record()
    payload("billion_records", "a side of 2^30 records, to be made before they are read", row(golden=billion))
    most = whole(65536) + record()
    payload("records_that_are_not_there", "as many records as are allowed, but for the bytes", row(golden=most))
    payload("cut_in_a_real", "a payload that ends inside a real number", row(golden=side(statistics=statistics()))[:48])
    long_path = record(text(b"p" * 15000))
    again = record(text(shared=15000))
    payload(
        "texts_that_multiply",
        "a path of 15 KB, said again in four bytes by each of 90 records",
        row(golden=side([long_path] + [again] * 90)),
    )
    other = row(token=text(shared=1), my=side([]), compared=whole(1) + comparison(whole(1)))
    payload("comparison_cut", "a comparison whose rows are promised and not there", other)
    no_profile = row(my=side([]), compared=whole(1) + comparison(profile=whole(1) + profile()[:-9]))
    payload("profile_cut", "a profile that ends before its last numbers", no_profile)

    payload("kind_beyond", "a kind of operation that does not exist", row(made=origin(kind=13)))
    payload("source_before_the_file", "the first row made of a row before it", row(made=origin(sources=(1,))))
    payload("source_of_itself", "a row made of itself", row() + row(made=origin(sources=(0,))))
    payload("source_of_33_bits", "a source that is 1 once cut to 32 bits", row(made=origin(sources=(2**32 + 1,))))
    made = origin(sources=())[:-2]  # up to the number of sources
    payload("billion_sources", "2^30 sources, to be made before they are read", row(made=made[:-1] + whole(1 << 30)))
    payload("billion_passed", "2^30 operations passed", row(made=made + whole(0) + whole(1 << 30)))
    passed = [text(b"p" * 15000)] + [text(shared=15000)] * 90
    payload(
        "passed_that_multiply",
        "an operation of 15 KB, said again in four bytes 90 times",
        row(made=origin(sources=(), passed=passed)),
    )
