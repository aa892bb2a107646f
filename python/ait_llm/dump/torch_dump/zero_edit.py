"""Recording every model of a process, without a word from the script. Called by startup/sitecustomize.py."""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import torch

from ait_llm.dump.torch_dump import listening, module_tree, process, session, trigger
from ait_llm.dump.torch_dump.dump_config import DumpConfig

MAX_ROOTS = 64
"""A script that makes modules for every call would fill the disk with folders."""


class TokenRanges:
    """Rounds as pairs of first and last: "1,3,7,7"; "none" for no round at all."""

    def __init__(self, text: str, variable: str = "AIT_TORCH_TOKEN_RANGE") -> None:
        self._text = text
        self._pairs: list[tuple[int, int]] = []
        if text == "none":
            return
        try:
            numbers = [int(each) for each in text.split(",")]
        except ValueError:
            numbers = []
        self._pairs = list(zip(numbers[::2], numbers[1::2]))
        if not numbers or len(numbers) % 2 or any(not 0 <= first <= last for first, last in self._pairs):
            raise ValueError(f"{variable} must be pairs of first and last round such as 1,3, not {text!r}")

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and any(first <= number <= last for first, last in self._pairs)

    def __str__(self) -> str:
        return self._text


def config_of(environ: Mapping[str, str]) -> DumpConfig:
    def optional(name: str) -> int | None:
        text = environ.get(name, "")
        try:
            return int(text) if text else None
        except ValueError:
            raise ValueError(f"{name} must be an integer, not {text!r}") from None

    def integer(name: str, default: int) -> int:
        found = optional(name)
        return default if found is None else found

    config = DumpConfig(
        os.path.abspath(environ["AIT_TORCH_DUMP_PATH"]),  # the script may go to another folder before it calls a model
        tensor_part=integer("AIT_TORCH_TENSOR_PART", 2),
        device_id=optional("AIT_TORCH_DEVICE_ID"),
        dump_statistics_mode=integer("AIT_TORCH_STATISTICS", 0),
        mode=(environ.get("AIT_TORCH_MODE") or "module").split(","),
        layer_name=environ.get("AIT_TORCH_LAYER_NAME") or None,
        dump_weight=bool(integer("AIT_TORCH_WEIGHTS", 0)),
        seed=optional("AIT_TORCH_SEED"),
        store_as=environ.get("AIT_TORCH_STORE_AS") or None,
        statistics_per_module=bool(integer("AIT_TORCH_STATISTICS_PER_MODULE", 0)),
        dump_sketch=bool(integer("AIT_TORCH_SKETCH", 0)),
    )
    when = environ.get("AIT_TORCH_WHEN") or None
    keep = integer("AIT_TORCH_KEEP", trigger.DEFAULT_KEEP)
    fault = trigger.fault(when, keep, config)
    if fault is not None:
        raise ValueError(f"AIT_TORCH_WHEN, AIT_TORCH_KEEP and AIT_TORCH_SKETCH: {fault}")
    trigger.prepare(config, when, keep if when is not None else 0)
    text = environ.get("AIT_TORCH_TOKEN_RANGE") or ("all" if when is not None else "0,0")
    config.token_range = trigger.AllRounds() if text == "all" else TokenRanges(text)
    config.class_names = [each for each in environ.get("AIT_TORCH_MODULE_LIST", "").split(",") if each]
    return config


class Roots:
    """The outermost modules called so far."""

    def __init__(self, config: DumpConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._members: dict[int, Any] = {}  # modules of all roots, by id; weak references
        self._sessions: list[session.Session] = []
        self._too_many = False

    def renew_lock(self) -> None:
        """In a forked child, where nobody would ever release it."""
        self._lock = threading.Lock()

    def see(self, module: torch.nn.Module) -> None:
        if self._knows(module) or self._too_many:
            return
        if vars(module).get("_is_replica") or _is_stateless_leaf(module):
            return
        with self._lock:
            if not self._knows(module):  # another thread may have been quicker
                self._add(module)

    def _knows(self, module: torch.nn.Module) -> bool:
        known = self._members.get(id(module))
        return known is not None and known() is module

    def _add(self, module: torch.nn.Module) -> None:
        if len(self._sessions) == MAX_ROOTS:
            self._too_many = True
            many = RuntimeError(f"only the first {MAX_ROOTS} models of this process are recorded")
            self._sessions[-1].trouble(many, type(module).__name__)  # so that a manifest says it, too
            return
        inside = list(module_tree.all_modules(module))
        parts = {id(each) for each in inside}
        for other in self._sessions:
            # Called on its own before the model that it is a part of: an encoder, an embedding.
            if not other.closed and other.model is not None and id(other.model) in parts:
                other.close(replaced_by=type(module_tree.uncompiled(module)).__name__)
                other.step_aside()
        self._sessions.append(session.begin(module, self._config))
        for each in inside:
            self._members[id(each)] = weakref.ref(each)


def _is_stateless_leaf(module: torch.nn.Module) -> bool:
    """A loss or an activation that a script calls itself is no model."""
    kinds = (module_tree.parts_of(module, kind) for kind in ("_modules", "_parameters", "_buffers"))
    return all(part is None for kind in kinds for part in kind.values())


def start(environ: Mapping[str, str]) -> None:
    """From now on each outermost module call of a thread is recorded."""
    roots = Roots(config_of(environ))
    os.register_at_fork(after_in_child=roots.renew_lock)
    listening.watch(functools.partial(_guarded, roots.see))
    show_warnings()


def _guarded(function: Any, module: torch.nn.Module) -> None:
    try:
        function(module)
    except Exception as error:
        process.say(f"ait: {type(module).__name__} is not recorded: {type(error).__name__}: {error}")


def show_warnings() -> None:
    """What ait_llm has to say is for the person who started the recording, however the script sets up its logging."""
    process.speak_past_the_script()
    logger = logging.getLogger("ait_llm")
    if not logger.handlers and sys.__stderr__ is not None:
        logger.addHandler(logging.StreamHandler(sys.__stderr__))
        logger.propagate = False
