"""The faults that the embedded acceleration library has a switch for, against torch and against the library itself."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import random

from engine_runs import EngineModel, draw_engine_model, find_operation, operation_name, read_output
from faults import PERTURBED_SHARE, SMALLEST_RATIO, SMALLEST_RATIO_WITH_NOISE, coarser, distance, draw_ratio
from models import UNIT_ROUNDOFF
from runs import record_torch


@dataclasses.dataclass(frozen=True)
class Switch:
    cause: set[str]
    operations: tuple[tuple[str, int], ...]  # type and index: where it can be planted
    size: float | None = None  # to begin with
    decode_only: bool = False  # it shows in a decoded word alone
    prompt_only: bool = False
    last_row: bool = False  # nothing but the last row is damaged
    between: bool = False  # torch has no such operation: it shows in the attention around it
    overflows: bool = False  # its size is drawn so that some values become infinite
    one_rank: bool = False  # of two processes one computes nothing


_LINEAR = tuple(("Linear", index) for index in range(7))
_NORM = (("RmsNorm", 0), ("RmsNorm", 1))

KINDS = {
    "engine-epsilon": Switch({"epsilon"}, _NORM, 0.01),
    "engine-overflow": Switch({"overflow"}, _LINEAR, 1.0, overflows=True),
    "engine-row": Switch({"one-row"}, _LINEAR, 0.5, prompt_only=True, last_row=True),
    "engine-scale": Switch({"scale"}, (*_LINEAR, ("Activation", 0), ("SelfAttention", 0)), 0.1),
    "engine-rope-pairing": Switch({"rope-pairing"}, (("Rope", 0),), between=True),
    "engine-residual": Switch({"missing-residual"}, (("Elewise", 0), ("Elewise", 2))),
    "engine-head-mapping": Switch({"heads-order", "permuted-axes"}, (("Linear", 1),)),
    "engine-one-shard": Switch({"one-shard"}, _LINEAR, one_rank=True),
    "engine-position": Switch({"position"}, (("Rope", 0),), between=True, decode_only=True),
}


@dataclasses.dataclass
class EngineCase:
    golden: pathlib.Path
    mine: pathlib.Path
    noise: pathlib.Path | None
    operations: set[str]
    causes: set[str]
    ratio: float
    description: str


def draw_case(name: str, rng: random.Random, folder: pathlib.Path, with_noise: bool) -> EngineCase | None:
    """None where what was drawn has no fault that is large enough; `folder` is to be emptied then."""
    switch = KINDS[name]
    steps = 2 if switch.decode_only else rng.choice((0, 1, 2))
    model = draw_engine_model(rng, folder, steps)
    layer = rng.randrange(model.shape.layers)
    token = rng.randint(1, steps) if switch.decode_only else 0 if switch.prompt_only else rng.randint(0, steps)
    kind, index = rng.choice(switch.operations)
    if kind == "SelfAttention" and token:
        kind = "PagedAttention"
    my_type = rng.choice(("fp16", "bf16", "fp32", "fp16", "w8a8"))
    if my_type == "w8a8" and (model.shape.family == "qwen2" or kind == "Elewise"):
        my_type = "fp16"  # quantised, it adds biases and quantises by operations of their own
    against_torch = rng.random() < 0.5
    golden_type = rng.choice(("fp32", "fp32", "fp16")) if my_type != "fp32" else "fp32"
    processes = ("--tp", "2") if switch.one_rank or rng.random() < 0.25 else ()
    if name == "engine-head-mapping" and processes and model.shape.key_heads < 4:
        return None  # a process has one key head, which cannot stand in another's place

    # Sizes are measured against the library's own run in float32, which has every operation that the fault is in.
    exact = model.record(folder / "exact", "fp32", *processes)
    healthy = model.record(folder / "healthy", my_type, *processes)
    seen_in = ("PagedAttention" if token else "SelfAttention", 0) if switch.between and against_torch else (kind, index)
    part = (lambda y: y[-1]) if switch.last_row else None
    output = lambda dump: read_output(find_operation(dump, token, layer, *seen_in))
    expected = output(exact)
    rounding = UNIT_ROUNDOFF[my_type] * (math.sqrt(model.shape.hidden) if my_type == "fp32" else 1)  # of a sum
    noise = max(distance(output(healthy), expected, part), rounding)
    is_repeat = golden_type == my_type  # which would show no noise at all
    perturb = None
    if with_noise and my_type != "w8a8" and (rng.random() < PERTURBED_SHARE or is_repeat):
        perturb = coarser(golden_type, my_type)
    if perturb is not None:
        perturbed = model.record(folder / "perturbed", "fp32", "--perturb", perturb, *processes)
        noise = max(noise, distance(output(perturbed), expected, part))

    def plant(size: float | None) -> tuple[pathlib.Path, float]:
        if switch.one_rank:
            fault = _fault_words("scale", layer, token, kind, index, -1) + ",rank=0"
        else:
            fault = _fault_words(name.removeprefix("engine-"), layer, token, kind, index, size)
        mine = model.record(folder / "mine" / f"{size}", my_type, "--fault", fault, *processes)
        return mine, distance(output(mine), expected, part) / noise

    smallest = SMALLEST_RATIO_WITH_NOISE if with_noise else SMALLEST_RATIO
    if switch.overflows:
        mine, ratio = plant(rng.choice((1.2, 2.0, 10.0)) * 65504 / float(expected.abs().max()))
        ratio = math.inf  # of values that are not finite
    else:
        mine, ratio = plant(switch.size)
    if switch.size is not None and 0 < ratio < math.inf:
        mine, ratio = plant(switch.size * draw_ratio(smallest, rng) / ratio)
    if not ratio >= smallest or not model.is_fed_the_same(mine, token):
        return None
    if against_torch:
        golden = record_torch(model.copy(golden_type), folder / "golden", model.words)
    else:
        golden = model.record(folder / "golden", golden_type)
        if not model.is_fed_the_same(golden, token):
            return None
    operations = _names(find_operation(mine, token, layer, kind, index), switch, against_torch)
    rounds = "the prompt" if token == 0 else f"round {token}"
    golden_name = "torch" if against_torch else "the engine"
    description = f"{model.shape}, {golden_name} in {golden_type} against the engine in {my_type}"
    description += f"{' on two processes' if processes else ''}, layer {layer}, {rounds}"
    third = None
    if perturb is not None:
        third = _perturbed(model, folder / "noise", golden_type, perturb, against_torch)
        description += ", golden perturbed"
    elif with_noise:
        third = model.record(folder / "noise", my_type)
    return EngineCase(golden, mine, third, operations, switch.cause, ratio, description)


def _perturbed(model: EngineModel, folder: pathlib.Path, dtype: str, by: str, by_torch: bool) -> pathlib.Path:
    if by_torch:
        return record_torch(model.copy(dtype), folder, model.words, perturb=by)
    return model.record(folder, dtype, "--perturb", by)


def _fault_words(fault: str, layer: int, token: int, kind: str, index: int, size: float | None) -> str:
    """As `--fault` takes it."""
    words = [f"layer={layer}", f"round={token}"]
    if size is not None:
        words += [f"size={size:.9g}", f"op={kind}", f"index={index}"]
    elif fault == "residual":
        words.append(f"index={index // 2}")  # the product of gate and up is between the two sums
    return f"{fault}@{','.join(words)}"


def _names(folder: pathlib.Path, switch: Switch, against_torch: bool) -> set[str]:
    """With its kernel, the operations around it that return the very same tensor, and where torch shows it first."""
    operation = operation_name(folder)
    layer, *rest = operation.split("/")
    names = {operation, *(f"{operation}/{each.name}" for each in folder.glob("*Kernel"))}
    if rest == ["5_ElewiseOperation"]:
        names.add(layer)
    if switch.between and against_torch:
        # Quantised, operations have other numbers.
        core = [each for kind in ("Self", "Paged") for each in folder.parent.glob(f"*_{kind}AttentionOperation")]
        names |= {f"{layer}/{rest[0]}", *map(operation_name, core)}
    return names
