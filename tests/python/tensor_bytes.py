"""Tensors of torch as the bytes they consist of, to be compared bit for bit."""

import torch


def bytes_of(tensor):
    """The elements in row-major order, as bytes."""
    # clone, because torch calls a tensor of one element or none contiguous whatever its strides
    return tensor.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
