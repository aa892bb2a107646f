"""What `ait llm opcheck` does, as a plain loop in torch: the baseline of bench/opcheck_bench.py.

Every operation of a dump of the engine, one after the other: read its tensors, compute what it must give in float64,
round that to the type of the recorded output and count the relative errors, as docs/opcheck.md defines them. Bounds of
rounding are left out, so it does less than the command does. torch has all cores.

    torch_opcheck.py FOLDER [THREADS]      prints how many outputs were compared, how many failed, and the seconds
"""

import json
import os
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

TYPES = {0: torch.float32, 1: torch.float16, 3: torch.int32, 9: torch.int64, 27: torch.bfloat16}
STANDARDS = {torch.float32: (1e-4, 99.99), torch.float16: (1e-3, 99.9), torch.bfloat16: (4e-3, 99.6)}
ZERO = 2.0**-23  # golden values no larger count as zero in relative errors


def read(path):
    """A tensor of the acceleration library: lines of text up to `$End=1`, then the numbers."""
    data = np.memmap(path, np.uint8, "c")
    text, _, _ = bytes(data[:4096]).partition(b"$End=1\n")
    header = dict(line.split("=", 1) for line in text.decode().splitlines())
    shape = [int(dim) for dim in header["dims"].split(",")]
    start = len(text) + len(b"$End=1\n")
    return torch.from_numpy(data[start:]).view(TYPES[int(header["dtype"])]).reshape(shape)


def tensors(folder, kind):
    """By index."""
    if not folder.is_dir():
        return []
    paths = {int(path.stem.removeprefix(kind).split("_")[0]): path for path in folder.glob(f"{kind}*.bin")}
    return [read(paths[index]) for index in sorted(paths)]


def gather(param, x, indices):
    return [x.double().index_select(param["axis"], indices.flatten()).reshape(*indices.shape, -1)]


def rms_norm(param, x, gamma):
    x = x.double()
    return [x * gamma.double() / torch.sqrt(x.square().mean(-1, keepdim=True) + param["normParam"]["epsilon"])]


def linear(param, x, weight):
    assert param["transposeB"] and not param["transposeA"] and not param["hasBias"]
    return [F.linear(x.double(), weight.double())]


def rope(param, q, k, cos, sin, _):
    assert param["rotaryCoeff"] == 2
    cos, sin = cos.double()[:, None], sin.double()[:, None]

    def turned(x):
        x = x.double().reshape(len(x), -1, cos.shape[-1])
        low, high = x.chunk(2, -1)
        return (x * cos + torch.cat((-high, low), -1) * sin).flatten(1)

    return [turned(q), turned(k)]


def reshape_and_cache(_, key, value, key_cache, value_cache, slots):
    out = []
    for rows, cache in ((key, key_cache), (value, value_cache)):
        cache = cache.double()
        used = slots >= 0
        cache.view(-1, *cache.shape[2:])[slots[used].long()] = rows.double().view(-1, *cache.shape[2:])[used]
        out.append(cache)
    return out


def attend(param, q, k, v, mask=None):
    """[tokens, heads, size] of one sequence."""
    q, k, v = (x.double().transpose(0, 1)[None] for x in (q, k, v))
    grouped = q.shape[1] != k.shape[1]
    out = F.scaled_dot_product_attention(q, k, v, mask, scale=param["qkScale"], enable_gqa=grouped)
    return out[0].transpose(0, 1)


def self_attention(param, q, k, v, mask, lengths):
    assert param["calcType"] == 3 and param["maskType"] == 1
    shape = q.shape
    q = q.view(len(q), param["headNum"], -1)
    k, v = (x.view(len(x), param["kvHeadNum"] or param["headNum"], -1) for x in (k, v))
    out = []
    start = 0
    for length in lengths.flatten().tolist():
        rows = slice(start, start + length)
        bias = mask[..., :length, :length].double()
        out.append(attend(param, q[rows], k[rows], v[rows], bias * (-3e38 if bias.max() > 0 else 1)))
        start += length
    return [torch.cat(out).reshape(shape)]


def paged_attention(param, q, key_cache, value_cache, tables, lengths):
    assert param["maskType"] == 0
    out = []
    for row, (table, length) in enumerate(zip(tables, lengths.flatten().tolist())):
        k, v = (cache[table.long()].flatten(0, 1)[:length] for cache in (key_cache, value_cache))
        out.append(attend(param, q[row : row + 1], k, v))
    return [torch.cat(out)]


def elewise(param, x, y):
    x, y = x.double(), y.double()
    return [{8: torch.add, 9: torch.mul}[param["elewiseType"]](x, y)]


def activation(param, x):
    assert param["activationType"] == 4
    x = x.double()
    return [x / (1 + torch.exp(-param["scale"] * x))]


GOLDENS = {
    "ActivationOperation": activation,
    "ElewiseOperation": elewise,
    "GatherOperation": gather,
    "LinearOperation": linear,
    "PagedAttentionOperation": paged_attention,
    "ReshapeAndCacheOperation": reshape_and_cache,
    "RmsNormOperation": rms_norm,
    "RopeOperation": rope,
    "SelfAttentionOperation": self_attention,
}
WRITTEN = {"ReshapeAndCacheOperation": (2, 3)}  # inputs that hold the result


def check(folder, type):
    param = json.loads((folder / "op_param.json").read_text())
    inputs = tensors(folder / "before", "intensor") or tensors(folder / "after", "intensor")
    outputs = tensors(folder / "after", "outtensor")
    if type in WRITTEN and len(outputs) < len(WRITTEN[type]):
        after = tensors(folder / "after", "intensor")
        outputs = [after[index] for index in WRITTEN[type]]
    rows = []
    for number, (golden, actual) in enumerate(zip(GOLDENS[type](param, *inputs), outputs, strict=True)):
        rounded = golden.to(actual.dtype).double()
        found = actual.double()
        relative = torch.where(rounded.abs() > ZERO, (found / rounded - 1).abs(), 0)
        tolerance, needed = STANDARDS[actual.dtype]
        rate = 100 * (relative <= tolerance).double().mean().item()
        rows.append((str(folder), type, number, rate, relative.max().item(), "PASS" if rate >= needed else "FAILED"))
    return rows


def main():
    torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count())
    start, used = time.perf_counter(), time.process_time()
    rows = []
    for folder, _, names in sorted(os.walk(sys.argv[1])):
        type = folder.rpartition("_")[2]
        if type in GOLDENS and "op_param.json" in names:
            rows += check(pathlib.Path(folder), type)
    print(
        json.dumps(
            {
                "outputs": len(rows),
                "failed": sum(row[-1] == "FAILED" for row in rows),
                "seconds": time.perf_counter() - start,
                "cpu": time.process_time() - used,
            }
        )
    )


if __name__ == "__main__":
    with torch.inference_mode():
        main()
