"""Where functions run: the device under test."""

from __future__ import annotations

import contextlib
import gc
from typing import Any, Callable

import torch

from ait_llm._errors import AitError


class Device:
    """The CPU in the recorded precision, and what the others change of it."""

    def __init__(self, name: str = "cpu") -> None:
        self.name = name
        self.device = torch.device(name)

    def prepare(self, seed: int) -> None:
        """Once in each process, before anything runs."""
        torch.manual_seed(seed)

    def call(self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Runs a function on tensors that are on the device."""
        return function(*args, **kwargs)

    def autocast(self, dtype: torch.dtype | None) -> Any:
        return contextlib.nullcontext() if dtype is None else torch.autocast(self.device.type, dtype)

    def finish(self) -> None:
        """Waits until it has computed."""

    def release(self) -> None:
        """After a call that failed: memory may be short."""
        gc.collect()

    def describe(self) -> str:
        return "the CPU in the recorded precision"


class Accelerator(Device):
    """cuda and npu have the same interface under their names."""

    def __init__(self, name: str, jit_compile: bool = False) -> None:
        if name.startswith("npu"):
            import torch_npu  # noqa: F401
        super().__init__(name)
        self._module: Any = getattr(torch, self.device.type)
        self._jit_compile = jit_compile
        index = self.device.index or 0
        if not self._module.is_available() or index >= self._module.device_count():
            raise AitError(f"Set {self.device.type.upper()} device id failed. device id is: {index}")
        self.device = torch.device(self.device.type, index)

    def prepare(self, seed: int) -> None:
        super().prepare(seed)
        self._module.set_device(self.device)
        self._module.manual_seed(seed)
        if self.device.type == "cuda":
            # A format with 11 bits in place of float32 would be reported as a fault, and rightly so.
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
            torch.backends.cudnn.deterministic = True
        elif hasattr(self._module, "set_compile_mode"):
            self._module.set_compile_mode(jit_compile=self._jit_compile)

    def finish(self) -> None:
        self._module.synchronize()

    def release(self) -> None:
        super().release()
        self._module.empty_cache()

    def describe(self) -> str:
        name = self._module.get_device_name(self.device) if hasattr(self._module, "get_device_name") else ""
        return f"{self.device} ({name})" if name else str(self.device)


class Inductor(Device):
    """What torch.compile makes of each function, on another device."""

    def __init__(self, base: Device) -> None:
        super().__init__(str(base.device))
        self._base = base

    def prepare(self, seed: int) -> None:
        self._base.prepare(seed)

    def call(self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        torch._dynamo.reset()
        compiled = torch.compile(lambda *args, **kwargs: function(*args, **kwargs), dynamic=False)
        return compiled(*args, **kwargs)

    def finish(self) -> None:
        self._base.finish()

    def release(self) -> None:
        self._base.release()

    def describe(self) -> str:
        return f"what torch.compile makes for {self._base.describe()}"


def open_device(name: str, number: int = 0, against: str | None = None, jit_compile: bool = False) -> Device:
    """By "cpu", "cuda", "cuda:1", "npu" or "auto". AitError where there is none."""
    device: Device
    if name == "auto":
        name = _best()
    kind = name.partition(":")[0]
    if kind == "cpu":
        device = Device()
    elif kind in ("cuda", "npu"):
        try:
            device = Accelerator(name if ":" in name else f"{kind}:{number}", jit_compile)
        except (ImportError, RuntimeError, AssertionError) as error:
            raise AitError(f"Set device id failed. device id is: {name} ({error})") from None
    else:
        raise AitError(f"there is no device {name!r}; the choices are cpu, cuda, cuda:N, npu, npu:N and auto")
    if against == "inductor":
        if not hasattr(torch, "compile"):
            raise AitError("--against inductor needs torch 2")
        return Inductor(device)
    return device


def _best() -> str:
    with contextlib.suppress(Exception):
        import torch_npu  # noqa: F401

        if torch.npu.is_available():  # type: ignore[attr-defined]
            return "npu"
    return "cuda" if torch.cuda.is_available() else "cpu"
