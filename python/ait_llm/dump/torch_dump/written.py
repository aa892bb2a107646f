"""Which tensors of the current round have a file already.

The output of one module is the input of the next: more than half of the tensors of a model are met twice. Getting one
off a device takes longer than all that is done with it afterwards, so that one that has not changed since gets a
further name for its file. Tensors on the CPU are always copied: it costs little, and NumPy may change them without
torch's knowledge.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

import torch


class _File(NamedTuple):
    tensor: weakref.ref[torch.Tensor]
    version: int
    address: int
    shape: torch.Size
    stride: tuple[int, ...]
    round: str
    path: str
    nbytes: int


class Written:
    """Of one recording. Keeps no tensor alive. Files of other rounds are no use: they may be removed at any time."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}

    @staticmethod
    def remembers(tensor: torch.Tensor) -> bool:
        """Only what torch counts the changes of can be known again: not tensors of torch.inference_mode()."""
        return tensor.device.type != "cpu" and not tensor.is_inference()

    def find(self, tensor: torch.Tensor, round_: str) -> tuple[str, int] | None:
        """The path of its file in that round, and how many bytes were written."""
        file = self._files.get(id(tensor))
        if file is None or file.tensor() is not tensor or not self.remembers(tensor):
            return None
        now = (tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride(), round_)
        return (file.path, file.nbytes) if now == file[1:6] else None

    def add(self, tensor: torch.Tensor, round_: str, path: str, nbytes: int) -> None:
        if self.remembers(tensor):
            place = (tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride())
            self._files[id(tensor)] = _File(weakref.ref(tensor), *place, round_, path, nbytes)

    def forget(self) -> None:
        self._files.clear()
