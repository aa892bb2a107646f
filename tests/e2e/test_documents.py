"""Every command line and every block of code in the documentation runs, and prints what the page shows.

pages.py tells how a block that cannot be run is marked; page_runner.py how the others are run.
"""

import re

import pages
import pytest
from page_runner import Reader

REPOSITORY = pages.REPOSITORY
MOST_NOT_RUN = 13


@pytest.mark.parametrize(
    "page",
    [page for page in pages.english_pages() if pages.blocks(page)],
    ids=lambda page: str(page.relative_to(REPOSITORY)),
)
def test_the_page_can_be_followed(program, page, tmp_path, tmp_path_factory, worker_id):
    pytest.importorskip("transformers")
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "examples").symlink_to(REPOSITORY / "examples")
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent  # one folder for all processes of pytest
    with Reader(folder, program, shared) as reader:
        reader.follow(page)


def test_few_blocks_are_not_run_and_each_says_why():
    left_out = [block for page in pages.english_pages() for block in pages.blocks(page) if block.mark == "not run"]
    assert not [block.place for block in left_out if len(block.detail) < 10]
    assert len(left_out) <= MOST_NOT_RUN, "\n".join(f"{block.place}: {block.detail}" for block in left_out)


@pytest.mark.parametrize("page", pages.all_pages(), ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_block_has_a_fence(page):
    assert not [f"{page.relative_to(REPOSITORY)}:{line}" for line in pages.indented(page)]


REASONS_OF = [
    "compare/measure.h",
    "compare/measure.cpp",
    "compare/engine.cpp",
    "compare/transform.cpp",
    "match/automatic.cpp",
    "match/by_place.cpp",
    "match/fed.cpp",
    "match/plan.cpp",
    "match/same_ranks.cpp",
    "match/segment_match.cpp",
    "match/tokens.cpp",
]


def reasons():
    """Sentences in the sources that can stand in cmp_fail_reason; of those with gaps the end."""
    for name in REASONS_OF:
        text = (REPOSITORY / "src" / name).read_text(encoding="utf-8")
        text = re.sub(r'"\s*"', "", re.sub(r"//.*", "", text))  # without comments, literals joined
        for sentence in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text):
            if sentence.endswith(".") and " " in sentence.strip():
                yield sentence.split("%")[0]


def test_every_reason_is_explained():
    page = (REPOSITORY / "docs/metrics.md").read_text(encoding="utf-8")
    sentences = list(reasons())
    assert len(sentences) > 25
    assert not [sentence for sentence in sentences if sentence not in page]
    assert "guess" not in page
