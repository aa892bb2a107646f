"""The seven metrics written in torch and in numpy, as a careful user would: fp64 sums, one thread.

Used by bench/run.py as the baseline of the native kernels; the formulas are those of docs/metrics.md.
"""

import numpy as np
import torch

EPSILON = 2.0**-23


def torch_metrics(golden: torch.Tensor, actual: torch.Tensor, kl: bool) -> dict:
    g = golden.flatten().double()
    m = actual.flatten().double()
    difference = m - g
    error = difference.abs()
    live = g.abs() > EPSILON
    relative = torch.where(live, (m / g - 1).abs(), torch.zeros_like(g))
    norm_g, norm_m = g.norm(), m.norm()
    out = {
        "cosine_similarity": (g.dot(m) / (norm_g * norm_m)).item(),
        "max_relative_error": relative.max().item(),
        "mean_relative_error": relative.mean().item(),
        "max_absolute_error": error.max().item(),
        "mean_absolute_error": error.mean().item(),
        "relative_euclidean_distance": (difference.norm() / norm_g).item(),
        "golden": (g.min().item(), g.max().item(), g.mean().item()),
        "my": (m.min().item(), m.max().item(), m.mean().item()),
        "finite": bool(torch.isfinite(g).all() and torch.isfinite(m).all()),
    }
    if kl:
        log_p, log_q = torch.log_softmax(g, 0), torch.log_softmax(m, 0)
        out["kl_divergence"] = (log_p.exp() * (log_p - log_q)).sum().item()
    return out


def numpy_metrics(golden: np.ndarray, actual: np.ndarray, kl: bool) -> dict:
    g = golden.reshape(-1).astype(np.float64)
    m = actual.reshape(-1).astype(np.float64)
    difference = m - g
    error = np.abs(difference)
    live = np.abs(g) > EPSILON
    relative = np.zeros_like(g)
    np.divide(m, g, out=relative, where=live)
    relative = np.where(live, np.abs(relative - 1), 0)
    norm_g, norm_m = np.sqrt((g * g).sum()), np.sqrt((m * m).sum())
    out = {
        "cosine_similarity": (g * m).sum() / (norm_g * norm_m),
        "max_relative_error": relative.max(),
        "mean_relative_error": relative.mean(),
        "max_absolute_error": error.max(),
        "mean_absolute_error": error.mean(),
        "relative_euclidean_distance": np.sqrt((difference * difference).sum()) / norm_g,
        "golden": (g.min(), g.max(), g.mean()),
        "my": (m.min(), m.max(), m.mean()),
        "finite": bool(np.isfinite(g).all() and np.isfinite(m).all()),
    }
    if kl:

        def log_softmax(x):
            shifted = x - x.max()
            return shifted - np.log(np.exp(shifted).sum())

        log_p, log_q = log_softmax(g), log_softmax(m)
        out["kl_divergence"] = (np.exp(log_p) * (log_p - log_q)).sum()
    return out


def torch_statistics(tensor: torch.Tensor) -> tuple:
    x = tensor.flatten().double()
    return x.min(), x.max(), x.mean(), x.norm(), x.abs().sum(), torch.isnan(x).sum(), torch.isinf(x).sum()


def numpy_statistics(array: np.ndarray) -> tuple:
    x = array.reshape(-1).astype(np.float64)
    return (x.min(), x.max(), x.mean(), np.sqrt((x * x).sum()), np.abs(x).sum(), np.isnan(x).sum(), np.isinf(x).sum())
