"""Holds every `#include "library/…"` of src/ against the DEPS that its CMakeLists.txt declares.

    check_includes.py SRC

A library may include its own headers and those of its dependencies, theirs included. Prints one line for each
violation and for each cycle, and fails if there is any.
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"/]+)/[^"]+"', re.MULTILINE)
DECLARATION = re.compile(r"\bait_(?:library|program)\s*\(\s*(\w+)([^)]*)\)")
KEYWORDS = {"SOURCES", "DEPS", "LINK", "LABELS"}


def declared_dependencies(text):
    """{library: its DEPS} of one CMakeLists.txt."""
    text = re.sub(r"#.*", "", text)
    found = {}
    for library, arguments in DECLARATION.findall(text):
        keyword, dependencies = None, []
        for word in arguments.split():
            if word in KEYWORDS:
                keyword = word
            elif keyword == "DEPS":
                dependencies.append(word)
        found[library] = dependencies
    return found


def closure(library, declared):
    """Everything `library` may use, or None where it depends on itself."""
    reachable, waiting = set(), list(declared.get(library, []))
    while waiting:
        dependency = waiting.pop()
        if dependency == library:
            return None
        if dependency not in reachable:
            reachable.add(dependency)
            waiting.extend(declared.get(dependency, []))
    return reachable


def violations(src):
    folders = sorted(path.parent for path in src.glob("*/CMakeLists.txt"))
    declared = {}
    for folder in folders:
        declared.update(declared_dependencies((folder / "CMakeLists.txt").read_text()))
    found = []
    for folder in folders:
        library = folder.name
        sources = sorted(path for path in folder.iterdir() if path.suffix in (".h", ".cpp"))
        if sources and library not in declared:
            found.append(f"{library}/CMakeLists.txt declares no library {library}")
            continue
        allowed = closure(library, declared)
        if allowed is None:
            found.append(f"{library} depends on itself through its DEPS")
            continue
        for source in sources:
            for target in INCLUDE.findall(source.read_text(errors="replace")):
                if target != library and target not in allowed:
                    found.append(f"{library}/{source.name} includes {target}/…, but {library} does not declare it")
    return found


def main():
    src = Path(sys.argv[1])
    if not list(src.glob("*/CMakeLists.txt")):
        print(f"{src} holds no libraries", file=sys.stderr)
        return 1
    found = violations(src)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
