"""Stores of rows built piece by piece (docs/formats/rows.md), so that every piece can be a lie."""

import struct
import zlib

VERSION = 3
ROWS_PER_BLOCK = 256


def whole(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(rest=b"", shared=0):
    return whole(shared) + whole(len(rest)) + rest


def real(number):
    return struct.pack("<d", number)


def record(path=text(b"a/outtensor0.bin"), texts=text() * 5, choices=whole(0) * 6):
    """Path; member, rank, round, operation, type; level, moment, direction, index, call, kept."""
    return path + texts + choices


def side(records=None, dtype=None, shape=(), statistics=None, transform=whole(0) * 6, lacks=0, kept=0):
    records = [record()] if records is None else records
    out = whole(len(records)) + b"".join(records) + whole(lacks) + transform + whole(kept)
    out += whole(0) if dtype is None else whole(1) + whole(dtype)
    out += whole(len(shape)) + b"".join(map(whole, shape))
    return out + (whole(0) if statistics is None else whole(1) + statistics)


def statistics(counts=(6, 0, 0, 0), reals=(-1.0, 1.0, 0.0, 2.0)):
    return b"".join(map(whole, counts)) + b"".join(map(real, reals))


def comparison(rows=whole(0), profile=whole(0)):
    head = whole(6) + whole(6) + whole(0) + whole(0)
    middle = whole(1) + whole(0) + whole(1) + whole(3) + real(1.0) + real(2.0) + whole(0) + whole(0)
    return head + real(0.5) * 7 + middle + rows + profile


def profile():
    """Error; rows, worst row and its error, usual error; columns, their rows, the same of them; saturated, flushed."""
    of_rows = whole(2) + whole(1) + real(0.5) * 2
    of_columns = whole(3) + whole(2) + whole(1) + real(0.5) * 2
    return real(0.5) + of_rows + of_columns + whole(0) + whole(1)


def origin(operation=text(b"root.model"), kind=3, sources=(1,), is_copy=0, passed=()):
    out = whole(1) + operation + whole(kind) + whole(len(sources)) + b"".join(map(whole, sources)) + whole(is_copy)
    return out + whole(len(passed)) + b"".join(passed)


def row(
    token=text(b"0"),
    phase=whole(0),
    subject=text(b"op") + text() * 3,
    first_column=whole(0),
    layer=whole(0),
    certainty=whole(0),
    why=text(),
    golden=None,
    my=None,
    compared=whole(0),
    at_least=whole(0),
    estimate=whole(0),
    reason=text(),
    made=whole(0),
):
    golden = side() if golden is None else golden
    my = side() if my is None else my
    head = token + phase + subject + first_column + layer + certainty + why
    return head + golden + my + compared + at_least + estimate + reason + made


def block(payload, rows=1, checksum=None, length=None, magic=b"rows"):
    checksum = zlib.crc32(payload) if checksum is None else checksum
    length = len(payload) if length is None else length
    return magic + struct.pack("<III", length, rows, checksum) + payload


def header(version=VERSION, magic=b"ait rows"):
    return magic + struct.pack("<II", version, 0)


def store(*blocks, rows=None, offsets=None, index=None, version=VERSION, magic=b"ait rows"):
    """A whole file; `rows`, `offsets` and `index` are what its end says."""
    out, found, count = header(version, magic), [], 0
    for each in blocks:
        found.append(len(out))
        out += each
        count += struct.unpack_from("<I", each, 8)[0]
    offsets = found if offsets is None else offsets
    index = len(out) if index is None else index
    rows = count if rows is None else rows
    return out + b"".join(struct.pack("<Q", at) for at in offsets) + b"ait-end." + struct.pack("<QQ", rows, index)
