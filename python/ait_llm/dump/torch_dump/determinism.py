"""Deterministic computing, as far as torch and the environment offer it."""

from __future__ import annotations

import os
import random
import sys

import torch

_ENVIRONMENT = {
    "LCCL_DETERMINISTIC": "1",
    "HCCL_DETERMINISTIC": "true",
    "ATB_MATMUL_SHUFFLE_K_ENABLE": "0",
    "ATB_LLM_LCOC_ENABLE": "0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # without it cuBLAS refuses to be deterministic
}


def switch_on(seed: int) -> None:
    """Seeds Python, NumPy where it is in use, and torch with all devices. It stays so until the process ends."""
    os.environ.update(_ENVIRONMENT)
    os.environ["PYTHONHASHSEED"] = str(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
    torch.manual_seed(seed)
    # Operations that cannot be deterministic are a warning: the model is to run on.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
