"""Runs clang-tidy on the sources that are named on standard input, two at a time.

A source that was found clean is not looked at again until it, a header of ours that it includes, its compile command
or the rules change: what all of these were is kept as a digest in build/lint/clean.
"""

import concurrent.futures
import functools
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

TIDY = "clang-tidy-19"
BUILD = Path("build/lint")
CLEAN = BUILD / "clean"
FOLDERS = [Path("src"), Path()]  # where `#include "library/header.h"` is looked for, after the file's own folder
INCLUDE = re.compile(rb'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
NOISE = re.compile(r"warnings? generated|Processing file")


@functools.cache
def includes(path):
    """Files of ours that one includes by itself."""
    found = []
    for name in INCLUDE.findall(path.read_bytes()):
        for folder in [path.parent, *FOLDERS]:
            if (folder / name.decode()).is_file():
                found.append((folder / name.decode()).resolve().relative_to(Path.cwd()))
                break
    return found


def closure(path):
    """A source and all headers of ours that it includes in the end."""
    seen, waiting = set(), [path]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += includes(each)
    return sorted(seen)


def main():
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    rules = b"".join(path.read_bytes() for path in sorted(Path().glob("**/.clang-tidy")))
    commands = {
        str(Path(entry["directory"], entry["file"]).resolve()): entry.get("command", "")
        for entry in json.loads((BUILD / "compile_commands.json").read_text())
    }
    CLEAN.mkdir(exist_ok=True)

    def digest(source):
        out = hashlib.sha256(version + rules + commands.get(str(source.resolve()), "").encode())
        for path in closure(source):
            out.update(str(path).encode() + hashlib.sha256(path.read_bytes()).digest())
        return out.hexdigest()

    def check(source):
        stamp = CLEAN / digest(source)
        if stamp.exists():
            return True
        done = subprocess.run([TIDY, "-p", BUILD, "--quiet", source], capture_output=True, text=True)
        said = [line for line in (done.stdout + done.stderr).splitlines() if not NOISE.search(line)]
        if done.returncode == 0:
            stamp.touch()
        else:
            print("\n".join(said), flush=True)
        return done.returncode == 0

    sources = [Path(line.strip()) for line in sys.stdin if line.strip()]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return 0 if all(list(pool.map(check, sources))) else 1


if __name__ == "__main__":
    sys.exit(main())
