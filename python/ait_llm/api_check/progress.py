"""How far a long run has come, on standard error where that is a terminal."""

from __future__ import annotations

import sys
import time

WIDTH = 24
SECONDS_BETWEEN = 0.1


class Progress:
    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._start = time.monotonic()
        self._shown = 0.0
        self._visible = total > 0 and sys.stderr is not None and sys.stderr.isatty()

    def step(self, name: str) -> None:
        self._done += 1
        now = time.monotonic()
        if not self._visible or (now - self._shown < SECONDS_BETWEEN and self._done < self._total):
            return
        self._shown = now
        seconds = max(now - self._start, 1e-6)
        rate = self._done / seconds
        bar = "█" * (WIDTH * self._done // self._total)
        left = (self._total - self._done) / rate
        text = f"Processing {bar:<{WIDTH}} {self._done}/{self._total} {rate:.1f}/s {left:.0f} s left {name}"
        sys.stderr.write(f"\r\x1b[K{text[:118]}")
        sys.stderr.flush()

    def end(self) -> None:
        if self._visible:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
