"""Prints what the CHANGELOG says of a version, or "Unreleased" where it is not named yet: release_notes.py VERSION."""

import pathlib
import re
import sys

CHANGELOG = pathlib.Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def notes(text, version):
    sections = re.split(r"^## +(.*?)(?: +-.*)?$", text, flags=re.MULTILINE)[1:]
    found = dict(zip(sections[::2], sections[1::2]))
    for name in (version, f"v{version}", f"[{version}]", "Unreleased"):
        if found.get(name, "").strip():
            return found[name].strip()
    sys.exit(f"release_notes: CHANGELOG.md says nothing of {version}; write a section `## {version}`")


if __name__ == "__main__":
    print(notes(CHANGELOG.read_text(encoding="utf-8"), sys.argv[1]))
