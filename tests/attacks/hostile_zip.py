"""Zip archives with room for lies."""

import dataclasses
import struct
import zlib


@dataclasses.dataclass
class Member:
    """A member, with room for lies: what is None is filled in truthfully."""

    name: str
    packed: bytes
    method: int = 0
    flags: int = 0
    content: bytes = None  # unpacked, where that differs
    crc: int = None
    compressed: int = None
    uncompressed: int = None
    offset: int = None
    extra: bytes = b""
    local_name_bytes: int = None
    local_magic: bytes = b"PK\3\4"


def deflated(name, content, **lies):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return Member(name, packer.compress(content) + packer.flush(), 8, content=content, **lies)


def zip_file(members, entries=None, size=None, offset=None, disk=0, comment=b"", before_end=b""):
    out = b""
    directory = b""
    for member in members:
        content = member.packed if member.content is None else member.content
        name = member.name.encode()
        crc = zlib.crc32(content) if member.crc is None else member.crc
        compressed = len(member.packed) if member.compressed is None else member.compressed
        uncompressed = len(content) if member.uncompressed is None else member.uncompressed
        at = len(out) if member.offset is None else member.offset
        common = struct.pack("<HHHHIII", member.flags, member.method, 0, 33, crc, compressed, uncompressed)
        local_name_bytes = len(name) if member.local_name_bytes is None else member.local_name_bytes
        out += member.local_magic + struct.pack("<H", 20) + common + struct.pack("<HH", local_name_bytes, 0)
        out += name + member.packed
        directory += b"PK\1\2" + struct.pack("<HH", 20, 20) + common
        directory += struct.pack("<HHHHHII", len(name), len(member.extra), 0, 0, 0, 0, at) + name + member.extra
    entries = len(members) if entries is None else entries
    size = len(directory) if size is None else size
    offset = len(out) if offset is None else offset
    end = struct.pack("<HHHHIIH", disk, disk, entries, entries, size, offset, len(comment))
    return out + directory + before_end + b"PK\5\6" + end + comment


def zip64_extra(*numbers):
    return struct.pack("<HH", 1, 8 * len(numbers)) + b"".join(struct.pack("<Q", number) for number in numbers)


def zip64_end(entries, size, offset, record_at):
    record = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, entries, entries, size, offset)
    return record + b"PK\6\7" + struct.pack("<IQI", 0, record_at, 1)


ALL_ONES = 0xFFFFFFFF
