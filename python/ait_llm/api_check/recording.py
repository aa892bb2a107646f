"""Recording calls: their arguments before they run, where they come from, and the gradients that reach them later."""

from __future__ import annotations

import logging
import threading
from typing import Any

import torch

from ait_llm.api_check import apis
from ait_llm.api_check.att_names import NAMES
from ait_llm.api_check.classes import asks
from ait_llm.api_check.config import ATT, Config
from ait_llm.api_check.files import BACKWARD, FORWARD, STACK, Files
from ait_llm.api_check.listening import unheard
from ait_llm.api_check.measuring import MAX_PENDING, Measuring
from ait_llm.api_check.stacks import stack_texts
from ait_llm.api_check.values import Describer
from ait_llm.dump.torch_dump.store import unobserved

_logger = logging.getLogger("ait_llm")

MAX_DEPTH = 16
"""At which tensors are looked for in arguments and results."""


_AUTOCAST_DEVICES = ("cpu", "cuda") + (("npu",) if hasattr(torch, "npu") else ())


class _Begun:
    """A call that has not returned."""

    __slots__ = ("entry", "key", "nodes", "stack")

    def __init__(self, key: str, entry: Any, nodes: list[Any], stack: list[str]) -> None:
        self.key = key
        self.entry = entry
        self.nodes = nodes  # of autograd, that are there before it
        self.stack = stack


class Recording:
    """What the calls of one process lead to. Nothing that goes wrong here is allowed to reach the script."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.RLock()
        self._counters: dict[apis.Api, int] = {}
        self._measuring = Measuring()
        self._queue: list[tuple[str, str, Any]] = []  # waits for numbers from a device
        self._files: Files | None = None
        self._hooks: list[Any] = []
        self._troubled = False
        self.on = False

    @property
    def files(self) -> Files | None:
        return self._files

    def begin_files(self, folder: str, iteration: int) -> None:
        """What is recorded from now on goes there. Raises an OSError."""
        if self._files is None or self._files.folder != folder:
            self.settle()
            self._files = Files(folder)
            self._files.write_about(self._config.error_data_path, iteration)

    def settle(self) -> None:
        """Waits until everything recorded is on disk, and takes back what hangs on the graph of a backward pass."""
        with self._lock:
            hooks, self._hooks = self._hooks, []
            for hook in hooks:
                hook.remove()
            if self._files is None:
                return
            with unobserved():
                self._write_queue()
            failure = self._files.flush()
        if failure is not None:
            self._trouble("real data", OSError(failure))

    # As listening.Listener

    def begin(self, api: apis.Api, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Begun | None:
        if not self.on or not self._wants(api):
            return None
        try:
            stack = stack_texts()
            with unobserved(), self._lock:
                index = self._counters.get(api, 0)
                self._counters[api] = index + 1
                key = str(apis.Call(api, index))
                entry = self._describer(FORWARD, key, asks(api)).arguments(args, kwargs, api.name.endswith("item__"))
                autocast = _autocast()
                if autocast is not None:
                    entry["autocast"] = str(autocast)
                return _Begun(key, entry, nodes_of((args, kwargs)), stack)
        except Exception as error:
            self._trouble(str(api), error)
            return None

    def end(self, begun: _Begun, output: Any) -> None:
        try:
            with unobserved(), self._lock:
                self._add(STACK, begun.key, begun.stack)
                self._add(FORWARD, begun.key, begun.entry)
            node = new_node(output, begun.nodes)
            if node is not None:
                self._follow(begun.key, node)
        except Exception as error:
            self._trouble(begun.key, error)

    def _wants(self, api: apis.Api) -> bool:
        if self._config.api_list == ATT and api.name not in NAMES[api.group]:
            return False
        return not self._config.white_list or api.name in self._config.white_list

    def _describer(self, kind: str, key: str, is_question: bool = False) -> Describer:
        files = self._files
        if self._config.real_data and files is not None and not is_question:
            return Describer(self._measuring, lambda tensor, number: files.store(kind, key, number, tensor))
        return Describer(None if is_question else self._measuring)

    def _follow(self, key: str, node: Any) -> None:
        """Records the gradients that arrive at a node of autograd, the first time."""
        fired: list[bool] = []

        def arrived(gradients: tuple[Any, ...]) -> None:
            if self.on and not fired:
                fired.append(True)
                try:
                    with unheard(), unobserved(), self._lock:
                        describer = self._describer(BACKWARD, key)
                        self._add(BACKWARD, key, [describer.value(each) for each in gradients])
                except Exception as error:
                    self._trouble(key, error)

        if hasattr(node, "register_prehook"):
            hook = node.register_prehook(lambda gradients: arrived(gradients))
        else:  # torch 1.13
            hook = node.register_hook(lambda _, gradients: arrived(gradients))
        self._hooks.append(hook)

    def _add(self, kind: str, key: str, value: Any) -> None:
        if self._files is None:
            return
        self._queue.append((kind, key, value))
        if self._measuring.pending == 0 or self._measuring.pending >= MAX_PENDING:
            self._write_queue()

    def _write_queue(self) -> None:
        self._measuring.settle()
        queue, self._queue = self._queue, []
        for kind, key, value in queue:
            if self._files is not None:
                self._files.add(kind, key, value)

    def _trouble(self, what: str, error: Exception) -> None:
        """Said once: whatever it is, it will come again."""
        if not self._troubled:
            self._troubled = True
            _logger.warning("ait_llm: %s cannot be recorded: %s: %s", what, type(error).__name__, error)


def _autocast() -> torch.dtype | None:
    """The type that functions turn their inputs into by themselves, where they do."""
    if not hasattr(torch, "get_autocast_dtype"):  # torch 2.3 and older
        if torch.is_autocast_enabled():
            return torch.get_autocast_gpu_dtype()
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    for kind in _AUTOCAST_DEVICES:
        if torch.is_autocast_enabled(kind):
            return torch.get_autocast_dtype(kind)
    return None


def tensors_of(value: Any, depth: int = 0) -> Any:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_of(each, depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, dict):
        for each in value.values():
            yield from tensors_of(each, depth + 1)


def nodes_of(values: Any) -> list[Any]:
    return [tensor.grad_fn for tensor in tensors_of(values) if tensor.requires_grad and tensor.grad_fn is not None]


def new_node(output: Any, before: list[Any]) -> Any:
    """The node of the first tensor that has one. A function that hands back what it was given has made none."""
    node = next(iter(nodes_of(output)), None)
    return None if any(node is other for other in before) else node
