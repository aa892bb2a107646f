"""What the tests of goldens share: tensors of every type, and the two questions that are asked of each golden.

An oracle is somebody else's implementation: torch or NumPy in float64. A golden must agree with it to the rounding of
float64, and what a plain float32 kernel gives, rounded to the type of the output, must lie within the golden's bound.
"""

import numpy as np
import torch
from ait_llm import golden

FLOATS = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


def normal(*shape, dtype="float16", seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(FLOATS[dtype])


def whole(low, high, *shape, dtype=torch.int8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def numbers(tensor):
    """As float64, whatever it was."""
    return tensor.double().numpy() if isinstance(tensor, torch.Tensor) else np.asarray(tensor, float)


def assert_agrees(expected, oracle, tolerance=1e-12):
    """The golden's values are the oracle's."""
    oracle = numbers(oracle)
    assert expected.values.shape == oracle.shape
    scale = np.maximum(np.abs(oracle), np.abs(oracle).max(initial=0) * 1e-3)
    defined = ~expected.undefined if expected.undefined is not None else np.ones(oracle.shape, bool)
    same = (expected.values == oracle) | (np.isnan(expected.values) & np.isnan(oracle))
    with np.errstate(invalid="ignore"):  # infinities on both sides
        close = np.abs(expected.values - oracle) <= tolerance * scale
    assert (same | close | ~defined).all(), np.abs(expected.values - oracle).max()


def share(expected, result, dtype=None):
    """How much of the bound a result uses, at its worst element."""
    result = numbers(result)
    assert expected.values.shape == result.shape
    best = np.inf
    for form, values in (expected.forms or {None: expected.values}).items():
        bound = expected.bound(dtype, form)
        error = np.array(np.abs(result - values))
        error[(values == result) | (np.isnan(values) & np.isnan(result))] = 0
        for place, set_of_equals in expected.ties.items():
            error.flat[place] = 0 if result.flat[place] in set_of_equals else error.flat[place]
        used = np.where(error == 0, 0, error / np.where(bound == 0, 1e-300, bound))
        if expected.undefined is not None:
            used = used[~expected.undefined]
        best = min(best, used.max(initial=0))
    return best


def assert_sound(expected, result, dtype=None):
    used = share(expected, result, dtype)
    assert used <= 1, f"a sound kernel is {used:.3g} times as far off as the bound"


def assert_caught(expected, result, dtype=None, by=1.0):
    """A wrong kernel is outside of the bound."""
    used = share(expected, result, dtype)
    assert used > by, f"a wrong kernel uses only {used:.3g} of the bound"


__all__ = ["FLOATS", "assert_agrees", "assert_caught", "assert_sound", "golden", "normal", "numbers", "share", "whole"]
