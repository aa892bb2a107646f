"""The pages of the documentation as tests see them: blocks of code with their marks, headings, tables, links.

A comment in front of a block says what it is, where its language alone does not:

    <!-- file: NAME -->          it is saved as that file
    <!-- output -->              what the block before it prints; `…` stands for any text
    <!-- layout -->              a picture of folders or data flow, to read; its Chinese twin may have other words
    <!-- not run: REASON -->     it cannot be run here

Two comments stand for themselves and are run in their place, unseen by readers:

    <!-- run: SHELL -->          what the reader has at this point and the page does not show
    <!-- python: CODE -->        the same in the Python of the page
"""

import dataclasses
import pathlib
import re
import textwrap

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
CHINESE = DOCS / "zh"

FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```[ \t]*$", re.MULTILINE | re.DOTALL)
HIDDEN = re.compile(r"^ *<!-- (run|python):\s(.*?)\s?-->$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^ *<!-- (file|not run|output|layout)(?:: (.*?))? -->$", re.MULTILINE)


@dataclasses.dataclass
class Block:
    page: pathlib.Path
    line: int
    language: str
    text: str
    mark: str = ""  # file, output, layout, not run
    detail: str = ""  # of the mark

    @property
    def place(self):
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"


def english_pages():
    return [REPOSITORY / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if CHINESE not in page.parents)]


def twin(page):
    """Where the Chinese page of an English one is."""
    if page == REPOSITORY / "README.md":
        return REPOSITORY / "README.zh-CN.md"
    return CHINESE / page.relative_to(DOCS)


def all_pages():
    return [page for english in english_pages() for page in (english, twin(english)) if page.exists()]


def blocks(page):
    """Blocks of code, and what is run unseen, in their order."""
    text = page.read_text(encoding="utf-8")
    found, spans = [], []
    for fence in FENCE.finditer(text):
        before = text[: fence.start()].rstrip("\n").rsplit("\n", 1)[-1]
        mark = MARK.fullmatch(before)
        kind, detail = (mark.group(1), mark.group(2) or "") if mark else ("", "")
        line = text.count("\n", 0, fence.start()) + 1
        content = textwrap.dedent(fence.group(3))
        found.append((fence.start(), Block(page, line, fence.group(2), content, kind, detail)))
        spans.append(fence.span())
    for hidden in HIDDEN.finditer(text):
        if any(start <= hidden.start() < end for start, end in spans):
            continue
        line = text.count("\n", 0, hidden.start()) + 1
        language = {"run": "sh", "python": "python"}[hidden.group(1)]
        found.append((hidden.start(), Block(page, line, language, textwrap.dedent(hidden.group(2)) + "\n", "hidden")))
    return [block for _, block in sorted(found, key=lambda item: item[0])]


def prose(page):
    """The page with blocks of code and comments blanked, line by line."""
    text = page.read_text(encoding="utf-8")

    def blank(match):
        return "\n" * match.group().count("\n")

    return re.sub(r"<!--.*?-->", blank, FENCE.sub(blank, text), flags=re.DOTALL)


def headings(page):
    """(level, text) of each heading."""
    return [(len(marks), text.strip()) for marks, text in re.findall(r"^(#{1,6}) (.*)$", prose(page), re.MULTILINE)]


def tables(page):
    """(rows, columns) of each table."""
    found = []
    for table in re.findall(r"(?:^ *\|.*\n?)+", prose(page), re.MULTILINE):
        rows = table.strip().split("\n")
        cells = {len(re.findall(r"(?<!\\)\|", row)) - 1 for row in rows}
        found.append((len(rows), cells.pop() if len(cells) == 1 else sorted(cells)))
    return found


def indented(page):
    """Numbers of the lines that begin a block of code by their indentation alone: such blocks have no language."""
    lines = prose(page).split("\n")
    inside_list, numbers = False, []
    for number, line in enumerate(lines):
        if re.match(r" {0,3}([-*+]|\d+\.) ", line):
            inside_list = True
        elif line and not line.startswith(" "):
            inside_list = False
        if line.startswith("    ") and number and not lines[number - 1].strip() and not inside_list:
            numbers.append(number + 1)
    return numbers


def anchors(page):
    """What `page.md#…` can name. The same rule makes the site's anchors and those of code hosts."""
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', prose(page)))
    for _, heading in headings(page):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        words = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        name, number = words, 1
        while name in found:
            name, number = f"{words}-{number}", number + 1
        found.add(name)
    return found


def links(page):
    """(line, target) of links and pictures."""
    for number, line in enumerate(prose(page).split("\n"), 1):
        line = re.sub(r"`[^`]*`", "", line)
        for target in re.findall(r"\]\(([^()\s]*(?:\([^()]*\)[^()\s]*)*)\)", line) + re.findall(
            r'(?:src|href)="([^"]+)"', line
        ):
            yield number, target
