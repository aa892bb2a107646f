"""Texts that somebody else chose, as names of files: one rule for ids, modules and the keys of results."""

from __future__ import annotations

import re

# Not in a name: what would lead to another folder, the sign that stands for what is not in a name, and halves of
# characters, which no file system takes.
_UNSAFE = "/%\x00-\x1f\x7f\ud800-\udfff"


def part_of_name(text: str, signs: str = "") -> str:
    """`text` inside a name: different texts are different there, too. `signs` mean something to the caller."""
    name = re.sub(f"[{_UNSAFE}{signs}]", lambda found: f"%{ord(found.group()):02X}", text)
    return name.replace(".", "%2E") if name in (".", "..") else name


def file_name(text: str) -> str:
    """`text` as the beginning of a name, or the whole of it: inside its folder, and not hidden."""
    name = part_of_name(text)
    return name.replace(".", "%2E") if name.startswith(".") else name
