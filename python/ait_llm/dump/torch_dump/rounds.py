"""What is remembered of the rounds of a run, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ait_llm.dump.torch_dump.manifest import Round

RECENT = 2
"""Rounds that are kept as they are: calls between two rounds belong to the one before."""
MAX_DESCRIBED = 200
"""Rounds that the manifest describes one by one: the first half of them, and the last."""
COUNTS = ("expected", "seen", "calls", "function_calls")


class Rounds(list["Round"]):
    """Those of a recording, in the order of their beginnings. Older ones are no more than what the manifest says."""

    def __init__(self) -> None:
        super().__init__()
        self._described: dict[str, dict[str, Any]] = {}
        self._summed = dict.fromkeys(("count", *COUNTS), 0)
        self.heard: set[str] = set()
        self.expected = 0
        self.never_ran = 0

    def settle(self) -> None:
        """Lets go of what is over."""
        while len(self) > RECENT and (self[0].finished or self[0].raised):
            each = self.pop(0)
            self.heard |= each.seen
            self.expected += len(each.expected)
            self.never_ran += len(each.never_ran())
            self._described[str(each.number)] = each.describe()
            if len(self._described) > MAX_DESCRIBED:
                self._sum_up(list(self._described)[MAX_DESCRIBED // 2])

    def _sum_up(self, number: str) -> None:
        described = self._described.pop(number)
        self._summed["count"] += 1
        for name in COUNTS:
            self._summed[name] += described[name]

    def describe(self) -> dict[str, Any]:
        """For the manifest: `rounds`, and of those that are too many, their sum."""
        rounds = {**self._described, **{str(each.number): each.describe() for each in self}}
        summed = {"rounds_summed_up": dict(self._summed)} if self._summed["count"] else {}
        return {"rounds": rounds, **summed}
