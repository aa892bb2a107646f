"""register_hook(when=…): statistics of all rounds, and tensors only of those around which something happens.

Tensors of every round are written as ever, and taken away again when the round falls out of the ring of the last few
without a condition having held: see src/watch/trigger.h.
"""

from __future__ import annotations

from typing import Any

from ait_llm import _native
from ait_llm.dump.torch_dump.dump_config import (
    INPUTS,
    STATISTICS,
    TENSORS,
    TENSORS_AND_STATISTICS,
    DumpConfig,
    FirstRound,
)

DEFAULT_KEEP = 2
MAX_KEEP = _native.Trigger.max_keep
MAX_STRETCHES = 1000
"""Of rounds with tensors, in the manifest."""


class AllRounds:
    """What is watched if nobody says which rounds."""

    def __contains__(self, number: object) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AllRounds)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "all"


def fault(when: Any, keep: Any, config: DumpConfig) -> str | None:
    """What is wrong with the arguments, in one sentence."""
    if not isinstance(keep, int) or isinstance(keep, bool) or not 0 <= keep <= MAX_KEEP:
        return f"keep must be a number of rounds from 0 to {MAX_KEEP}, not {keep!r:.200}"
    if when is None:
        if config.dump_sketch and config.dump_statistics_mode == TENSORS:
            return "dump_sketch is kept beside statistics; ask for these with dump_statistics_mode 1 or 2"
        return None
    if not isinstance(when, str):
        return f'when must be a list of conditions such as "nan,spike=10", not {when!r:.200}'
    if config.dump_statistics_mode == STATISTICS:
        return "when keeps tensors of some rounds, and dump_statistics_mode 1 asks for none; leave it at 0"
    try:
        _native.Trigger(when, keep)
    except Exception as error:
        return f"when: {error}"
    return None


def prepare(config: DumpConfig, when: str | None, keep: int) -> None:
    """Changes a configuration of our own to one that is watched."""
    config.when, config.keep = when, keep
    if when is None:
        return
    config.dump_statistics_mode = TENSORS_AND_STATISTICS
    if isinstance(config.token_range, FirstRound):
        config.token_range = AllRounds()


class Trigger:
    """Of one recording."""

    def __init__(self, config: DumpConfig) -> None:
        assert config.when is not None
        self._native = _native.Trigger(config.when, config.keep)
        self._config = config
        # Masks are full of infinities: what counts is what was computed.
        self._kind = "input" if config.tensor_part == INPUTS else "output"

    def see(self, table: _native.RoundTable) -> None:
        """The numbers of a round."""
        self._native.see(table, self._kind)

    def end_round(self, number: int) -> list[int]:
        """The rounds whose tensors are to go."""
        return self._native.end_round(number)

    def finish(self) -> list[int]:
        return self._native.finish()

    def describe(self) -> dict[str, Any]:
        kept = self._native.kept
        described = {
            "conditions": self._config.when,
            "keep": self._config.keep,
            "rounds_watched": self._native.rounds_seen,
            "held": [_describe(event) for event in self._native.events],
            "held_more_often": self._native.more_events,
            "rounds_with_tensors": [list(stretch) for stretch in kept[-MAX_STRETCHES:]],
            "other_rounds": "their tensors were not kept, as was asked for; their statistics were",
        }
        if len(kept) > MAX_STRETCHES:
            described["more_rounds_with_tensors"] = sum(last - first + 1 for first, last in kept[:-MAX_STRETCHES])
        return described


def _describe(event: _native.TriggerEvent) -> dict[str, Any]:
    described: dict[str, Any] = {
        "round": event.round,
        "condition": event.condition,
        "module": event.module,
        "tensor": event.tensor,
        "statistic": event.statistic,
        "value": _native.number_text(event.value),
    }
    if event.median is not None:
        described["median"] = _native.number_text(event.median)
    return described
