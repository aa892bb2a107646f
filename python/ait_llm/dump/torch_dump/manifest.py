"""manifest.json: what was to be recorded in a process folder, and what became of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Container
from typing import Any

import torch

from ait_llm import _native
from ait_llm.dump.torch_dump.dump_config import DumpConfig
from ait_llm.dump.torch_dump.perturbation import Perturbation

FILE = "manifest.json"
FORMAT = 1
_PROCESS_STARTED = round(time.time(), 3)
"""Together with its number it tells a process from all others."""
MAX_REASONS = 1000
"""Of different sentences about what was not stored; those beyond are counted together."""


class Round:
    """One call of the root module, and what was seen of it."""

    def __init__(self, number: int, wanted: bool) -> None:
        self.number = number
        self.wanted = wanted
        self.started = False
        self.finished = False
        self.raised = False
        self.expected: list[str] = []
        self.seen: set[str] = set()
        self.calls: dict[str, list[int]] = {}  # of each module: its calls' places in the order of all calls
        self.module_calls = 0
        self.function_calls: dict[str, int] = {}

    def suffix_of_module(self, name: str) -> str:
        """What keeps the folder of this call of a module apart from those before."""
        calls = self.calls.setdefault(name, [])
        calls.append(self.module_calls)
        self.module_calls += 1
        return f"#{len(calls) - 1}" if len(calls) > 1 else ""

    def suffix_of_function(self, name: str, taken: Container[str]) -> str:
        """The same for a function; a module may be called like one."""
        before = self.function_calls.get(name, 0)
        if before == 0 and name in taken:
            before = 1
        while before and f"{name}.{before}" in taken:
            before += 1
        self.function_calls[name] = before + 1
        return f".{before}" if before else ""

    def never_ran(self) -> list[str]:
        return [name for name in self.expected if name not in self.seen]

    def describe(self) -> dict[str, Any]:
        never_ran = self.never_ran()
        state = "raised" if self.raised else "finished" if self.finished else "under way" if self.started else "no call"
        return {
            "state": state,
            "expected": len(self.expected),
            "seen": len(self.expected) - len(never_ran),
            "calls": self.module_calls,
            "function_calls": sum(self.function_calls.values()),
            "never_ran": never_ran,
        }


class Reasons:
    """Sentences, how often each was to be said, and of what first."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, Any]] = {}

    def add(self, reason: str, what: str) -> bool:
        """Whether it is new."""
        known = len(self._entries)
        if known >= MAX_REASONS and reason not in self._entries:
            reason = "other reasons"
        entry = self._entries.setdefault(reason, {"reason": reason, "count": 0, "first": what})
        entry["count"] += 1
        return len(self._entries) > known

    def describe(self) -> list[dict[str, Any]]:
        return list(self._entries.values())


