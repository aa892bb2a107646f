"""accuracy_checking_result.csv and accuracy_checking_details.csv: one line as soon as each is known, and going on."""

from __future__ import annotations

import csv
import io
import os
import re
import time

from ait_llm import _native
from ait_llm._errors import AitError
from ait_llm.api_check.outcome import FAIL, NOTHING, PASS, SKIP, Outcome

RESULT, DETAILS = "accuracy_checking_result", "accuracy_checking_details"
_RESULT_NAME = re.compile(rf"{RESULT}\w*\.csv")


class Counts:
    """For the summary: the older tool's words, by its rule and by what rounding explains."""

    def __init__(self) -> None:
        self.passed = self.only_forward = self.only_backward = self.both = self.skipped = 0

    def add(self, forward: str, backward: str) -> None:
        if forward == SKIP:
            self.skipped += 1
        elif FAIL not in (forward, backward):
            self.passed += 1
        elif backward != FAIL:
            self.only_forward += 1
        elif forward != FAIL:
            self.only_backward += 1
        else:
            self.both += 1

    @property
    def failed(self) -> int:
        return self.only_forward + self.only_backward + self.both

    @property
    def rate(self) -> str:
        total = self.passed + self.failed
        return f"{self.passed / total:.4f}" if total else "0"


class Reports:
    """The two files. Raises AitError where they cannot be had."""

    def __init__(self, folder: str, stamped: bool = False, resumed: str | None = None) -> None:
        self.by_rule, self.by_rounding = Counts(), Counts()
        self.done: set[str] = set()
        self.explained: list[str] = []  # calls of which the verdicts differ
        self.failed: list[str] = []
        stamp = time.strftime("_%Y%m%d%H%M%S") if stamped else ""
        self.result = resumed or os.path.join(folder, f"{RESULT}{stamp}.csv")
        name = os.path.basename(self.result)
        if resumed is not None and not _RESULT_NAME.fullmatch(name):
            raise AitError(f"{resumed}: When continue run ut, please do not modify the result csv name.")
        self.details = os.path.join(os.path.dirname(self.result), name.replace(RESULT, DETAILS))
        is_new = resumed is None or not os.path.exists(self.result)
        if is_new:
            for path in (self.result, self.details):
                if os.path.lexists(path):
                    raise AitError(f"file {path} already exists, please remove it first or use a new dump path")
        else:
            self._take_up()
        self._result = _native.CsvLines(os.fsencode(self.result), is_new)
        self._details = _native.CsvLines(os.fsencode(self.details), is_new)
        if is_new:
            self._result.append(_native.api_result_header())
            self._details.append(_native.api_output_header())

    def add(self, outcome: Outcome) -> None:
        """Details first: a call without a line in the result is run again when the run is taken up."""
        for line in outcome.lines:
            self._details.append(line)
        self._result.append(outcome.cells)
        self._count(outcome)

    def _count(self, outcome: Outcome) -> None:
        self.done.add(outcome.key)
        self.by_rule.add(outcome.forward, outcome.backward)
        self.by_rounding.add(outcome.forward_within, outcome.backward_within)
        if outcome.forward == SKIP:
            return
        by_rule, by_rounding = (outcome.forward, outcome.backward), (outcome.forward_within, outcome.backward_within)
        if by_rule != by_rounding:
            self.explained.append(outcome.key)
        if FAIL in by_rounding:
            self.failed.append(outcome.key)

    def _take_up(self) -> None:
        """Counts what is there, and drops what a run that was cut short has left unfinished."""
        rows = _whole_rows(self.result, _native.api_result_header())
        for row in rows:
            if row[1] not in (PASS, FAIL, SKIP) or row[2] not in (PASS, FAIL, SKIP, NOTHING):
                raise AitError(
                    f"The value in the 2nd or 3rd column of {self.result} is wrong, it must be TRUE, FALSE or N/A"
                )
            self._count(Outcome(row[0], row[1], row[2], row[3], row[4], row[5]))
        header = _native.api_output_header()
        details = _whole_rows(self.details, header) if os.path.exists(self.details) else []
        kept = [row for row in details if re.sub(r"\.(forward|backward)\.output\.\d+$", "", row[0]) in self.done]
        _rewrite(self.result, [_native.api_result_header(), *rows])
        _rewrite(self.details, [header, *kept])


def _whole_rows(path: str, header: list[str]) -> list[list[str]]:
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        text = file.read()
    text = text[: text.rfind("\r\n") + 2] if "\r\n" in text else ""
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or rows[0] != header:
        raise AitError(f"{path} is not a report of this version; remove it first or use another --out_path")
    return [row for row in rows[1:] if len(row) == len(header)]


def _rewrite(path: str, rows: list[list[str]]) -> None:
    temporary = f"{path}.tmp"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    lines = _native.CsvLines(os.fsencode(temporary), True)
    for row in rows:
        lines.append(row)
    del lines
    os.replace(temporary, path)
