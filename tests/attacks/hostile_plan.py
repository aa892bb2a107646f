"""Plans and parts built piece by piece (docs/formats/plan.md), so that every piece can be a lie."""

import struct
import zlib

from hostile_rows import block, header, record, row, text, whole

VERSIONS = {b"ait plan": 2, b"ait part": 1}


def side(records=None, transform=whole(0) * 6, rows=whole(0), dequantise=0):
    records = [record()] if records is None else records
    return whole(len(records)) + b"".join(records) + transform + rows + whole(dequantise)


def pair(
    number=0, size=100, token=text(b"0"), golden=None, my=None, padding=whole(0), fit=0, certainty=0, made=whole(0)
):
    golden = side() if golden is None else golden
    my = side() if my is None else my
    subject = text(b"op") + text() * 3 + whole(0) * 2
    head = whole(number) + whole(size) + token + whole(0) + subject + golden + my + padding
    return head + whole(fit) + whole(certainty) + text() * 2 + whole(0) + made


def facts(
    pairs=1,
    size=100,
    checksum=7,
    blocks=((0, 65636, 0),),
    nodes=(),
    tokens=None,
    only=whole(0),
    kind=whole(1) + whole(3),
    version=b"0.0.0",
):
    nothing = whole(0) + whole(0)  # of completeness: nobody says, no doubts
    automatic = whole(0)
    if tokens is not None:
        coverage = whole(0) * 4
        automatic = whole(1) + coverage * 2 + whole(0) * 4 + text(b"by name") + tokens + whole(0)
    out = kind + text(b"two folders") + whole(0) + nothing * 2 + automatic
    out += whole(0) * 4 + text() + text(version)  # settings
    out += whole(pairs) + whole(size) + whole(checksum)
    out += whole(len(nodes)) + b"".join(nodes) + only
    return out + whole(len(blocks)) + b"".join(whole(number) for each in blocks for number in each)


def file_of(magic, blocks, note, items=None, offsets=None, checksum=None):
    out, found, count = header(VERSIONS[magic], magic), [], 0
    for each in blocks:
        found.append(len(out))
        out += each
        count += struct.unpack_from("<I", each, 8)[0]
    if note is not None:
        checksum = zlib.crc32(note) if checksum is None else checksum
        out += b"note" + struct.pack("<II", len(note), checksum) + note
    index = len(out)
    out += b"".join(struct.pack("<Q", at) for at in (found if offsets is None else offsets))
    return out + b"ait-end." + struct.pack("<QQ", count if items is None else items, index)


def plan(*payloads, note=None, **more):
    """Each payload as it is, or with the number of its pairs."""
    payloads = [(each, 1) if isinstance(each, bytes) else each for each in payloads]
    blocks = [block(each, pairs, magic=b"pair") for each, pairs in payloads]
    return file_of(b"ait plan", blocks, facts() if note is None else note, **more)


def part_facts(pairs=1, which=(1, 1), compared=1, runs=((0, 0),)):
    out = whole(pairs) + whole(100) + whole(7) + whole(which[0]) + whole(which[1]) + whole(compared)
    return out + whole(len(runs)) + b"".join(whole(number) for run in runs for number in run)


def part_row(number=0, **more):
    return whole(number) + row(**more)


def part(payload=None, rows=1, note=None, **more):
    payload = part_row() if payload is None else payload
    return file_of(b"ait part", [block(payload, rows)], part_facts() if note is None else note, **more)
