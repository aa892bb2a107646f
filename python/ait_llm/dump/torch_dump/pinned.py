"""Tensors on their way from a device to their files, without the host waiting for each.

A tensor is cloned on the device, which is quick and guards it against being changed in place, and the clone copied on
a stream of its own into page-locked memory, from which the native writer takes it. The page-locked memory bounds how
much is under way: when it is used up, the host waits for the oldest copy.
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
MAX_CLONED_BYTES = 512 << 20
"""Of clones on the device, which its owner has other uses for."""

_DEVICES = ("cuda", "npu")
"""Those whose torch modules have streams and events that are used alike."""


class _Block(NamedTuple):
    pool: torch.Tensor
    lent: _native.LentMemory


class _Copy(NamedTuple):
    event: Any
    block: _Block
    offset: int
    nbytes: int
    account: _native.Account
    path: bytes
    dtype: str
    shape: tuple[int, ...]


class PinnedLane:
    """Of one device. Grows as long as the disk does not keep up, to at most `limit` bytes."""

    def __init__(self, device: torch.device, pool: torch.Tensor, backend: Any, limit: int | None = None) -> None:
        self._backend = backend  # torch.cuda or one like it
        self._device = device
        self._stream = backend.Stream(device=device)
        self._blocks = [_block(pool)]
        self._limit = pool.numel() if limit is None else limit
        self._copies: collections.deque[_Copy] = collections.deque()
        self._cloned = 0
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
                event = self._copy(tensor, block, offset, nbytes)
            except BaseException:
                block.lent.give_back(offset, nbytes)
                raise
            dtype = str(tensor.dtype).replace("torch.", "")
            self._copies.append(_Copy(event, block, offset, nbytes, account, path, dtype, tuple(tensor.shape)))
            self._cloned += nbytes
            self._hand_over_finished(native)
            while self._cloned > MAX_CLONED_BYTES and len(self._copies) > 1:
                self._hand_over_first(native)
        return True

    def hand_over(self, native: _native.Recorder) -> None:
        """Waits for every copy."""
        with self._lock:
            while self._copies:
                self._hand_over_first(native)

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
            if self._copies:
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

    def _copy(self, tensor: torch.Tensor, block: _Block, offset: int, nbytes: int) -> Any:
        event = self._backend.Event()
        if nbytes == 0:
            event.record(self._stream)
            return event
        with torch.no_grad():
            clone = _bytes(tensor.clone(memory_format=torch.contiguous_format))
            self._stream.wait_stream(self._backend.current_stream(self._device))
            with self._backend.stream(self._stream):
                block.pool[offset : offset + nbytes].copy_(clone, non_blocking=True)
                event.record(self._stream)
            clone.record_stream(self._stream)  # not to be used for other tensors before that copy is done
        return event

    def _hand_over_finished(self, native: _native.Recorder) -> None:
        while self._copies and self._copies[0].event.query():
            self._hand_over_first(native)

    def _hand_over_first(self, native: _native.Recorder) -> None:
        copy = self._copies.popleft()
        self._cloned -= copy.nbytes
        copy.event.synchronize()
        native.submit_lent(copy.account, copy.path, copy.block.lent, copy.offset, copy.dtype, copy.shape)


def _pinned(nbytes: int) -> torch.Tensor:
    return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)


def _block(pool: torch.Tensor) -> _Block:
    return _Block(pool, _native.LentMemory(pool.data_ptr(), pool.numel()))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.reshape(-1).view(torch.uint8)