class Manifest:
    """Of one process folder."""

    def __init__(self, config: DumpConfig, root_type: str) -> None:
        self.config = config
        self.root_type = root_type
        self.started = time.time()
        self.rounds: list[Round] = []
        self.root_calls = 0
        self.not_stored = Reasons()
        self.stored_otherwise = Reasons()
        self.not_listened = Reasons()
        self.own_calls: list[str] = []  # modules whose class has a __call__ of its own
        self.errors = Reasons()
        self.replaced_by: str | None = None
        self.perturbation: Perturbation | None = None

    def describe(self, device: str, tensors: _native.Account, others: _native.Account, ended: bool) -> dict[str, Any]:
        missing = self._what_is_missing(tensors, others)
        described = {
            "format": FORMAT,
            "tool": f"ait_llm {_native.__version__}",
            "torch": str(torch.__version__),
            "state": "recording" if not ended else "incomplete" if missing else "complete",
            "incomplete_because": missing,
            "pid": os.getpid(),
            "process_started": _PROCESS_STARTED,
            "device": device,
            "rank": _number("RANK"),
            "local_rank": _number("LOCAL_RANK"),
            "world_size": _number("WORLD_SIZE"),
            "command": sys.argv,
            "started": round(self.started, 3),
            "root": self.root_type,
            "config": self.config.as_text(),
            "root_calls": self.root_calls,
            "rounds": {str(each.number): each.describe() for each in self.rounds},
            "never_ran_because": self._why_never(),
            "not_listened_to": self._not_listened_to(ended),
            "not_stored": self.not_stored.describe(),
            "stored_otherwise": self.stored_otherwise.describe(),
            "errors": self.errors.describe(),
            "tensors": _describe(tensors),
            "other_files": _describe(others),
        }
        if self.replaced_by is not None:
            described["replaced_by"] = self.replaced_by
        if self.perturbation is not None:
            own = self.perturbation
            numbers = {"unit": own.unit, "seed": own.seed, "outputs": own.outputs}
            described["perturbed"] = {"by": self.config.perturb, **numbers}
        return described

    def _what_is_missing(self, tensors: _native.Account, others: _native.Account) -> list[str]:
        """Of what was to be there, in sentences."""
        missing = []
        for account, name in ((tensors, "tensors"), (others, "other files")):
            if account.failed:
                first = f"; the first: {account.first_failure}" if account.first_failure else ""
                missing.append(f"{account.failed} of {account.submitted} {name} could not be written{first}")
        never_ran = sum(len(each.never_ran()) for each in self.rounds)
        hindrances = self._hindrances()
        if hindrances and self.root_calls == 0:
            missing.append(f"no call of the model was heard of: {'; '.join(hindrances)}")
        elif hindrances and never_ran:
            expected = sum(len(each.expected) for each in self.rounds)
            counted = f"{never_ran} of {expected} modules were not heard of in the rounds recorded"
            missing.append(f"{counted}: {'; '.join(hindrances)}")
        errors = self.errors.describe()
        if errors:
            count = sum(entry["count"] for entry in errors)
            first = f"the first, at {errors[0]['first']}: {errors[0]['reason']}"
            missing.append(f"{count} times ait itself could not go on; {first}")
        return missing

    def _not_listened_to(self, ended: bool) -> list[dict[str, Any]]:
        """Of modules with a __call__ of their own, those that were never heard of."""
        heard = {name for each in self.rounds for name in each.seen}
        unheard = [name for name in self.own_calls if name not in heard] if self.rounds or ended else []
        own = [{"reason": OWN_CALL, "count": len(unheard), "first": unheard[0]}] if unheard else []
        return self.not_listened.describe() + own

    def _why_never(self) -> list[str]:
        """Modules that a model just does not use need no reason."""
        if self.rounds and not any(each.never_ran() for each in self.rounds):
            return []
        never = ["the model was never called"] if self.root_calls == 0 else []
        return self._hindrances() or never

    def _hindrances(self) -> list[str]:
        """What is known to keep calls of modules from being heard."""
        reasons = []
        dynamo = sys.modules.get("torch._dynamo")
        graphs = 0 if dynamo is None else _graphs(dynamo)
        if graphs:
            reasons.append(
                f"torch.compile has compiled {graphs} graph(s) in this process, and what it compiles cannot be "
                "listened to; record with TORCHDYNAMO_DISABLE=1"
            )
        if any(entry["reason"] == CUDA_GRAPH for entry in self.not_stored.describe()):
            reasons.append("CUDA graphs were captured, and their replay calls no module")
        traced = any(entry["reason"] in (JIT_TRACED, FX_TRACED, EXPORTED) for entry in self.not_stored.describe())
        if traced and self.root_calls == 0:  # else there are calls beside those
            reasons.append("torch traced or exported the model, which is left alone meanwhile; see not_stored")
        if self._not_listened_to(ended=True):
            reasons.append("some modules cannot be listened to; see not_listened_to")
        return reasons


def _describe(account: _native.Account) -> dict[str, Any]:
    return {
        "submitted": account.submitted,
        "written": account.written,
        "failed": account.failed,
        "submitted_bytes": account.submitted_bytes,
        "written_bytes": account.written_bytes,
        "first_failure": account.first_failure,
    }


CUDA_GRAPH = "called while a CUDA graph was captured"
SCRIPTED = "what a scripted module calls is called without Python"
OWN_CALL = "its class has a __call__ of its own, which may not lead to torch's"
JIT_TRACED = "called while torch.jit traced the model"
FX_TRACED = "called while torch.fx traced the model"
EXPORTED = "called while torch.export looked at the model"


def _graphs(dynamo: Any) -> int:
    counters = getattr(getattr(dynamo, "utils", None), "counters", {})
    return int(counters["stats"]["unique_graphs"]) if "stats" in counters else 0


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else None
