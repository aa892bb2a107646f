"""Noise on purpose: what every operation of a model returns is off by up to one rounding unit.

The run that is recorded then is healthy by definition, and shows how far off each value is when every operation rounds
a little differently: what `ait llm compare --noise` takes. See docs/torch_dump.md.
"""

from __future__ import annotations

import zlib
from typing import Any, Callable

import torch

UNITS = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp32": 2.0**-24}

_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def unit_of(perturb: Any) -> float | None:
    """None if it makes no sense."""
    if isinstance(perturb, str):
        return UNITS.get(perturb)
    if isinstance(perturb, (int, float)) and not isinstance(perturb, bool) and 0 < perturb <= 1:
        return float(perturb)
    return None


class Perturbation:
    """Of one model, from now until `remove`.

    Only modules without parts are operations: a module around others returns what one of these has computed, or what
    it computes between them from values that are perturbed already. What hands on its input as it is, like Dropout
    of a model that is not trained, is left alone, too, so that a value is perturbed once and its copies stay copies.
    """

    def __init__(
        self, model: torch.nn.Module, unit: float, seed: int, trouble: Callable[[BaseException, str], None]
    ) -> None:
        self.unit = unit
        self.seed = seed
        self.outputs = 0  # tensors that were perturbed
        self._trouble = trouble  # is told what cannot be perturbed
        self._calls: dict[str, int] = {}
        parts = ((name, module) for name, module in model.named_modules() if not any(True for _ in module.children()))
        self._hooks = [module.register_forward_hook(self._hook(name)) for name, module in parts]

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _hook(self, name: str) -> Callable[[torch.nn.Module, Any, Any], Any]:
        def hook(_module: torch.nn.Module, args: tuple[Any, ...], output: Any) -> Any:
            number = self._calls[name] = self._calls.get(name, 0) + 1
            given = {each.data_ptr() for each in args if isinstance(each, torch.Tensor)}
            # The same for the same call, whatever other threads and modules do.
            seeds = (zlib.crc32(f"{self.seed} {name} {number} {index}".encode()) for index in range(2**31))
            try:
                return _changed(output, lambda tensor: self._perturbed(tensor, given, next(seeds)))
            except Exception as error:
                self._trouble(error, name)
                return output

        return hook

    def _perturbed(self, tensor: torch.Tensor, given: set[int], seed: int) -> torch.Tensor:
        if tensor.dtype not in _TYPES or tensor.is_sparse or tensor.numel() == 0 or tensor.data_ptr() in given:
            return tensor
        generator = torch.Generator(device=tensor.device).manual_seed(seed)
        wide = torch.promote_types(tensor.dtype, torch.float32)
        share = torch.rand(tensor.shape, generator=generator, device=tensor.device, dtype=wide) * 2 - 1
        values = tensor.to(wide)
        moved = (values + values * (share * self.unit)).to(tensor.dtype)
        self.outputs += 1
        return torch.where(torch.isfinite(moved), moved, tensor)


def _changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same with its tensors changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a namedtuple
        return type(value)(*(_changed(each, change) for each in value))
    if type(value) in (tuple, list):
        return type(value)(_changed(each, change) for each in value)
    if type(value) is dict:
        return {key: _changed(each, change) for key, each in value.items()}
    return value
