"""Attacks on the reader of zip archives, as npz files."""

import struct

from attack_list import attack
from hostile_pickle import TEBI
from hostile_zip import ALL_ONES, Member, deflated, zip64_end, zip64_extra, zip_file
from npy_attacks import npy, npy_header


def npz_attacks():
    array = npy(npy_header(), struct.pack("<3f", 1, 2, 3))
    good = Member("a.npy", array)
    raw_deflate = deflated("a.npy", array).packed

    def add(name, why, content, words, **more):
        attack(f"npz/{name}.npz", why, content, words, **more)

    add("count_too_high", "a directory that claims 65 535 members", zip_file([good], entries=65535), "cannot hold")
    add(
        "count_too_low",
        "a directory that hides its second member",
        zip_file([good, Member("b.npy", array)], entries=1),
        "more than its 1 members need",
    )
    add(
        "directory_outside",
        "a directory said to lie past the end",
        zip_file([good], offset=0x7FFFFFFF),
        "outside the file",
    )
    add(
        "directory_over_end_record",
        "a directory that covers its own end record",
        zip_file([good], size=200),
        "outside the file",
    )
    add(
        "directory_in_member",
        "a directory said to start inside the data of a member",
        zip_file([good], offset=10, size=51),
        "entry 0 is missing or cut off",
    )
    add(
        "members_share_data",
        "two directory entries for one header: the root of a zip bomb",
        zip_file([good, Member("b.npy", array, offset=0)]),
        "runs into its neighbour",
    )
    add(
        "member_inside_member",
        "a second member whose header lies in the data of the first (a quoted overlap)",
        zip_file([Member("a.npy", zip_file([good])), Member("b.npy", array, offset=35)]),
        "runs into its neighbour",
    )
    add(
        "stored_tebibyte",
        "a stored member of 100 bytes that claims 1 TiB",
        zip_file([Member("a.npy", array, uncompressed=ALL_ONES, extra=zip64_extra(TEBI))]),
        "its two sizes differ",
    )
    add(
        "deflated_tebibyte",
        "a deflated member of 100 bytes that claims 1 TiB",
        zip_file([deflated("a.npy", array, uncompressed=ALL_ONES, extra=zip64_extra(TEBI))]),
        "more than deflate can do",
    )
    add(
        "packed_tebibyte",
        "a member whose packed bytes alone are said to be 1 TiB",
        zip_file([deflated("a.npy", array, compressed=ALL_ONES, extra=zip64_extra(TEBI))]),
        "runs into its neighbour",
    )
    add(
        "deflate_bomb",
        "3 KB that honestly inflate to 3 MB of nothing",
        zip_file([deflated("a.npy", bytes(3_000_000))]),
        "does not start like an npy file",
    )
    add(
        "deflate_cut",
        "a deflate stream without its end",
        zip_file([Member("a.npy", raw_deflate[:-4], 8, content=array)]),
        "does not inflate",
    )
    add(
        "deflate_makes_more",
        "a member that inflates to more than it claims, past the end of a buffer of that size",
        zip_file([deflated("a.npy", array, uncompressed=10)]),
        "does not inflate",
    )
    add(
        "deflate_makes_less",
        "a member that inflates to less than it claims, leaving the rest to chance",
        zip_file([deflated("a.npy", array, uncompressed=len(array) + 500)]),
        "does not inflate",
    )
    add(
        "deflate_garbage",
        "a block of the type that deflate does not have",
        zip_file([Member("a.npy", b"\x07" + bytes(50), 8, content=array)]),
        "does not inflate",
    )
    add(
        "deflate_far_back",
        "a copy from before the start of the output",
        zip_file([Member("a.npy", bytes.fromhex("03fe0300"), 8, content=array)]),
        "does not inflate",
    )
    add(
        "crc_wrong",
        "a deflated member with another checksum",
        zip_file([deflated("a.npy", array, crc=1)]),
        "checksum is wrong",
    )
    add(
        "encrypted",
        "a member marked as encrypted",
        zip_file([Member("a.npy", array, flags=1)]),
        "is encrypted",
        code="Unsupported",
    )
    add(
        "method_99",
        "a compression method that only others know",
        zip_file([Member("a.npy", array, 99)]),
        "method 99",
        code="Unsupported",
    )
    add("name_twice", "two members of one name: tools disagree on which counts", zip_file([good, good]), "twice")
    add(
        "no_local_header",
        "a directory entry that points at no header",
        zip_file([good, Member("b.npy", array, local_magic=b"XXXX")]),
        "no local header",
        outcome="listed",
    )
    add(
        "local_name_overruns",
        "a local header whose name is said to reach past the end",
        zip_file([Member("a.npy", array, local_name_bytes=65535)]),
        "runs into its neighbour",
    )
    add("spanned", "one volume of several", zip_file([good], disk=1), "spread over several files", code="Unsupported")
    add(
        "zip64_locator_outside",
        "a zip64 locator that points past the end",
        zip_file([good], before_end=b"PK\6\7" + struct.pack("<IQI", 0, 1 << 63, 1)),
        "no zip64 record",
    )
    add(
        "zip64_field_cut",
        "a zip64 field too short for what it should hold",
        zip_file([Member("a.npy", array, uncompressed=ALL_ONES, extra=struct.pack("<HHI", 1, 4, 0))]),
        "damaged zip64 field",
    )
    add(
        "zip64_extra_overruns",
        "an extra field that is said to be longer than the entry",
        zip_file([Member("a.npy", array, uncompressed=ALL_ONES, extra=struct.pack("<HH", 1, 65535))]),
        "damaged zip64 field",
    )
    add(
        "zip64_offset_wraps",
        "a header offset just below 2^64, which wraps when the header's size is added",
        zip_file([Member("a.npy", array, offset=ALL_ONES, extra=zip64_extra(2**64 - 8))]),
        "points outside",
    )
    plain = zip_file([good])
    directory_at = plain.index(b"PK\1\2")
    end64 = zip64_end(1, 2**64 - 1, directory_at, plain.index(b"PK\5\6"))
    add(
        "zip64_directory_wraps",
        "a directory size that wraps when its offset is added",
        zip_file([good], size=ALL_ONES, before_end=end64),
        "outside the file",
    )
    end64 = zip64_end(1 << 61, 51, directory_at, plain.index(b"PK\5\6"))
    add(
        "zip64_count_huge",
        "2^61 members in a directory of 51 bytes",
        zip_file([good], entries=65535, before_end=end64),
        "cannot hold the 2305843009213693952 members",
    )
    add(
        "comment_with_end_record",
        "an archive comment that is itself an end record with a directory elsewhere",
        zip_file([good], comment=b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, 51, 3, 0)),
        "entry 0 is missing or cut off",
    )
    add("cut_short", "an archive without its end", plain[:-30], "no directory at its end")
    add(
        "name_climbs",
        "a member named so that unpacking it would overwrite a system file",
        zip_file([Member("../../../../../../etc/cron.d/x.npy", b"* * * * * root true\n")]),
        "does not start like an npy file",
    )
    add(
        "name_absolute",
        "a member with an absolute name",
        zip_file([Member("/etc/passwd.npy", b"root::0:0::/:/bin/sh\n")]),
        "does not start like an npy file",
    )
    add(
        "name_with_escapes",
        "a member name that clears the terminal it is printed on",
        zip_file([Member("\x1b[2J\x1b]0;owned\x07\n.npy", b"x")]),
        "does not start like an npy file",
    )
    add(
        "no_arrays",
        "an archive of something else",
        zip_file([Member("readme.txt", b"hello")]),
        "neither torch tensors nor",
        code="Unsupported",
    )
    add(
        "array_in_archive_too_short",
        "an array that promises more than its member holds",
        zip_file([Member("a.npy", npy(npy_header(shape="(1000,)"), bytes(12)))]),
        "promises 4000 data bytes",
    )
    add(
        "one_of_two_damaged",
        "one member that is no array beside a good one",
        zip_file([good, Member("b.npy", b"garbage")]),
        "does not start like an npy file",
        outcome="listed",
    )
