"""Which modules and functions a configuration asks for."""

from __future__ import annotations

import re
from typing import Any, Callable

import torch

from ait_llm.dump.torch_dump.dump_config import DumpConfig


class Selection:
    """Of one configuration, worked out once."""

    def __init__(self, config: DumpConfig) -> None:
        self._modules = "module" in config.mode
        self._classes: tuple[type, ...] = tuple(config.module_list)
        self._class_names = tuple(each.lower() for each in config.class_names)
        self._apis = {api_name(each) for each in config.api_list}
        pieces = (config.layer_name or "*").split("*")
        self._name = re.compile(".*".join(re.escape(piece) for piece in pieces), re.DOTALL)

    def wants_module(self, module: torch.nn.Module, name: str) -> bool:
        return self._modules and self._wants_class(type(module)) and self.wants_name(name)

    def wants_name(self, name: str) -> bool:
        return self._name.fullmatch(name) is not None

    def wants_api(self, name: str) -> bool:
        return not self._apis or name in self._apis

    def _wants_class(self, kind: type) -> bool:
        if self._classes and not issubclass(kind, self._classes):
            return False
        return not self._class_names or any(
            base.__name__.lower().startswith(self._class_names) for base in kind.__mro__
        )


def api_name(function: Callable[..., Any]) -> str:
    """Functions, methods and operators that do the same have the same name: matmul for torch.matmul and a @ b."""
    name = getattr(function, "__name__", "")
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name
