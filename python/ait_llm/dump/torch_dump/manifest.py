"""manifest.json: what was to be recorded in a process folder, and what became of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Container
from typing import Any

import torch

from ait_llm import _native
from ait_llm.dump._place import place
from ait_llm.dump.torch_dump import compiled
from ait_llm.dump.torch_dump.dump_config import TENSORS, DumpConfig
from ait_llm.dump.torch_dump.hindrance import EXPORTED, FX_TRACED, JIT_TRACED
from ait_llm.dump.torch_dump.perturbation import Perturbation
from ait_llm.dump.torch_dump.rounds import Rounds
from ait_llm.dump.torch_dump.trigger import Trigger

FILE = "manifest.json"
FORMAT = 1
_PROCESS_STARTED = round(time.time(), 3)
"""Together with its number it tells a process from all others."""
MAX_REASONS = 1000
"""Of different sentences about what was not stored; those beyond are counted together."""


class Round:
    """One call of the root module, and what was seen of it."""

    def __init__(self, number: int, wanted: bool, captured: bool = False) -> None:
        self.number = number
        self.wanted = wanted
        self.captured = captured  # it is no round yet: each replay of the graph is one
        self.started = False
        self.finished = False
        self.raised = False
        self.expected: list[str] = []
        self.seen: set[str] = set()
        self.calls: dict[str, list[int]] = {}  # of each module: its calls' places in the order of all calls
        self.module_calls = 0
        self.function_calls: dict[str, int] = {}
        self.table: _native.RoundTable | None = None  # of statistics, until the next round begins
        self.ended_print: int | None = None  # of the modules that are in `seen`, if the table has told

    def take_calls(self, before: Round | None, in_order: bool) -> None:
        """What the table has noted of calls. Rounds of a model are much alike, so that of the names most are known from
        the one before."""
        if self.table is None:
            return
        self.module_calls = self.table.module_calls
        if in_order:
            self.calls = self.table.calls()
        ended = self.table.ended_print
        if before is not None and before.ended_print == ended:
            self.seen = before.seen
        elif self.ended_print != ended:
            self.seen = set(self.table.ended())
        self.ended_print = ended

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

    def add(self, reason: str, what: str, count: int = 1) -> bool:
        """Whether it is new."""
        known = len(self._entries)
        if known >= MAX_REASONS and reason not in self._entries:
            reason = "other reasons"
        entry = self._entries.setdefault(reason, {"reason": reason, "count": 0, "first": what})
        entry["count"] += count
        return len(self._entries) > known

    def describe(self) -> list[dict[str, Any]]:
        return list(self._entries.values())


class Manifest:
    """Of one process folder."""

    def __init__(self, config: DumpConfig, root_type: str) -> None:
        self.config = config
        self.root_type = root_type
        self.started = time.time()
        self.rounds = Rounds()
        self.root_calls = 0
        self.not_stored = Reasons()
        self.stored_otherwise = Reasons()
        self.not_listened = Reasons()
        self.own_calls: list[str] = []  # modules whose class has a __call__ of its own
        self.errors = Reasons()
        self.compiled: dict[tuple[str, bool], int] = {}  # calls of compiled code: by backend, and whether recorded
        self.replays_unheard = 0  # of CUDA graphs that are older than the recording
        self.no_kernel = Reasons()  # by which a CUDA device would measure tensors
        self.measured: dict[str, int] = {}  # how many tensors were measured in which way
        self.replaced_by: str | None = None
        self.perturbation: Perturbation | None = None
        self.trigger: Trigger | None = None if config.when is None else Trigger(config)

    def count_statistics(self, ways: dict[str, int]) -> None:
        for way, count in ways.items():
            self.measured[way] = self.measured.get(way, 0) + count

    def note_compiled(self, backend: str, recorded: bool) -> bool:
        """Whether it is new."""
        key = (backend, recorded)
        self.compiled[key] = self.compiled.get(key, 0) + 1
        return self.compiled[key] == 1

    def _describe_compiled(self) -> list[dict[str, Any]]:
        described = []
        for (backend, recorded), calls in self.compiled.items():
            entry = {"backend": backend, "calls": calls, "modules_inside": "recorded" if recorded else "not recorded"}
            if recorded and backend == "inductor":
                entry["note"] = INDUCTOR
            described.append(entry)
        return described

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
            **place(),
            "command": sys.argv,
            "started": round(self.started, 3),
            "root": self.root_type,
            "config": self.config.as_text(),
            "root_calls": self.root_calls,
            **self.rounds.describe(),
            "never_ran_because": self._why_never(),
            "not_listened_to": self._not_listened_to(ended),
            "not_stored": self.not_stored.describe(),
            "stored_otherwise": self.stored_otherwise.describe(),
            "errors": self.errors.describe(),
            "tensors": _describe(tensors),
            "other_files": _describe(others),
        }
        if self.config.dump_statistics_mode != TENSORS:
            described["statistics"] = {**self.measured, "no_kernel_because": self.no_kernel.describe()}
        if self.compiled:
            described["compiled"] = self._describe_compiled()
        if self.replaced_by is not None:
            described["replaced_by"] = self.replaced_by
        if self.perturbation is not None:
            own = self.perturbation
            numbers = {"unit": own.unit, "seed": own.seed, "outputs": own.outputs}
            described["perturbed"] = {"by": self.config.perturb, **numbers}
        if self.trigger is not None:
            described["when"] = self.trigger.describe()
        return described

    def _what_is_missing(self, tensors: _native.Account, others: _native.Account) -> list[str]:
        """Of what was to be there, in sentences."""
        missing = []
        for account, name in ((tensors, "tensors"), (others, "other files")):
            if account.failed:
                first = f"; the first: {account.first_failure}" if account.first_failure else ""
                missing.append(f"{account.failed} of {account.submitted} {name} could not be written{first}")
        never_ran = self.rounds.never_ran + sum(len(each.never_ran()) for each in self.rounds)
        hindrances = self._hindrances()
        if hindrances and self.root_calls == 0:
            missing.append(f"no call of the model was heard of: {'; '.join(hindrances)}")
        elif hindrances and never_ran:
            expected = self.rounds.expected + sum(len(each.expected) for each in self.rounds)
            counted = f"{never_ran} of {expected} modules were not heard of in the rounds recorded"
            missing.append(f"{counted}: {'; '.join(hindrances)}")
        elif self.replays_unheard:
            missing.append(self._strange_graphs())
        elif self._graphs_were_captured():
            missing.append(REPLAYS)
        errors = self.errors.describe()
        if errors:
            count = sum(entry["count"] for entry in errors)
            first = f"the first, at {errors[0]['first']}: {errors[0]['reason']}"
            missing.append(f"{count} times ait itself could not go on; {first}")
        return missing

    def _graphs_were_captured(self) -> bool:
        return any(entry["reason"] == CUDA_GRAPH for entry in self.not_stored.describe())

    def _strange_graphs(self) -> str:
        count = self.replays_unheard
        return (
            f"CUDA graphs that were captured before the recording began were replayed {count} times, and what they "
            "computed was not recorded; begin to record before the capture"
        )

    def _not_listened_to(self, ended: bool) -> list[dict[str, Any]]:
        """Of modules with a __call__ of their own, those that were never heard of."""
        heard = self.rounds.heard.union(*(each.seen for each in self.rounds))
        unheard = [name for name in self.own_calls if name not in heard] if self.rounds or ended else []
        own = [{"reason": OWN_CALL, "count": len(unheard), "first": unheard[0]}] if unheard else []
        return self.not_listened.describe() + own

    def _why_never(self) -> list[str]:
        """Modules that a model just does not use need no reason."""
        if self.rounds and not self.rounds.never_ran and not any(each.never_ran() for each in self.rounds):
            return []
        never = ["the model was never called"] if self.root_calls == 0 else []
        return self._hindrances() or never

    def _hindrances(self) -> list[str]:
        """What is known to keep calls of modules from being heard."""
        reasons = []
        graphs = compiled.strange_graphs()
        if graphs:
            names = sorted({backend for (backend, recorded) in self.compiled if not recorded})
            reasons.append(
                f"torch.compile has compiled {graphs} graph(s) in this process that are not listened to"
                f"{''.join(f' ({name})' for name in names)}; record with TORCHDYNAMO_DISABLE=1"
            )
        if self._graphs_were_captured():
            reasons.append(REPLAYS)
        if self.replays_unheard:
            reasons.append(self._strange_graphs())
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
        "linked": account.linked,
        "linked_bytes": account.linked_bytes,
        "removed": account.removed,
        "submitted_bytes": account.submitted_bytes,
        "written_bytes": account.written_bytes,
        "first_failure": account.first_failure,
    }


CUDA_GRAPH = "called while a CUDA graph was captured"
REPLAYS = "CUDA graphs were captured, and their replay calls no module"
STRANGE_GRAPH = "computed by a CUDA graph that was captured before the recording began"
INDUCTOR = (
    "what goes into and comes out of a module is put into memory for the recording: inductor then fuses less, and "
    "results may differ in the last bits from those without recording"
)
SCRIPTED = "what a scripted module calls is called without Python"
OWN_CALL = "its class has a __call__ of its own, which may not lead to torch's"
