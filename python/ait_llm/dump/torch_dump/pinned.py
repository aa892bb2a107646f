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

POOL_BYTES = 256 << 20

_DEVICES = ("cuda", "npu")
"""Those whose torch modules have streams and events that are used alike."""


class _Copy(NamedTuple):
    event: Any
    offset: int
    nbytes: int
    account: _native.Account
    path: bytes
    dtype: str
    shape: tuple[int, ...]


class PinnedLane:
    """Of one device."""

    def __init__(self, device: torch.device, pool: torch.Tensor, backend: Any) -> None:
        self._backend = backend  # torch.cuda or one like it
        self._device = device
        self._stream = backend.Stream(device=device)
        self._pool = pool
        self._lent = _native.LentMemory(pool.data_ptr(), pool.numel())
        self._copies: collections.deque[_Copy] = collections.deque()
        self._lock = threading.Lock()

    @staticmethod
    def for_device(device: torch.device) -> PinnedLane | None:
        """None where such memory cannot be had: tensors are then copied one by one."""
        if device.type not in _DEVICES:
            return None
        try:
            pool = torch.empty(POOL_BYTES, dtype=torch.uint8, pin_memory=True)
            return PinnedLane(device, pool, getattr(torch, device.type))
        except (RuntimeError, AttributeError):
            return None

    def submit(self, native: _native.Recorder, account: _native.Account, path: bytes, tensor: torch.Tensor) -> bool:
        """False if the tensor is too large."""
        nbytes = tensor.numel() * tensor.element_size()
        if nbytes > self._lent.bytes:
            return False
        with self._lock:
            offset = self._reserve(native, nbytes)
            try:
                event = self._copy(tensor, offset, nbytes)
            except BaseException:
                self._lent.give_back(offset, nbytes)
                raise
            dtype = str(tensor.dtype).replace("torch.", "")
            self._copies.append(_Copy(event, offset, nbytes, account, path, dtype, tuple(tensor.shape)))
            self._hand_over_finished(native)
        return True

    def hand_over(self, native: _native.Recorder) -> None:
        """Waits for every copy."""
        with self._lock:
            while self._copies:
                self._hand_over_first(native)

    def _reserve(self, native: _native.Recorder, nbytes: int) -> int:
        while True:
            offset = self._lent.reserve(nbytes)
            if offset is not None:
                return offset
            if self._copies:
                self._hand_over_first(native)
            else:
                self._lent.wait()

    def _copy(self, tensor: torch.Tensor, offset: int, nbytes: int) -> Any:
        event = self._backend.Event()
        if nbytes == 0:
            event.record(self._stream)
            return event
        with torch.no_grad():
            clone = _bytes(tensor.clone(memory_format=torch.contiguous_format))
            self._stream.wait_stream(self._backend.current_stream(self._device))
            with self._backend.stream(self._stream):
                self._pool[offset : offset + nbytes].copy_(clone, non_blocking=True)
                event.record(self._stream)
            clone.record_stream(self._stream)  # not to be used for other tensors before that copy is done
        return event

    def _hand_over_finished(self, native: _native.Recorder) -> None:
        while self._copies and self._copies[0].event.query():
            self._hand_over_first(native)

    def _hand_over_first(self, native: _native.Recorder) -> None:
        copy = self._copies.popleft()
        copy.event.synchronize()
        native.submit_lent(copy.account, copy.path, self._lent, copy.offset, copy.dtype, copy.shape)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.reshape(-1).view(torch.uint8)
