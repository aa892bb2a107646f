"""Stores of rows (docs/formats/rows.md) that no run made: a hundred thousand rows, and names that want to be obeyed.

python tests/web/synthetic_rows.py large out/large.rows
python tests/web/synthetic_rows.py hostile out/hostile.rows
"""

import functools
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "attacks"))
import hostile_rows
from hostile_rows import real, whole

LAYERS, TOKENS = 40, 100
OPERATIONS = [
    ("input_layernorm", "Norm", 2),
    ("self_attn.q_proj", "Linear", 3),
    ("self_attn.k_proj", "Linear", 3),
    ("self_attn.v_proj", "Linear", 3),
    ("self_attn.rotary", "Rotary", 8),
    ("self_attn", "Attention", 5),
    ("self_attn.o_proj", "Linear", 3),
    ("post_attention_layernorm", "Norm", 2),
    ("mlp.gate_proj", "Linear", 3),
    ("mlp.up_proj", "Linear", 3),
    ("mlp.act_fn", "Activation", 4),
    ("mlp.down_proj", "Linear", 3),
]
FAULT = (20, "self_attn.o_proj")
HOSTILE = [
    "</script><script>window.obeyed = 1</script>",
    '<img src=x onerror="window.obeyed = 1">',
    "\"'`${window.obeyed = 1}",
    "right\u202eto left\u202c \u2066mark\u2069",
    "emoji 🦙🔥 and 漢字",
    '=HYPERLINK("http://example.invalid")',
    "<!--ait data-->",
    "control \x00\x07\x1b[31m characters",
    "n" * 10_000,
]


class Texts:
    """Each text as what differs from the one before of the same number."""

    def __init__(self):
        self._last = {}

    def __call__(self, number, value):
        data = value.encode()
        last = self._last.get(number, b"")
        shared = 0
        for a, b in zip(data, last):
            if a != b:
                break
            shared += 1
        self._last[number] = data
        return whole(shared) + whole(len(data) - shared) + data[shared:]


def side(text, first, path, operation, kind, dtype, shape, norm):
    texts = [path, "", "0", "0", operation, kind]
    out = whole(1) + b"".join(text(first + i, value) for i, value in enumerate(texts))
    out += whole(0) * 6  # level, moment, direction, index, call, kept
    out += whole(0) + whole(0) * 6 + whole(0)  # lacks member, transform, kept
    out += whole(1) + whole(dtype) + whole(len(shape)) + b"".join(map(whole, shape))
    return out + whole(1) + whole(4096) + whole(0) * 3 + real(-norm) + real(norm) + real(norm / 100) + real(norm * 8)


def comparison(error, draw):
    metrics = [1 - error * error / 2, error * 40, error * 2, error * 3, error / 2, error * error, error]
    out = whole(4096) * 2 + whole(0) * 2 + b"".join(map(real, metrics))
    out += whole(4000) + whole(0) + whole(1) + whole(draw(4096)) + real(1.0) + real(1.0 + error)
    out += whole(0) * 2 + whole(0)  # neither side is all zero; no rows
    profile = [error * 1.5, error, error * 1.4, error]
    out += whole(1) + real(error) + whole(8) + whole(draw(8)) + real(profile[0]) + real(profile[1])
    return out + whole(512) + whole(8) + whole(draw(512)) + real(profile[2]) + real(profile[3]) + whole(0) + whole(0)


def row(text, token, operation, layer, kind, error, sources, draw, reason=""):
    name, kind_name = operation
    out = text(0, token) + whole(1) + text(1, name) + text(2, "output") + text(3, "") + text(4, "")
    out += whole(0) + (whole(0) if layer is None else whole(1) + whole(layer))
    out += whole(1) + whole(0) + text(5, "the names are the same")
    folder = "/data/runs/2025-01-02/{}/ait_dump/torch_tensors/npu_4711/{}/{}/output.pth"
    out += side(text, 6, folder.format("golden", token, name), name, kind_name, 11, (8, 512), 2.5)
    out += side(text, 12, folder.format("my", token, name), name, kind_name, 10, (8, 512), 2.5 + (error or 0))
    out += whole(0) if error is None else whole(1) + comparison(error, draw)
    out += whole(0) + text(18, reason)
    return out + hostile_rows.origin(text(19, name), kind, sources)


def write(path, rows):
    blocks = []
    rows = iter(rows)
    while True:
        text = Texts()
        some = [make(text) for make in itertools.islice(rows, hostile_rows.ROWS_PER_BLOCK)]
        if not some:
            break
        blocks.append(hostile_rows.block(b"".join(some), len(some)))
    path.write_bytes(hostile_rows.store(*blocks))


def large():
    draw = random.Random(1)
    for token in range(TOKENS):
        error = 0.002
        for layer in range(LAYERS):
            for i, (name, kind_name, kind) in enumerate(OPERATIONS * 2 + OPERATIONS[:1]):
                again = "" if i < len(OPERATIONS) else f".expert{i // len(OPERATIONS)}"
                error = min(0.5, error * (1 + draw.random() * 0.01))
                here = error * (0.9 + 0.2 * draw.random())
                if (layer, name) == FAULT and not again and token >= 3:
                    here = error = 0.3
                operation = (f"root.model.layers.{layer}.{name}{again}", kind_name)
                sources = [1] if layer + i else []
                yield functools.partial(
                    row,
                    token=str(token),
                    operation=operation,
                    layer=layer,
                    kind=kind,
                    error=here,
                    sources=sources,
                    draw=draw.randrange,
                )


def hostile():
    draw = random.Random(2)
    for token in HOSTILE[:3]:
        for i, name in enumerate(HOSTILE):
            yield lambda text, n=name, t=token, i=i: row(
                text,
                t,
                (n, n[:2000]),
                None,
                3,
                None if i == 8 else 0.001 if i < 4 else 0.4,
                [1] if i else [],
                draw.randrange,
                reason=n[:2000],
            )


if __name__ == "__main__":
    kind, target = sys.argv[1:]
    pathlib.Path(target).parent.mkdir(parents=True, exist_ok=True)
    write(pathlib.Path(target), {"large": large, "hostile": hostile}[kind]())
