"""Tensors of every type, shape and layout, and their statistics by native code where they are."""

import math

import torch
from ait_llm import DumpConfig, _native
from ait_llm.dump.torch_dump import statistics
from ait_llm.dump.torch_dump.manifest import Manifest
from ait_llm.dump.torch_dump.measuring import Measuring
from ait_llm.dump.torch_dump.store import dtype_names

ORDINARY = [dtype for dtype, name in dtype_names.items() if not name.startswith(("int4", "float4"))]
SIZES = [1, 2, 7, 16, 255, 256, 257, 1000, 8192, 40_000]


def random_bits(dtype, count, seed):
    """Every pattern of bits, NaN and infinities included."""
    generator = torch.Generator().manual_seed(seed)
    size = torch.empty(0, dtype=dtype).element_size()
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (count * size,), generator=generator, dtype=torch.uint8)
    return raw.view(dtype)


def numbers(dtype, count, seed):
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(count, generator=generator) > 0.5
    if dtype.is_complex:
        return torch.view_as_complex(torch.randn(count, 2, generator=generator)).to(dtype)
    if not dtype.is_floating_point:
        top = min(torch.iinfo(dtype).max, 2**40)
        return torch.randint(0, top, (count,), generator=generator).to(dtype)
    if dtype == getattr(torch, "float8_e8m0fnu", None):
        return torch.randint(100, 150, (count,), generator=generator, dtype=torch.uint8).view(dtype)
    return torch.randn(count, generator=generator).mul(3).to(dtype)


def cases():
    """Names and tensors on the CPU."""
    for dtype in ORDINARY:
        for size in SIZES:
            yield f"{dtype} {size}", numbers(dtype, size, size)
        yield f"{dtype} every pattern", random_bits(dtype, 4096, 1)
        yield f"{dtype} rank 0", numbers(dtype, 1, 5).reshape(())
        yield f"{dtype} empty", numbers(dtype, 6, 5)[:0].reshape(0, 3)
        yield f"{dtype} not aligned", numbers(dtype, 1001, 6)[1:]
    base = torch.randn(6, 10, 14, 16, generator=torch.Generator().manual_seed(7))
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int16):
        box = base.mul(50).to(dtype)
        yield f"{dtype} transposed", box.permute(3, 0, 2, 1)
        yield f"{dtype} steps", box[::2, 1::3, :, ::5]
        yield f"{dtype} a slice", box[:, :, 3:9]
        yield f"{dtype} expanded", box[:1, :, :1].expand(5, 10, 9, 16)
        yield f"{dtype} overlapping", box.reshape(-1).as_strided((50, 60), (1, 3), 7)
        yield f"{dtype} many gaps", torch.randn([3] * 8).to(dtype)[::2, ::2, ::2, ::2, ::2, ::2, ::2, ::2]
    yield "conjugate", torch.randn(40, dtype=torch.complex64).conj()
    yield "negative", torch.randn(40, dtype=torch.complex64).conj().imag
    yield "complex slice", torch.randn(40, 6, dtype=torch.complex64)[:, 1:3]
    for value in (math.nan, math.inf, -math.inf):
        yield f"{value} in the middle", torch.cat([torch.randn(999), torch.tensor([value]), torch.randn(2000)])
        yield f"nothing but {value}", torch.full((300,), value)
    yield "all that is not finite", torch.tensor([math.nan, math.inf, -math.inf, 1.0])
    yield "both infinities", torch.tensor([math.inf, -math.inf, 1.0])
    for scale in (1e-320, 1e-300, 1e-170, 1e-120, 1e120, 1e170, 1e300):
        yield f"float64 at {scale}", torch.randn(3000, dtype=torch.float64) * scale
    yield "float64 of all sizes", torch.logspace(-300, 300, 2001, dtype=torch.float64)
    yield "large", torch.randn(1_200_000, generator=torch.Generator().manual_seed(8)).to(torch.bfloat16)


def measured(tensors):
    """Rows as _native.RoundTable gives them, and how many were measured in which way."""
    table = _native.RoundTable(0)
    call, _ = table.begin_call("root", "Giving", "root")
    troubles = []
    manifest = Manifest(DumpConfig(dump_statistics_mode=1), "Giving")
    measuring = Measuring(manifest.config, manifest, lambda error, what: troubles.append((what, error)))
    measuring._open[0] = table
    for index, tensor in enumerate(tensors):
        measuring.recording.tensor(table, call, f"output_{index}", tensor)
    measuring.fetch()
    table.wait()
    assert troubles == []
    assert manifest.not_stored.describe() == []
    return table.rows(), table.ways()


def near(found, expected):
    if math.isnan(expected) or math.isinf(expected):
        return repr(found) == repr(expected)
    return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-320)


def faults(names, tensors, rows):
    """What differs from ait's own statistics on the CPU by more than the rounding of float64."""
    found = []
    for name, tensor, (_, high, low, mean, norm, nan, inf) in zip(names, tensors, rows):
        plain = tensor.resolve_conj().resolve_neg().contiguous()
        values = statistics.measure(plain)
        if values is None:
            if high is not None:
                found.append((name, "an empty tensor has no numbers"))
            continue
        side = _native.statistics(statistics.operand(plain), 1)
        scale = max(1.0, side.l1_norm / side.elements / abs(values[2])) if values[2] else math.inf
        same_mean = near(mean, values[2]) or (
            math.isfinite(mean)
            and abs(mean - values[2]) <= 1e-12 * min(scale, 1e12) * max(abs(values[2]), side.l1_norm)
        )
        counts = (nan, inf) == (side.nan, side.positive_inf + side.negative_inf)
        if not (near(high, values[0]) and near(low, values[1]) and same_mean and near(norm, values[3]) and counts):
            found.append((name, (high, low, mean, norm, nan, inf), values, (side.nan, side.positive_inf)))
    return found
