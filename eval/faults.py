"""A planted fault and what it is planted into, and how large it is against what a healthy run of the same kind has."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Callable

import torch
from ait_llm.dump.torch_dump.perturbation import Perturbation, unit_of
from models import UNIT_ROUNDOFF, Clock, Shape, Words, clone, draw_shape, draw_words, feed, make_model

LLAMA_LIKE = ("llama", "qwen2", "mixtral")
ALL = ("llama", "qwen2", "gpt2", "mixtral")
DENSE = ("llama", "qwen2", "gpt2")
TYPE_PAIRS = (
    ("fp32", "fp32"),
    ("fp32", "bf16"),
    ("fp32", "fp16"),
    ("fp16", "bf16"),
    ("bf16", "bf16"),
    ("fp16", "fp16"),
)
FLOAT32 = (("fp32", "fp32"),)

SMALLEST_RATIO = 10  # of a fault's error to that of a healthy run
SMALLEST_RATIO_WITH_NOISE = 3  # where a third run says what is healthy
PERTURBED_SHARE = 0.4  # of third runs that are golden perturbed; the others are golden in my precision
LARGEST_RATIO, LARGEST_RATIO_WITH_NOISE = 300, 30  # of faults whose size is drawn


@dataclasses.dataclass
class Fault:
    operations: set[str]  # any of these is the right answer
    causes: set[str]  # likewise; empty where the list of causes has none for it
    place: tuple[str, str]  # module, and "input" or "output": where the error is measured
    plant: Callable[[torch.nn.Module, float, Clock], None]
    sizes: tuple[float, float] | None = None  # the smallest and the largest that make sense
    part: Callable[[torch.Tensor], torch.Tensor] | None = None  # what is damaged, where it is not the whole tensor
    discrete: bool = False  # it has no size: a choice, or values that are not finite
    # Of two: the one that is found first, and the other, which must be a finding of its own.
    first: Fault | None = None
    second: Fault | None = None


@dataclasses.dataclass
class Setup:
    """What a fault is planted into. `round` is the only round that is damaged; all are where it is None."""

    rng: random.Random
    shape: Shape
    words: Words
    golden_type: str
    my_type: str
    golden_attention: str
    layer: int
    round: int | None
    with_noise: bool

    def name(self, part: str = "") -> str:
        """Of a part of the damaged layer, or with a `/` before it of the model; recordings put `root.` before it."""
        if part.startswith("/"):
            return part[1:]
        stem = f"{self.shape.names.layers}.{self.layer}"
        return f"{stem}.{part}" if part else stem

    def module(self, model: torch.nn.Module, part: str = "") -> torch.nn.Module:
        return model.get_submodule(self.name(part))

    def active(self, clock: Clock) -> bool:
        return self.round is None or clock.token == self.round

    @property
    def head_size(self) -> int:
        return self.shape.hidden // self.shape.heads

    @property
    def attention(self) -> str:
        return self.shape.names.attention

    def describe(self) -> str:
        rounds = "all rounds" if self.round is None else f"round {self.round}"
        return f"{self.shape}, {self.golden_type} against {self.my_type}, layer {self.layer}, {rounds}"


@dataclasses.dataclass
class Kind:
    make: Callable[[Setup], Fault]
    families: tuple[str, ...] = ALL
    types: tuple[tuple[str, str], ...] = TYPE_PAIRS
    padded: bool | None = False  # None: either
    decode_only: bool = False
    prompt_only: bool = False
    shape: dict = dataclasses.field(default_factory=dict)
    noise_share: float = 0.25


def draw_setup(kind: Kind, rng: random.Random, with_noise: bool) -> Setup:
    shape = draw_shape(rng, kind.families, **{key: rng.choice(values) for key, values in kind.shape.items()})
    if shape.key_heads > shape.heads:
        shape = dataclasses.replace(shape, key_heads=shape.heads)
    steps = rng.choice((1, 2, 3)) if kind.decode_only else rng.choice((0, 0, 1, 2))
    padded = rng.random() < 0.3 if kind.padded is None else kind.padded
    longest = rng.randint(6, 14) if rng.random() < 0.9 else rng.randint(32, 64)
    batch = rng.choice((2, 3)) if padded else rng.choice((1, 1, 1, 2))
    lengths = [longest] * batch
    if padded:
        lengths[rng.randrange(batch)] -= rng.randint(2, 4)
    golden_type, my_type = rng.choice(kind.types)
    round_ = None
    if kind.decode_only:
        round_ = rng.randint(1, steps)
    elif kind.prompt_only:
        round_ = 0
    elif steps and rng.random() < 0.5:
        round_ = rng.randint(0, steps)
    return Setup(
        rng=rng,
        shape=shape,
        words=draw_words(rng, lengths, steps),
        golden_type=golden_type,
        my_type=my_type,
        golden_attention=rng.choice(("eager", "eager", "sdpa")),
        layer=rng.randrange(shape.layers),
        round=round_,
        with_noise=with_noise,
    )


@dataclasses.dataclass
class Models:
    """The two sides of a case, the damaged one with its fault in it."""

    golden: torch.nn.Module
    mine: torch.nn.Module
    noise: torch.nn.Module | None
    perturb: str | None  # how the noise run is made, where it is not golden in my precision
    clock: Clock
    ratio: float


def observe(model: torch.nn.Module, setup: Setup, place: tuple[str, str], clock: Clock | None = None) -> torch.Tensor:
    """What goes into or comes out of a module in the round that is damaged."""
    seen = []
    module = model.get_submodule(place[0])

    def before(_module, args, kwargs):
        seen.append(args[0] if args else kwargs["hidden_states"])

    def after(_module, _args, output):
        seen.append(output[0] if isinstance(output, tuple) else output)

    if place[1] == "input":
        handle = module.register_forward_pre_hook(before, with_kwargs=True)
    else:
        handle = module.register_forward_hook(after)
    try:
        feed(model, setup.words, clock)
    finally:
        handle.remove()
    return seen[setup.round or 0].detach().double()


def real_rows(setup: Setup, tensor: torch.Tensor) -> torch.Tensor:
    """Without those of padding, which nobody looks at."""
    if not setup.words.is_padded or tensor.shape[:2] != setup.words.mask.shape:
        return tensor
    return tensor[setup.words.mask.bool()]


def distance(actual: torch.Tensor, golden: torch.Tensor, part: Callable | None) -> float:
    if part is not None:
        actual, golden = part(actual), part(golden)
    return float((actual - golden).norm() / max(float(golden.norm()), 1e-300))


def build(setup: Setup, fault: Fault) -> Models | None:
    """None where no size of the fault is large enough against the noise; another setup is drawn then."""
    original = make_model(setup.shape)
    golden = clone(original, setup.golden_type, setup.golden_attention)
    third, perturb = _third_run(setup, original)
    want = lambda tensor: tensor if fault.part is not None else real_rows(setup, tensor)
    expected = want(observe(golden, setup, fault.place))
    if not torch.isfinite(expected).all():
        return None
    off = lambda model, clock=None: distance(want(observe(model, setup, fault.place, clock)), expected, fault.part)
    noise = max(off(clone(original, setup.my_type)), UNIT_ROUNDOFF[coarser(setup.golden_type, setup.my_type)])
    if setup.golden_type == setup.my_type == "fp32":
        noise = max(noise, off(clone(original, "fp64")))  # runs that are the same would say that sums do not round
    if third is not None:
        noise = max(noise, _with_perturbation(third, perturb, off))

    def planted(size: float) -> tuple[torch.nn.Module, Clock]:
        model, clock = clone(original, setup.my_type), Clock()
        fault.plant(model, size, clock)
        return model, clock

    smallest = SMALLEST_RATIO_WITH_NOISE if setup.with_noise else SMALLEST_RATIO
    size = 1.0
    if fault.sizes is not None:
        size = _find_size(lambda size: off(*planted(size)) / noise, fault.sizes, smallest, setup.rng)
    mine, clock = planted(size)
    ratio = math.inf if fault.discrete else off(mine, clock) / noise
    if not ratio >= smallest:
        return None
    if fault.second is not None and not _stands_out(setup, fault, size, original, golden, mine, clock):
        return None
    return Models(golden, mine, third, perturb, clock, ratio)


def _third_run(setup: Setup, original: torch.nn.Module) -> tuple[torch.nn.Module | None, str | None]:
    """Golden in my precision, or golden and by what it is to be perturbed."""
    if not setup.with_noise:
        return None, None
    is_repeat = setup.golden_type == setup.my_type  # which would show no noise at all
    if setup.rng.random() < PERTURBED_SHARE or is_repeat:
        by = coarser(setup.golden_type, setup.my_type)
        return clone(original, setup.golden_type, setup.golden_attention), by
    return clone(original, setup.my_type, setup.golden_attention), None


def _with_perturbation(model: torch.nn.Module, by: str | None, call: Callable) -> float:
    """What `call(model)` returns while the model is perturbed as its recording will be."""
    if by is None:
        return call(model)

    def trouble(error, _name):
        raise error

    perturbation = Perturbation(model, unit_of(by), 0, trouble)
    try:
        return call(model)
    finally:
        perturbation.remove()


def _stands_out(setup, fault: Fault, size: float, original, golden, mine, clock: Clock) -> bool:
    """Whether the second of two faults is large against what the first alone does there."""
    place = fault.second.place
    alone, its_clock = clone(original, setup.my_type), Clock()
    fault.first.plant(alone, size, its_clock)
    expected = observe(golden, setup, place)
    inherited = distance(observe(alone, setup, place, its_clock), expected, None)
    return distance(observe(mine, setup, place, clock), expected, None) >= SMALLEST_RATIO * inherited


def coarser(*types: str) -> str:
    return max(types, key=UNIT_ROUNDOFF.__getitem__)


def draw_ratio(smallest: float, rng: random.Random) -> float:
    """Of faults that have a size; half of them are less than three times as large as the smallest."""
    largest = LARGEST_RATIO_WITH_NOISE if smallest < SMALLEST_RATIO else LARGEST_RATIO
    return 1.1 * smallest * math.exp(rng.random() ** 2 * math.log(largest / smallest))


def _find_size(ratio_of: Callable[[float], float], sizes: tuple[float, float], smallest: float, rng) -> float:
    """One whose error is a drawn number of times that of a healthy run; errors grow with the size."""
    target = draw_ratio(smallest, rng)
    low, high = sizes
    for _ in range(9):
        middle = math.sqrt(low * high)
        ratio = ratio_of(middle)
        if ratio > 1.2 * target:
            high = middle
        elif ratio < target:
            low = middle
        else:
            return middle
    return high
