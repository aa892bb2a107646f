"""The older tool's rule in NumPy, written from its document and from nothing of ours."""

import numpy as np
import torch


def passes(bench, device, rounded=True):
    """Whether one output passes: cosine above 0.99, and fewer than a t share of the elements off by t or more."""
    if bench.dtype in (torch.bool,) or not device.is_floating_point():
        return torch.equal(bench.to(torch.int64), device.to(torch.int64))
    if device.numel() == 0:
        return True
    threshold = 1e-3 if device.dtype in (torch.float16, torch.bfloat16) else 1e-4
    epsilon = {torch.float16: 2.0**-10, torch.float64: 2.0**-52}.get(device.dtype, 2.0**-23)
    as_device = bench.to(device.dtype).double().reshape(-1).numpy()
    b = as_device if rounded else bench.double().reshape(-1).numpy()
    n = device.double().reshape(-1).numpy()
    finite = np.isfinite(as_device) & np.isfinite(n)
    agree = (np.isnan(as_device) & np.isnan(n)) | (as_device == n)
    if not np.all(finite | agree):
        return False
    b, n = b[finite], n[finite]
    if not _cosine_passes(b, n, device.numel()):
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        moved_b, moved_n = np.where(n == 0, b + epsilon, b), np.where(n == 0, n + epsilon, n)
        error = np.abs((moved_b - moved_n) / moved_b)
    good = np.count_nonzero(np.where(b == n, 0, error) < threshold) + np.count_nonzero(~finite)
    return good / device.numel() > 1 - threshold


def _cosine_passes(b, n, elements):
    if elements == 1 or b.size == 0:
        return True
    zero_b, zero_n = (np.abs(each).max() <= 2.220446049250313e-16 for each in (b, n))
    if zero_b or zero_n:
        return zero_b and zero_n
    b, n = b / np.abs(b).max(), n / np.abs(n).max()
    return float(b @ n / np.linalg.norm(b) / np.linalg.norm(n)) > 0.99
