"""The two languages of the documentation say the same, and no link leads nowhere."""

import re
import urllib.parse

import pages
import pytest

REPOSITORY = pages.REPOSITORY


def name(page):
    return str(page.relative_to(REPOSITORY))


def code(block):
    """A block without its comments, which are in the page's own language."""
    if block.mark == "layout":
        return block.language, block.mark, block.text.count("\n")
    lines = (re.sub(r"(^|\s)(#|//|/\*)(?! status).*$", "", line).rstrip() for line in block.text.split("\n"))
    return block.language, block.mark, [line for line in lines if line]


@pytest.mark.parametrize("english", pages.english_pages(), ids=name)
def test_the_chinese_page_is_the_same_page(english):
    chinese = pages.twin(english)
    assert chinese.exists(), f"{name(english)} has no Chinese page {name(chinese)}"
    assert [level for level, _ in pages.headings(chinese)] == [level for level, _ in pages.headings(english)]
    assert pages.tables(chinese) == pages.tables(english)
    visible = [[block for block in pages.blocks(page) if block.mark != "hidden"] for page in (english, chinese)]
    assert len(visible[0]) == len(visible[1])
    for mine, theirs in zip(*visible):
        assert code(theirs) == code(mine), f"{theirs.place} is not {mine.place}"


def test_no_chinese_page_is_alone():
    twins = {pages.twin(page) for page in pages.english_pages()}
    assert not [name(page) for page in pages.CHINESE.rglob("*.md") if page not in twins]


@pytest.mark.parametrize("page", pages.all_pages(), ids=name)
def test_rows_of_a_table_have_as_many_cells_as_its_head(page):
    assert not [table for table in pages.tables(page) if not isinstance(table[1], int)]


# Pages in one language alone.
OTHERS = [REPOSITORY / each for each in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")]


@pytest.mark.parametrize("page", [*pages.all_pages(), *OTHERS], ids=name)
def test_links_lead_somewhere(page):
    broken = []
    english = pages.english_pages()
    chinese = [pages.twin(each) for each in english]
    for line, target in pages.links(page):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = urllib.parse.unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            broken.append(f"{name(page)}:{line}: {target}: there is no such file")
        elif anchor and file.suffix == ".md" and anchor not in pages.anchors(file):
            broken.append(f"{name(page)}:{line}: {target}: the page has no such heading")
        elif page in chinese and file in english and pages.twin(file) != page and pages.twin(file).exists():
            broken.append(f"{name(page)}:{line}: {target}: there is a Chinese page of it")
    assert not broken, "\n".join(broken)
