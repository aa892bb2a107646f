"""Holds the examples at the head of headers against the tests that run them.

    check_examples.py ROOT

A header says "tests/x/example_test.cpp runs this example". Its example, the indented lines above that sentence, must
then stand in that test word for word; comments and white space aside. Prints one line for each that does not, and
fails if there is any or if no header has an example.
"""

import re
import sys
from pathlib import Path

CLAIM = re.compile(r"(tests/\w+/example_test\.cpp) runs this\s+(?://\s*)?example")
FOLDERS = ("src", "engine", "probe")


def bare(code):
    """The code without comments and white space."""
    return re.sub(r"\s+", "", re.sub(r"//.*", "", code))


def example_of(header):
    """The first indented lines of the comment that the header begins with."""
    lines = []
    for line in header.splitlines():
        if line.startswith("//   "):
            lines.append(line[2:])
        elif lines or not line.startswith("//"):
            break
    return "\n".join(lines)


def violations(root):
    found, examples = [], 0
    for header in sorted(path for folder in FOLDERS for path in root.glob(f"{folder}/**/*.h")):
        text = header.read_text()
        claim = CLAIM.search(text)
        if not claim:
            continue
        examples += 1
        test = root / claim[1]
        example = bare(example_of(text))
        name = header.relative_to(root)
        if not test.is_file():
            found.append(f"{name} names {claim[1]}, which does not exist")
        elif not example or example not in bare(test.read_text()):
            found.append(f"{name}: its example is not what {claim[1]} runs")
    return found if examples else [*found, f"no header below {root} has an example that a test runs"]


def main():
    found = violations(Path(sys.argv[1]))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
