"""Looks for overflows while a training runs."""

from __future__ import annotations

import logging
import math
import os
from typing import Any

import torch

import ait_llm
from ait_llm._folders import make_folders
from ait_llm.api_check import apis
from ait_llm.api_check.classes import asks, changes_inputs, is_uninitialised
from ait_llm.api_check.files import BACKWARD, FORWARD, STACK, Files, check_folder
from ait_llm.api_check.listening import Listening, unheard
from ait_llm.api_check.measuring import Measuring
from ait_llm.api_check.recording import new_node, nodes_of
from ait_llm.api_check.stacks import stack_texts
from ait_llm.api_check.values import Describer
from ait_llm.dump.torch_dump.store import NotStorable, plain, unobserved

_logger = logging.getLogger("ait_llm")

# Their largest values count as well: devices that do not know infinity stop there.
_SATURATING = (torch.float16, torch.bfloat16, torch.float32)
_LIMITS = tuple(torch.finfo(each).max for each in _SATURATING)


def overflows(value: Any, saturation: bool = True, depth: int = 0) -> bool:
    """Whether an infinity, a NaN or, with `saturation`, the largest value of its type is in it."""
    if isinstance(value, torch.Tensor):
        return _tensor_overflows(value, saturation)
    if isinstance(value, float):
        return not math.isfinite(value) or (saturation and abs(value) in _LIMITS)
    if depth < 16 and isinstance(value, (list, tuple)):
        return any(overflows(each, saturation, depth + 1) for each in value)
    if depth < 16 and isinstance(value, dict):
        return any(overflows(each, saturation, depth + 1) for each in value.values())
    return False


def _tensor_overflows(tensor: torch.Tensor, saturation: bool) -> bool:
    if not tensor.is_floating_point() and not tensor.is_complex():
        return False
    with torch.no_grad():
        try:
            dense, _ = plain(tensor.detach())
        except NotStorable:
            return False
        if dense.numel() == 0:
            return False
        bad = ~dense.isfinite()
        if saturation and dense.dtype in _SATURATING:
            bad |= dense.abs() >= torch.finfo(dense.dtype).max
        return bool(bad.any())


class _Begun:
    __slots__ = ("api", "args", "kwargs", "nodes", "stack")

    def __init__(self, api: apis.Api, args: Any, kwargs: Any, nodes: list[Any], stack: list[str]) -> None:
        self.api = api
        self.args = args  # as they were before the call
        self.kwargs = kwargs
        self.nodes = nodes
        self.stack = stack


class Watch:
    """Of one process."""

    def __init__(self, model: Any, overflow_nums: int, dump_path: str) -> None:
        if not isinstance(overflow_nums, int) or isinstance(overflow_nums, bool) or overflow_nums in (0,):
            raise ValueError(f"overflow_nums must be a number of overflows, or -1 for no end, not {overflow_nums!r}")
        check_folder(dump_path)
        self._limit = overflow_nums
        self._folder = os.path.abspath(dump_path)
        self._rank = _device_index(model)
        self._counters: dict[apis.Api, int] = {}
        self._files: Files | None = None
        self._listening = Listening(self)
        self._on = True
        self.count = 0

    def start(self) -> None:
        self._listening.start()

    def remove(self) -> None:
        self._on = False
        self._listening.stop()
        if self._files is not None:
            self._files.flush()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    # As listening.Listener

    def begin(self, api: apis.Api, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Begun | None:
        if not self._on or asks(api) or is_uninitialised(api):
            return None
        with unobserved():
            nodes = nodes_of((args, kwargs))
            if changes_inputs(api, list(args), kwargs) or "out" in kwargs:
                args, kwargs = _copied(args), _copied(kwargs)
        return _Begun(api, args, kwargs, nodes, stack_texts())

    def end(self, begun: _Begun, output: Any) -> None:
        index = self._counters.get(begun.api, 0)
        self._counters[begun.api] = index + 1
        with unobserved():
            found = overflows(output) and not overflows((begun.args, begun.kwargs))
        key = f"{begun.api.group}_{begun.api.name}_{index}"
        if found:
            self._record_forward(f"{key}_forward", begun)
        node = new_node(output, begun.nodes)
        if node is not None:
            node.register_hook(lambda inputs, outputs: self._arrived(f"{key}_backward", inputs, outputs))
        if found:
            self._stop_behind_the_last()

    def _arrived(self, key: str, gradients: tuple[Any, ...], incoming: tuple[Any, ...]) -> None:
        """At a node of autograd: what it gave for what it was given."""
        if not self._on:
            return
        with unheard(), torch.no_grad(), unobserved():
            found = overflows(gradients) and not overflows(incoming)
            if found:
                describer = Describer(Measuring())
                entry = [describer.value(each) for each in incoming]
                self._found(key)
                self._file.add(BACKWARD, key, entry)
        if found:
            self._stop_behind_the_last()

    # Files

    @property
    def _file(self) -> Files:
        if self._files is None:
            self._files = Files(self._folder)
        return self._files

    def _record_forward(self, key: str, begun: _Begun) -> None:
        self._found(key)
        folder = os.path.join(self._folder, "forward_real_data", f"rank{self._rank}")
        make_folders(folder)
        numbers = iter(range(1 << 62))

        def store(tensor: torch.Tensor, _: int) -> str:
            path = os.path.join(folder, f"{key}.{next(numbers)}.npy")
            home = tensor.detach().cpu()
            ait_llm.save(path, home.float() if home.dtype == torch.bfloat16 else home)
            return path

        with unobserved():
            kwargs = {name: each for name, each in begun.kwargs.items() if name != "memory_format"}
            is_index = begun.api.name.endswith("item__")
            entry = Describer(None, store).arguments(tuple(begun.args), kwargs, is_index)
            self._file.add(STACK, key, begun.stack)
            self._file.add(FORWARD, key, entry)

    def _found(self, key: str) -> None:
        self.count += 1
        _logger.warning(
            "ait_llm: overflow number %d: the inputs of %s are finite and its outputs are not", self.count, key
        )

    def _stop_behind_the_last(self) -> None:
        if self._limit != -1 and self.count >= self._limit:
            self.remove()
            raise ValueError(f"[overflow {self.count} times]: dump file is saved in '{self._file.path(FORWARD)}'.")


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return [_copied(each) for each in value]
    return {name: _copied(each) for name, each in value.items()} if isinstance(value, dict) else value


def _device_index(model: Any) -> int:
    parameters = getattr(model, "parameters", None)
    if parameters is None:
        return 0
    return next((each.device.index or 0 for each in parameters()), 0)
