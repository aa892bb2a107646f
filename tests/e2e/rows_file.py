"""A reader of `.rows` files, written from docs/formats/rows.md alone: the oracle of ait's own."""

import struct
import zlib

PHASES = ["unknown", "prefill", "decode"]
CERTAINTIES = ["certain", "likely"]
KEPT = ["bytes", "statistics", "description"]
DTYPES = (
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 "
    "float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu complex32 complex64 complex128 int4 float4_e2m1fn_x2"
).split()
LEVELS = ["operation", "kernel"]
MOMENTS = ["after", "before"]
DIRECTIONS = ["output", "input"]
JOINS = ["none", "side by side", "sum"]
KINDS = "unknown embedding norm linear activation attention add multiply rotary cache quantise other move".split()
METRICS = (
    "cosine_similarity max_relative_error mean_relative_error max_absolute_error mean_absolute_error kl_divergence "
    "relative_euclidean_distance"
).split()
ROWS_PER_BLOCK = 256


class Payload:
    """The fields of a block, one after the other."""

    def __init__(self, data):
        self._data = data
        self._at = 0
        self._last = {}

    def is_empty(self):
        return self._at == len(self._data)

    def _take(self, size):
        assert self._at + size <= len(self._data), "the payload is too short"
        self._at += size
        return self._data[self._at - size : self._at]

    def whole(self):
        number, shift = 0, 0
        while True:
            (byte,) = self._take(1)
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                assert number < 1 << 64
                return number

    def bool(self):
        return {0: False, 1: True}[self.whole()]

    def one_of(self, names):
        return names[self.whole()]

    def real(self):
        return struct.unpack("<d", self._take(8))[0]

    def text(self, number):
        shared, more = self.whole(), self.whole()
        last = self._last.get(number, b"")
        assert shared <= len(last)
        self._last[number] = last[:shared] + self._take(more)
        return self._last[number].decode()

    def optional(self, read, *arguments):
        return read(*arguments) if self.bool() else None

    def list(self, read, *arguments):
        return [read(*arguments) for _ in range(self.whole())]

    def row(self):
        return {
            "token": self.text(0),
            "phase": self.one_of(PHASES),
            "name": self.text(1),
            "tensor": self.text(2),
            "member": self.text(3),
            "rank": self.text(4),
            "first_column": self.optional(self.whole),
            "layer": self.optional(self.whole),
            "certainty": self.optional(self.one_of, CERTAINTIES),
            "certainty_reason": self.text(5),
            "golden": self._side(6),
            "my": self._side(12),
            "comparison": self.optional(self._comparison),
            "distance_at_least": self.optional(self.real),
            "estimate": self.optional(self._estimate),
            "reason": self.text(18),
            "origin": self.optional(self._origin),
        }

    def _origin(self):
        return {
            "operation": self.text(19),
            "kind": self.one_of(KINDS),
            "sources": self.list(self.whole),
            "is_copy": self.bool(),
            "passed": self.list(self.text, 20),
        }

    def _side(self, first_text):
        return {
            "records": self.list(self._record, first_text),
            "lacks_member": self.bool(),
            "transform": self._transform(),
            "kept": self.one_of(KEPT),
            "dtype": self.optional(self.one_of, DTYPES),
            "shape": self.list(self.whole),
            "statistics": self.optional(self._statistics),
        }

    def _record(self, first_text):
        texts = {
            name: self.text(first_text + i)
            for i, name in enumerate(["path", "member", "rank", "round", "operation", "type"])
        }
        return {
            **texts,
            "level": self.one_of(LEVELS),
            "moment": self.one_of(MOMENTS),
            "direction": self.one_of(DIRECTIONS),
            "index": self.whole(),
            "call": self.whole(),
            "kept": self.one_of(KEPT),
        }

    def _transform(self):
        numbers = {name: self.whole() for name in ["columns", "first", "taken", "period"]}
        return {**numbers, "heads_first": self.bool(), "join": self.one_of(JOINS)}

    def _statistics(self):
        counts = {name: self.whole() for name in ["elements", "nan", "positive_inf", "negative_inf"]}
        return {**counts, **{name: self.real() for name in ["min", "max", "mean", "l2norm"]}}

    def _comparison(self):
        return {
            "elements": self.whole(),
            "compared": self.whole(),
            "identical": self.bool(),
            "withheld": self.bool(),
            **{name: self.real() for name in METRICS},
            "differing_elements": self.whole(),
            "zero_golden_mismatch": self.whole(),
            "non_finite_agree": self.bool(),
            "worst_index": self.whole(),
            "worst_golden": self.real(),
            "worst_my": self.real(),
            "golden_zero": self.bool(),
            "my_zero": self.bool(),
            "rows": self.optional(self._rows),
            "profile": self.optional(self._profile),
        }

    def _estimate(self):
        distance, cosine = ([self.real() for _ in range(3)] for _ in range(2))
        return {
            "distance": distance,
            "cosine": cosine,
            "row": self.optional(self._group),
            "column": self.optional(self._group),
        }

    def _group(self):
        return {"first": self.whole(), "last": self.whole(), "difference": self.real()}

    def _rows(self):
        return {
            "rows": self.whole(),
            "worst_row": self.whole(),
            "worst_row_cosine": self.real(),
            "kl_divergence_per_row_mean": self.real(),
            "kl_divergence_per_row_max": self.real(),
        }

    def _profile(self):
        return {
            "error": self.real(),
            "rows": self.whole(),
            "worst_row": self.whole(),
            "worst_row_error": self.real(),
            "usual_row_error": self.real(),
            "columns": self.whole(),
            "column_rows": self.whole(),
            "worst_column": self.whole(),
            "worst_column_error": self.real(),
            "usual_column_error": self.real(),
            "saturated": self.whole(),
            "flushed": self.whole(),
        }


def _block(data, at):
    magic, size, rows, checksum = struct.unpack_from("<4sIII", data, at)
    assert magic == b"rows" and 1 <= rows <= ROWS_PER_BLOCK
    payload = data[at + 16 : at + 16 + size]
    assert len(payload) == size and zlib.crc32(payload) == checksum
    return payload, rows


def read_rows(path):
    """Every row of a complete store, as dicts."""
    data = path.read_bytes()
    magic, version = struct.unpack_from("<8sI", data)
    assert (magic, version, data[12:16]) == (b"ait rows", 3, bytes(4))
    end, count, index = struct.unpack("<8sQQ", data[-24:])
    assert end == b"ait-end."
    offsets = [at for (at,) in struct.iter_unpack("<Q", data[index:-24])]
    assert len(offsets) == -(-count // ROWS_PER_BLOCK)
    assert not offsets or offsets[0] == 16
    found = []
    for at in offsets:
        assert len(found) % ROWS_PER_BLOCK == 0  # every block but the last is full
        data_of_block, rows = _block(data, at)
        payload = Payload(data_of_block)
        found += [payload.row() for _ in range(rows)]
        assert payload.is_empty()
    assert len(found) == count
    return found
