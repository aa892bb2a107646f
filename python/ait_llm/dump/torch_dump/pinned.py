"""Tensors on their way from a device to their files, without the host waiting for each.

A tensor is copied into page-locked memory on the script's own stream, which guards it against being changed or freed
before, and from there the native writer takes it. The page-locked memory bounds how much is under way: when it is used
up, the host waits for the oldest copy. On a stream beside it, copies would not hold up the model, but setting that up
in Python takes three times as long as the copy.
"""

from __future__ import annotations

import collections
import threading
from typing import Any, NamedTuple

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump import capacity

POOL_BYTES = 256 << 20
"""To begin with; page-locked memory takes a while to be had."""
BATCH_BYTES = 8 << 20
BATCH_COPIES = 8
"""Of what is waited for together: an event takes as long as a copy."""

_DEVICES = ("cuda", "npu")
"""Those whose torch modules have streams and events that are used alike."""


class _Block(NamedTuple):
    pool: torch.Tensor
    lent: _native.LentMemory


class _Copy(NamedTuple):
    block: _Block
    offset: int
    nbytes: int
    account: _native.Account
    path: bytes
    dtype: str
    shape: tuple[int, ...]


class _Batch:
    """Copies on one stream, that are done when its event has come."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.event: Any = None  # when the last is on its way
        self.copies: list[_Copy] = []
        self.nbytes = 0

    def add(self, copy: _Copy) -> bool:
        """Whether that is enough."""
        self.copies.append(copy)
        self.nbytes += copy.nbytes
        return self.nbytes >= BATCH_BYTES or len(self.copies) == BATCH_COPIES


class PinnedLane:
    """Of one device. Grows as long as the disk does not keep up, to at most `limit` bytes."""

    def __init__(self, device: torch.device, pool: torch.Tensor, backend: Any, limit: int | None = None) -> None:
        self._backend = backend  # torch.cuda or one like it
        self._device = device
        self._blocks = [_block(pool)]
        self._limit = pool.numel() if limit is None else limit
        self._batches: collections.deque[_Batch] = collections.deque()  # the last may have no event yet
        self._lock = threading.Lock()

    @staticmethod
    def for_device(device: torch.device) -> PinnedLane | None:
        """None where such memory cannot be had: tensors are then copied one by one."""
        if device.type not in _DEVICES:
            return None
        limit = capacity.queued_bytes(capacity.writers())
        try:
            return PinnedLane(device, _pinned(min(POOL_BYTES, limit)), getattr(torch, device.type), limit)
        except (RuntimeError, AttributeError):
            return None

    def submit(self, native: _native.Recorder, account: _native.Account, path: bytes, tensor: torch.Tensor) -> bool:
        """False if the tensor is too large."""
        nbytes = tensor.numel() * tensor.element_size()
        with self._lock:
            place = self._reserve(native, nbytes)
            if place is None:
                return False
            block, offset = place
            try:
                stream = self._backend.current_stream(self._device)
                self._copy(tensor, block, offset, nbytes)
            except BaseException:
                block.lent.give_back(offset, nbytes)
                raise
            dtype = str(tensor.dtype).replace("torch.", "")
            copy = _Copy(block, offset, nbytes, account, path, dtype, tuple(tensor.shape))
            if self._batch_on(stream).add(copy):
                self._end_batch()
                while self._batches and self._batches[0].event.query():
                    self._hand_over_first(native)
        return True

    def hand_over(self, native: _native.Recorder) -> None:
        """Waits for every copy."""
        with self._lock:
            while self._batches:
                self._hand_over_first(native)

    def _batch_on(self, stream: Any) -> _Batch:
        if self._batches and self._batches[-1].event is None:
            if self._batches[-1].stream == stream:
                return self._batches[-1]
            self._end_batch()
        self._batches.append(_Batch(stream))
        return self._batches[-1]

    def _end_batch(self) -> None:
        last = self._batches[-1]
        last.event = self._backend.Event()
        last.event.record(last.stream)

    def _reserve(self, native: _native.Recorder, nbytes: int) -> tuple[_Block, int] | None:
        while True:
            for block in self._blocks:
                offset = block.lent.reserve(nbytes)
                if offset is not None:
                    return block, offset
            if self._grow(nbytes):
                continue
            fitting = [block for block in self._blocks if block.lent.bytes >= nbytes]
            if not fitting:
                return None
            if self._batches:
                self._hand_over_first(native)
            else:
                fitting[-1].lent.wait()

    def _grow(self, nbytes: int) -> bool:
        """By as much again, so that little has to be page-locked for a recording that writes little."""
        total = sum(block.lent.bytes for block in self._blocks)
        size = min(max(total, nbytes + _native.LentMemory.alignment), self._limit - total)
        if size < nbytes + _native.LentMemory.alignment:
            return False
        try:
            self._blocks.append(_block(_pinned(size)))
        except RuntimeError:  # there is no more
            self._limit = total
            return False
        return True

    @staticmethod
    def _copy(tensor: torch.Tensor, block: _Block, offset: int, nbytes: int) -> None:
        if nbytes > 0:
            with torch.no_grad():
                block.pool[offset : offset + nbytes].copy_(_bytes(tensor.detach().contiguous()), non_blocking=True)

    def _hand_over_first(self, native: _native.Recorder) -> None:
        if self._batches[0].event is None:
            self._end_batch()
        batch = self._batches.popleft()
        batch.event.synchronize()
        for copy in batch.copies:
            native.submit_lent(copy.account, copy.path, copy.block.lent, copy.offset, copy.dtype, copy.shape)


def _pinned(nbytes: int) -> torch.Tensor:
    return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)


def _block(pool: torch.Tensor) -> _Block:
    return _Block(pool, _native.LentMemory(pool.data_ptr(), pool.numel()))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.reshape(-1).view(torch.uint8)
