"""Holds every include of a library's header against what the CMakeLists.txt files declare.

    check_includes.py ROOT

ait_library(name … HEADERS … DEPS …) in src/<name>/CMakeLists.txt says which headers a library offers and on which
libraries it stands; its other headers are its own. A library may include its own headers and the offered ones of the
libraries that its DEPS name: what those stand on is not inherited. The PARTS beside src/ may include the offered
headers of the libraries that their CMakeLists.txt names as ait::<name>. An offered header includes no private one,
which would offer that, too. Tests and fuzz targets look inside the libraries and are free to do so.

Prints one line for each violation and for each cycle, and fails if there is any.
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
DECLARATION = re.compile(r"\bait_library\s*\(\s*(\w+)([^)]*)\)")
KEYWORDS = {"SOURCES", "HEADERS", "DEPS", "LINK"}
PARTS = ("engine", "probe", "python/bindings", "bench", "examples/llama")


def cmake_text(folder):
    """The folder's CMakeLists.txt without comments."""
    return re.sub(r"#.*", "", (folder / "CMakeLists.txt").read_text())


def declared_libraries(text):
    """{library: {"DEPS": set, "HEADERS": set, …}} of one CMakeLists.txt."""
    libraries = {}
    for library, arguments in DECLARATION.findall(text):
        lists = {keyword: set() for keyword in KEYWORDS}
        keyword = None
        for word in arguments.split():
            if word in KEYWORDS:
                keyword = word
            elif keyword:
                lists[keyword].add(word)
        libraries[library] = lists
    return libraries


def stands_on_itself(library, libraries):
    reached, waiting = set(), [library]
    while waiting:
        for dependency in libraries.get(waiting.pop(), {}).get("DEPS", ()):
            if dependency == library:
                return True
            if dependency not in reached:
                reached.add(dependency)
                waiting.append(dependency)
    return False


def sources_of(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cpp"))


def included(source):
    """(is quoted, library, header) of each include with a folder in it; "../src/" and the like are looked through."""
    for quote, path in INCLUDE.findall(source.read_text(errors="replace")):
        steps = [step for step in path.split("/") if step not in (".", "..", "src")]
        if len(steps) > 1:
            yield quote == '"', steps[0], "/".join(steps[1:])


def include_violation(where, who, target, header, declared, libraries):
    """What is wrong with `who` including "target/header", or None."""
    if target not in declared:
        return f"{where} includes {target}/{header}, but {who} does not declare {target}"
    if header not in libraries[target]["HEADERS"]:
        return f"{where} includes {target}/{header}, which {target} keeps to itself: its HEADERS do not list it"
    return None


def library_violations(folder, libraries):
    library = folder.name
    if library not in libraries:
        return [f"{library}/CMakeLists.txt declares no library {library}"] if sources_of(folder) else []
    if stands_on_itself(library, libraries):
        return [f"{library} depends on itself through its DEPS"]
    declared, offered = libraries[library]["DEPS"] & set(libraries), libraries[library]["HEADERS"]
    found = []
    for source in sources_of(folder):
        where = f"{library}/{source.relative_to(folder)}"
        is_offered = str(source.relative_to(folder)) in offered
        for is_quoted, target, header in included(source):
            if target == library:
                if is_offered and header not in offered:
                    found.append(f"{where} is offered but includes {library}/{header}, which HEADERS do not list")
            elif is_quoted or target in libraries:
                found.append(include_violation(where, library, target, header, declared, libraries))
    return found


def part_violations(root, part, libraries):
    declared = set(re.findall(r"\bait::(\w+)", cmake_text(root / part))) & set(libraries)
    return [
        include_violation(source.relative_to(root), part, target, header, declared, libraries)
        for source in sources_of(root / part)
        for _, target, header in included(source)
        if target in libraries
    ]


def violations(root, parts=PARTS):
    folders = sorted(path.parent for path in root.glob("src/*/CMakeLists.txt"))
    libraries = {}
    for folder in folders:
        libraries.update(declared_libraries(cmake_text(folder)))
    found = [violation for folder in folders for violation in library_violations(folder, libraries)]
    for part in parts:
        found += part_violations(root, part, libraries)
    return [violation for violation in found if violation]


def main():
    root = Path(sys.argv[1])
    if not list(root.glob("src/*/CMakeLists.txt")):
        print(f"{root} holds no libraries", file=sys.stderr)
        return 1
    found = violations(root)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
