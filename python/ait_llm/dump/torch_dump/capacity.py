"""How many threads write tensors, and how much memory those may take that wait to be written."""

from __future__ import annotations

import logging
import os

WRITERS = "AIT_TORCH_WRITERS"
MEMORY = "AIT_TORCH_MEMORY"
LINKS = "AIT_TORCH_LINKS"

MAX_WRITERS = 16
"""More only wait for the same disk. Who knows better can ask for up to MOST_WRITERS."""
MOST_WRITERS = 64

MEMORY_SHARE = 16
"""Of this machine's memory, one part in so many."""
BYTES_PER_WRITER = 256 << 20
LEAST_BYTES = 64 << 20

_MIB = 1 << 20
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

_logger = logging.getLogger("ait_llm")


def writers() -> int:
    """One for each core that this process may use, or what AIT_TORCH_WRITERS says."""
    default = max(1, min(MAX_WRITERS, cores()))
    return _number(WRITERS, 1, MOST_WRITERS, default)


def queued_bytes(threads: int) -> int:
    """A sixteenth of the memory, at most 256 MiB for each writer, or as many MiB as AIT_TORCH_MEMORY says."""
    default = max(LEAST_BYTES, min(memory_bytes() // MEMORY_SHARE, BYTES_PER_WRITER * threads))
    return _number(MEMORY, 1, 1 << 20, default // _MIB) * _MIB


def links() -> bool:
    """Whether tensors with the same bytes share a file; AIT_TORCH_LINKS=0 gives each a file of its own."""
    return _number(LINKS, 0, 1, 1) == 1


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Of this machine, or of the container that the process is in."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        found = LEAST_BYTES * MEMORY_SHARE
    for path in _CGROUP_LIMITS:
        try:
            with open(path, encoding="ascii") as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdigit():
            found = min(found, int(text))
    return found


def _number(variable: str, first: int, last: int, default: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return default
    number = int(text) if text.isascii() and text.isdigit() else -1
    if first <= number <= last:
        return number
    _logger.warning(
        "ait_llm: %s must be a number from %d to %d, not %r; %d is used", variable, first, last, text, default
    )
    return default
