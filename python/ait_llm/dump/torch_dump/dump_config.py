"""What is to be recorded of a torch model."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Container, Sequence
from typing import Any, Callable

_logger = logging.getLogger("ait_llm")

INPUTS, OUTPUTS, BOTH = 0, 1, 2
"""Values of tensor_part."""
TENSORS, STATISTICS, TENSORS_AND_STATISTICS = 0, 1, 2
"""Values of dump_statistics_mode."""


class FirstRound(list[int]):
    """The token_range of who has asked for none."""


class DumpConfig:
    """What `register_hook` records, and where.

    dump_path: folder in which `ait_dump/torch_tensors` is made; the current one if not given.
    token_range: the rounds to record, as a list; a round is one call of the model. Only the first if not given.
    module_list: classes of modules to record, subclasses included; all if empty.
    tensor_part: 0 inputs, 1 outputs, 2 both.
    device_id: record only if the model is on this device; a model on the CPU is recorded in any case.
    api_list: with mode "api", the functions to record; all if empty.
    mode: "module", "api" (functions of torch called inside the model) or a list of both.
    dump_statistics_mode: 0 tensors, 1 statistics in their place, 2 both.
    statistics_per_module: a table of statistics for each call of a module, not one for each round.
    dump_sketch: beside the statistics a sketch of each tensor, from which distances can be estimated.
    layer_name: record only what has this full name, in which `*` stands for anything: "root.model.layers.0.*".
    store_as: "bf16" stores float32 tensors as bfloat16, rounded to the nearest, in half the space; None: as they are.
    dump_weight: also save the parameters, once, when the hooks are registered.
    seed: switch deterministic computing on and seed every generator when the hooks are registered.

    Arguments that make no sense are a ValueError that names them.
    """

    def __init__(
        self,
        dump_path: str | None = None,
        token_range: list[int] | None = None,
        module_list: list[type] | None = None,
        tensor_part: int = BOTH,
        device_id: int | None = None,
        *,
        api_list: list[Callable[..., Any]] | None = None,
        mode: str | list[str] = "module",
        dump_statistics_mode: int = TENSORS,
        layer_name: str | None = None,
        dump_weight: bool = False,
        seed: int | None = None,
        store_as: str | None = None,
        statistics_per_module: bool = False,
        dump_sketch: bool = False,
    ) -> None:
        self.dump_path = "." if dump_path is None or dump_path == "" else dump_path
        self.token_range: Container[int] = FirstRound([0]) if token_range is None or token_range == [] else token_range
        self.module_list = [] if module_list is None else module_list
        self.tensor_part = tensor_part
        self.device_id = device_id
        self.api_list = [] if api_list is None else api_list
        self.mode = [mode] if isinstance(mode, str) else mode
        self.dump_statistics_mode = dump_statistics_mode
        self.layer_name = layer_name
        self.dump_weight = dump_weight
        self.seed = seed
        self.store_as = store_as
        self.statistics_per_module = statistics_per_module
        self.dump_sketch = dump_sketch
        self.class_names: Sequence[str] = ()  # how names of classes begin, where there are no classes at hand
        self.perturb: str | float | None = None  # as register_hook was given it, as the next two
        self.when: str | None = None
        self.keep = 0
        self._check()

    def _check(self) -> None:
        for name, fault in self._faults():
            sentence = f"{name} {fault}, not {getattr(self, name)!r:.200}"
            _logger.error("DumpConfig: %s", sentence)
            raise ValueError(f"Invalid args of DumpConfig. {sentence}")

    def _faults(self) -> Any:
        if not isinstance(self.dump_path, (str, os.PathLike)) or "\0" in os.fspath(self.dump_path):
            yield "dump_path", "must be the path of a folder"
        elif not _is_writable(os.path.abspath(self.dump_path)):
            yield "dump_path", "must be a folder that can be written to"
        if not _is_list(self.token_range, lambda each: _is_integer(each) and each >= 0):
            yield "token_range", "must be a list of integers, 0 and above"
        if not _is_list(self.module_list, _is_module_class):
            yield "module_list", "must be a list of classes derived from torch.nn.Module"
        if not _is_integer(self.tensor_part) or self.tensor_part not in (INPUTS, OUTPUTS, BOTH):
            yield "tensor_part", "must be 0 (inputs), 1 (outputs) or 2 (both)"
        if self.device_id is not None and (not _is_integer(self.device_id) or self.device_id < 0):
            yield "device_id", "must be the number of a device or None"
        if not _is_list(self.api_list, callable):
            yield "api_list", "must be a list of functions"
        if not _is_list(self.mode, lambda each: each in ("module", "api")) or not self.mode:
            yield "mode", 'must be "module", "api" or a list of both'
        if not _is_integer(self.dump_statistics_mode) or self.dump_statistics_mode not in (0, 1, 2):
            yield "dump_statistics_mode", "must be 0 (tensors), 1 (statistics) or 2 (both)"
        if self.layer_name is not None and (not isinstance(self.layer_name, str) or not self.layer_name):
            yield "layer_name", "must be a name in which * stands for anything, or None"
        if self.store_as not in (None, "bf16"):
            yield "store_as", 'must be "bf16" or None'
        if not isinstance(self.dump_weight, bool):
            yield "dump_weight", "must be True or False"
        if not isinstance(self.statistics_per_module, bool):
            yield "statistics_per_module", "must be True or False"
        if not isinstance(self.dump_sketch, bool):
            yield "dump_sketch", "must be True or False"
        if self.seed is not None and (not _is_integer(self.seed) or not 0 <= self.seed < 2**32):
            yield "seed", "must be an integer from 0 to 4294967295 or None"

    def as_text(self) -> dict[str, Any]:
        """For the manifest: nothing but texts, numbers and lists."""
        described = dict(vars(self))
        described["class_names"] = list(self.class_names)
        described["dump_path"] = os.path.abspath(self.dump_path)
        described["module_list"] = [getattr(each, "__name__", str(each)) for each in self.module_list]
        described["api_list"] = [getattr(each, "__name__", str(each)) for each in self.api_list]
        if not isinstance(self.token_range, list):
            described["token_range"] = str(self.token_range)
        return described

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DumpConfig) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DumpConfig({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: Any, is_member: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(is_member(each) for each in value)


def _is_module_class(value: Any) -> bool:
    torch = sys.modules.get("torch")  # without it nobody can have such a class
    return torch is not None and isinstance(value, type) and issubclass(value, torch.nn.Module)


def _is_writable(path: str) -> bool:
    """Whether a folder is there, or can be made, that this process may write to."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)
