"""From a tensor to its file: which tensors can be stored, how they get off their device, and who writes them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any, Callable

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump import capacity
from ait_llm.dump.torch_dump.pinned import PinnedLane

_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)

# torch's own int4 is a type without operations, not the packed int4 of ait.
dtype_names: dict[torch.dtype, str] = {
    getattr(torch, name): name for name in _native.dtypes if name != "int4" and hasattr(torch, name)
}
"""Those that can be stored, in ait's words."""


class NotStorable(Exception):
    """Says why in one sentence."""


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Inside it no mode of the script's and no subclass of tensors sees what is done with them."""
    with torch._C.DisableTorchFunction(), _no_dispatch():
        yield


_no_dispatch: Callable[[], Any] = getattr(torch._C, "_DisableTorchDispatch", contextlib.nullcontext)
if not hasattr(_no_dispatch, "__enter__"):  # torch 1.13
    _no_dispatch = contextlib.nullcontext


def plain(tensor: torch.Tensor) -> tuple[torch.Tensor, str | None]:
    """The dense tensor that is written for `tensor`, and how it differs from it, if it does."""
    note = None
    if type(tensor) not in _PLAIN_TYPES:
        tensor, note = _unwrapped(tensor)
    if _is_wrapped(tensor):
        raise NotStorable("inside transforms of torch.func, such as vmap, tensors have no data of their own")
    if tensor.is_quantized:
        tensor, note = tensor.detach().dequantize(), f"{tensor.dtype} is stored as the float32 that it stands for"
    if tensor.layout != torch.strided:
        if not tensor.is_mkldnn:
            raise NotStorable(f"tensors of the layout {tensor.layout} are not stored")
        tensor, note = tensor.detach().to_dense(), "oneDNN's own layout is stored as an ordinary tensor"
    if tensor.device.type == "meta":
        raise NotStorable("tensors on the device meta have no data")
    if tensor.dtype not in dtype_names:
        raise NotStorable(f"there is no way to store {tensor.dtype}")
    if tensor.is_nested:
        raise NotStorable("nested tensors are not stored")
    if tensor.is_conj():
        tensor = tensor.detach().resolve_conj()
    if tensor.is_neg():
        tensor = tensor.detach().resolve_neg()
    return tensor, note


def _unwrapped(tensor: torch.Tensor) -> tuple[torch.Tensor, str | None]:
    name = type(tensor).__name__
    local = getattr(tensor, "_local_tensor", None)
    if isinstance(local, torch.Tensor):  # DTensor
        inner, note = plain(local)
        return inner, note or f"of a {name} only this rank's part is stored"
    if hasattr(tensor, "__tensor_flatten__") or name == "FakeTensor":
        raise NotStorable(f"{name} has no data of its own")
    return tensor.as_subclass(torch.Tensor), None


_is_wrapped: Callable[[torch.Tensor], bool] = getattr(
    getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", lambda tensor: False
)


def operand(tensor: torch.Tensor) -> _native.Operand:
    """Of a plain tensor on the CPU."""
    address = tensor.data_ptr()
    if address == 0 and tensor.numel() > 0:
        raise NotStorable("its memory has been freed")
    return _native.Operand.over(tensor, address, dtype_names[tensor.dtype], tensor.shape, tensor.stride(), False)


class Store:
    """Writes for all recordings of this process. A forked child makes a new one."""

    def __init__(self) -> None:
        self._native: _native.Recorder | None = None
        self.tables = _native.TableWriter()
        self._lanes: dict[torch.device, PinnedLane | None] = {}
        self._again: list[tuple[_native.Account, bytes, bytes, int]] = []
        self._lock = threading.Lock()  # guards that list

    @property
    def native(self) -> _native.Recorder:
        if self._native is None:
            writers = capacity.writers()
            self._native = _native.Recorder(capacity.queued_bytes(writers), writers, capacity.links())
        return self._native

    def submit(self, account: _native.Account, path: str, tensor: torch.Tensor) -> None:
        """`tensor` is plain. It may change as soon as this returns."""
        file = os.fsencode(path)
        if tensor.device.type != "cpu":
            lane = self._lane(tensor.device)
            if lane is not None and lane.submit(self.native, account, file, tensor):
                return
            tensor = tensor.cpu()
        self.native.submit(account, file, operand(tensor))

    def submit_again(self, account: _native.Account, path: str, first: str, nbytes: int) -> None:
        """The tensor that was submitted for `first` is to be at `path`, too; both are handed over together."""
        with self._lock:
            self._again.append((account, os.fsencode(path), os.fsencode(first), nbytes))

    def submit_text(self, account: _native.Account, path: str, text: bytes) -> None:
        self.native.submit_text(account, os.fsencode(path), text)

    def remove_tensors(self, account: _native.Account, folder: str) -> None:
        """Those of a round, when all that was submitted before is written."""
        self.native.remove_tensors(account, os.fsencode(folder))

    def hand_over(self) -> None:
        """Waits for copies off the devices, not for the writing."""
        with self._lock:
            again, self._again = self._again, []  # the first files of all of these are on their way
        for lane in list(self._lanes.values()):
            if lane is not None:
                lane.hand_over(self.native)
        if again:
            self.native.submit_again(again)

    def flush(self) -> None:
        self.tables.flush()
        if self._native is not None:
            self.hand_over()
            self._native.flush()

    def _lane(self, device: torch.device) -> PinnedLane | None:
        if device not in self._lanes:
            self._lanes[device] = PinnedLane.for_device(device)
        return self._lanes[device]
