"""Statistics of the tensors of one recording: native code finds and measures them, and asks here for what it cannot do.

A tensor on the CPU is measured by ait's own code, one on a CUDA device by a kernel of ait's that is launched on the
script's stream, and one anywhere else, or on a CUDA device without the kernel, by torch's operations.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import Any, Callable

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump import hindrance, leaves
from ait_llm.dump.torch_dump.dump_config import DumpConfig
from ait_llm.dump.torch_dump.manifest import Manifest
from ait_llm.dump.torch_dump.statistics import OnDevice, measure
from ait_llm.dump.torch_dump.store import NotStorable, dtype_names, plain, unobserved

LIBRARY = "libcuda.so.1"

_tried: dict[int, str | None] = {}
"""By device: why it has no kernel, or None if it has."""


def load_kernel(device: int) -> str | None:
    """Why the kernel cannot be used there, in a sentence."""
    if device not in _tried:
        from ait_llm.dump.torch_dump import nvrtc  # which few processes need

        try:
            reason = _native.open_cuda_driver(LIBRARY)
            if not reason:
                image = nvrtc.image_for(torch.cuda.get_device_capability(device))
                reason = _native.load_kernel(device, image)
        except nvrtc.NoCompiler as error:
            reason = str(error)
        except Exception as error:  # whatever torch or a broken cache has to say
            reason = f"{type(error).__name__}: {error}"[:500]
        _tried[device] = reason or None
    return _tried[device]


def _introduce_torch() -> None:
    base = getattr(torch._C, "TensorBase", None) or vars(torch._C)["_TensorBase"]
    raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    inference = getattr(torch, "is_inference_mode_enabled", None)
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)  # of torch 2.10 and later
    _native.set_torch(dtype_names, (torch.Tensor, torch.nn.Parameter), base, raw_stream, inference, exchange)


def _signs_of_tracing() -> tuple[list[Callable[[], Any]], list[tuple[dict[str, Any], str]]]:
    """Functions that return None, and flags that are false, unless somebody may not be listened to right now or watches
    how tensors are used: the same that `hindrance` asks for, without running Python code."""
    modes = getattr(torch._C, "_len_torch_function_stack", None)
    compiled = getattr(hindrance.dynamo, "get_eval_frame_callback", None)
    fx, compiler = sys.modules.get("torch.fx._symbolic_trace"), sys.modules.get("torch.compiler")
    flags = [(vars(fx), "_is_fx_tracing_flag"), (vars(compiler), "_is_compiling_flag")] if fx and compiler else []
    if modes is None or compiled is None or any(name not in names for names, name in flags) or not flags:
        return [hindrance.hindrance, lambda: True], []  # of older versions: everything is heard by Python
    return [compiled, torch._C._get_tracing_state, modes], flags


def _kind(value: Any) -> str:
    """How values of this class are looked into."""
    if isinstance(value, leaves.PLAIN) or callable(value):
        return "nothing"
    if isinstance(value, (tuple, list, Mapping)) or dataclasses.is_dataclass(value):
        return "inside"
    return "opaque"


def _leaves(value: Any, stem: str, depth: int) -> list[leaves.Leaf]:
    return list(leaves.walk(value, stem, depth))


class Measuring:
    """Of one recording."""

    def __init__(self, config: DumpConfig, manifest: Manifest, trouble: Callable[[BaseException, str], None]) -> None:
        self._manifest = manifest
        self._per_module = config.statistics_per_module
        self._sketches = config.dump_sketch
        self._on_device = OnDevice()
        self._open: dict[int, _native.RoundTable] = {}
        _introduce_torch()
        self.recording = _native.Recording(
            config.tensor_part,
            _kind,
            _leaves,
            lambda key: leaves.file_name(str(key)),
            self._plain,
            self._elsewhere,
            trouble,
            self._copied if config.dump_sketch else None,
        )
        self._signs = _signs_of_tracing()

    def tap(self, module: torch.nn.Module, name: str, type_name: str) -> _native.NativeTap:
        return _native.NativeTap(self.recording, module, name, type_name, leaves.file_name(name), *self._signs)

    def use_device(self, device: int) -> None:
        reason = load_kernel(device)
        if reason is not None:
            self._manifest.no_kernel.add(reason, str(device))

    def begin_round(self, number: int, captured: bool) -> _native.RoundTable:
        table = _native.RoundTable(number, captured, self._sketches)
        if not captured:
            self._open[number] = table
        return table

    def settle(
        self, table: _native.RoundTable, writer: _native.TableWriter, account: _native.Account, folder: str
    ) -> None:
        """What the round has so far is on its way to its file."""
        self.fetch()
        for reason, count, first in table.take_unstored():
            self._manifest.not_stored.add(reason, first, count)
        writer.submit(table, account, os.fsencode(f"{folder}/{table.number}"), self._per_module)

    def end_round(self, table: _native.RoundTable) -> None:
        """Nothing will be added to it."""
        self._open.pop(table.number, None)
        table.forget_tensors()
        self._manifest.count_statistics(table.ways())

    def close(self) -> None:
        self.recording.close()

    def fetch(self) -> None:
        """The numbers that torch's operations have left on a device."""
        for (number, row), values in self._on_device.fetch():
            table = self._open.get(number)
            if table is not None:
                table.set(row, *values)

    def _plain(self, value: Any, place: str) -> torch.Tensor | None:
        """What is measured for `value`, which is no ordinary tensor. The manifest says why there is nothing."""
        with unobserved():
            try:
                if not isinstance(value, torch.Tensor):
                    raise NotStorable(f"a {type(value).__name__} is not looked into")
                dense, note = plain(value)
                if note is not None:
                    self._manifest.stored_otherwise.add(note, place)
                return dense.as_subclass(torch.Tensor) if type(dense) is not torch.Tensor else dense
            except NotStorable as error:
                self._manifest.not_stored.add(str(error), place)
            except Exception as error:
                self._manifest.not_stored.add(f"{type(error).__name__}: {error}"[:500], place)
        return None

    def _copied(self, tensor: torch.Tensor, place: str) -> torch.Tensor | None:
        """On the CPU, where sketches are made."""
        with unobserved(), torch.no_grad():
            try:
                return tensor.detach().cpu()
            except Exception as error:
                self._manifest.not_stored.add(f"its sketch: {type(error).__name__}: {error}"[:500], place)
        return None

    def _elsewhere(self, number: int, row: int, tensor: torch.Tensor) -> tuple[float, float, float, float] | None:
        """None if the numbers come later."""
        with unobserved():
            try:
                if not OnDevice.takes(tensor):
                    return measure(tensor.cpu())
                self._on_device.add((number, row), tensor)
                self.use_device(tensor.get_device())  # for the next tensor
                if self._on_device.full:
                    self.fetch()
            except Exception as error:
                self._manifest.not_stored.add(f"{type(error).__name__}: {error}"[:500], f"{number}, row {row}")
        return None
