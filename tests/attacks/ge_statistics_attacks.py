"""Attacks on statistics of GE dumps: archives that begin as these do."""

import struct

from attack_list import attack
from hostile_zip import Member, deflated, zip_file
from npy_attacks import npy, npy_header


def ge_statistics_attacks():
    good = npy(npy_header(shape="(1, 2)"), struct.pack("<2f", 1, 2))

    def add(name, why, inputs, words, **more):
        members = [inputs, Member("outputs.npy", good)]
        attack(f"ge_statistics/{name}.npz", why, zip_file(members), words, outcome="listed", **more)

    def rows(shape, data=bytes(8), descr="'<f4'"):
        return Member("inputs.npy", npy(npy_header(descr, shape=shape), data))

    add("rows_beyond_the_member", "rows that its member does not hold", rows("(1000, 2)"), "promises 8000 data bytes")
    add("rows_of_2_62", "more rows than there are bytes in the world", rows(f"({2**62}, 2)"), "impossible shape")
    add("rows_negative", "a negative number of rows", rows("(-1, 2)"), "impossible shape")
    add(
        "rows_of_objects",
        "pickled objects in place of numbers",
        rows("(1, 2)", b"cposix\nsystem\n.", "'|O'"),
        "never does",
        code="Refused",
    )
    bomb = npy(npy_header(shape="(200000, 2)"), bytes(1_600_000))
    add(
        "rows_that_swell",
        "2 KB that inflate to 200 000 rows of nothing, and then are not all there",
        deflated("inputs.npy", bomb[:-4]),
        "promises 1600000 data bytes",
    )
