"""The metrics again, from their definitions: plain NumPy in extended precision, nothing shared with ait.

Extended precision (64 bits of mantissa and a range of 1e±4932 on x86-64) holds every input exactly, 64-bit integers
included, and neither overflows nor underflows where double would.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

MASK_EPSILON = 2.0**-23
BORDER = 2.0**-40


def exact(array):
    """Every element as an extended float, flat; complex numbers as pairs of reals."""
    array = np.asarray(array)
    if array.dtype.kind == "c":
        array = np.ascontiguousarray(array).view(array.real.dtype)
    if array.dtype.kind == "V" or array.dtype.name in ("float16",):
        array = array.astype(np.float64)
    return array.astype(np.longdouble).reshape(-1)


@dataclass
class Side:
    elements: int
    nan: int
    positive_inf: int
    negative_inf: int
    minimum: float
    maximum: float
    mean: float
    mean_magnitude: float  # what the error of the mean is measured against
    l1_norm: float
    l2_norm: float


def side(values):
    finite = values[np.isfinite(values)]
    with np.errstate(invalid="ignore"):
        mean = values.mean() if values.size else np.nan
    return Side(
        elements=values.size,
        nan=int(np.isnan(values).sum()),
        positive_inf=int((values == np.inf).sum()),
        negative_inf=int((values == -np.inf).sum()),
        minimum=values.min() if values.size else np.nan,
        maximum=values.max() if values.size else np.nan,
        mean=mean,
        mean_magnitude=np.abs(finite).sum() / max(values.size, 1),
        l1_norm=np.abs(finite).sum(),
        l2_norm=np.sqrt((finite * finite).sum()),
    )


def cosine(golden, actual):
    golden_norm, actual_norm = np.sqrt((golden * golden).sum()), np.sqrt((actual * actual).sum())
    if golden_norm == 0 or actual_norm == 0:
        return 1.0 if golden_norm == actual_norm else 0.0
    return (golden * actual).sum() / (golden_norm * actual_norm)


def kl_divergence(golden, actual):
    if golden.size == 0:
        return 0.0

    def log_softmax(values):
        shifted = values - values.max()
        return shifted - np.log(np.exp(shifted).sum())

    log_p, log_q = log_softmax(golden), log_softmax(actual)
    p = np.exp(log_p)
    return max((p * (log_p - log_q)).sum(), np.longdouble(0))


def relative_errors(golden, actual, relative, epsilon):
    difference, magnitude = np.abs(actual - golden), np.abs(golden)
    if relative == "masked":
        shown = magnitude > epsilon
        return np.where(shown, difference / np.where(shown, magnitude, 1), 0)
    if relative == "damped":
        return difference / (magnitude + epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0, difference / magnitude)


def relative_distance(golden, actual):
    norm = np.sqrt((golden * golden).sum())
    distance = np.sqrt(((actual - golden) ** 2).sum())
    if norm == 0:
        return 0.0 if distance == 0 else np.inf
    return distance / norm


@dataclass
class Expected:
    elements: int
    compared: int
    golden: Side
    actual: Side
    differing: int
    non_finite_agree: bool
    cosine_similarity: float = 0
    max_relative_error: float = 0
    mean_relative_error: float = 0
    max_absolute_error: float = 0
    mean_absolute_error: float = 0
    kl_divergence: float = 0
    relative_euclidean_distance: float = 0
    zero_golden_mismatch: int = 0
    worst_index: int = 0
    golden_zero: bool = False
    actual_zero: bool = False
    passes: list[tuple[int, int]] = field(default_factory=list)
    row_cosines: np.ndarray | None = None
    row_kl: np.ndarray | None = None


def compare(golden, actual, *, rows=False, relative="masked", epsilon=MASK_EPSILON, thresholds=(), mask_absolute=False):
    shape = np.shape(golden)
    parts = 2 if np.asarray(golden).dtype.kind == "c" else 1
    g, m = exact(golden), exact(actual)
    both = np.isfinite(g) & np.isfinite(m)
    expected = Expected(
        elements=g.size,
        compared=int(both.sum()),
        golden=side(g),
        actual=side(m),
        differing=int(((g != m) & ~(np.isnan(g) & np.isnan(m))).sum()),
        non_finite_agree=all(
            np.array_equal(test(g), test(m)) for test in (np.isnan, lambda x: x == np.inf, lambda x: x == -np.inf)
        ),
    )
    if rows:
        length = shape[-1] * parts if shape else parts
        split = [slice(at, at + length) for at in range(0, g.size, length)] if length else []
        pairs = [(g[row][both[row]], m[row][both[row]]) for row in split]
        expected.row_cosines = np.array([cosine(*pair) for pair in pairs])
        expected.row_kl = np.array([kl_divergence(*pair) for pair in pairs])
    if not both.any():
        return expected
    positions = np.flatnonzero(both)
    g, m = g[both], m[both]
    absolute = np.abs(m - g)
    shown = np.where(np.abs(g) > epsilon, absolute, 0) if mask_absolute else absolute
    errors = relative_errors(g, m, relative, epsilon)
    expected.cosine_similarity = cosine(g, m)
    expected.max_relative_error = errors.max()
    expected.mean_relative_error = errors.mean()
    expected.max_absolute_error = shown.max()
    expected.mean_absolute_error = shown.mean()
    expected.kl_divergence = kl_divergence(g, m)
    expected.relative_euclidean_distance = relative_distance(g, m)
    expected.zero_golden_mismatch = int(((np.abs(g) <= epsilon) & (g != m)).sum())
    expected.worst_index = int(positions[np.argmax(absolute)])
    expected.golden_zero, expected.actual_zero = not g.any(), not m.any()
    # A relative error that is the threshold itself, 0.01 for one, may fall on either side when rounded.
    borders = [(threshold * (1 - BORDER), threshold * (1 + BORDER)) for threshold in thresholds]
    expected.passes = [(int((errors < below).sum()), int((errors < above).sum())) for below, above in borders]
    return expected
