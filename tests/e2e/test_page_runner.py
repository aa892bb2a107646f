"""Pages that are wrong do not pass the tests of the documentation."""

import pages
import pytest
from page_runner import Failure, Reader


@pytest.fixture
def follow(program, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "REPOSITORY", tmp_path)

    def run(text):
        page = tmp_path / "page.md"
        page.write_text(text, encoding="utf-8")
        folder = tmp_path / "reader"
        folder.mkdir(exist_ok=True)
        with Reader(folder, program, tmp_path) as reader:
            reader.follow(page)

    return run


GOOD = """
<!-- run: echo hidden >a.txt -->
```console
$ cat a.txt; export WORD=kept
hid…
$ false
# status 1
```
- in a list:

  ```sh
  cd .. && cd reader && echo $WORD two
  ```
  <!-- output -->
  ```text
  kept   two
  ```
<!-- python:
x = 3
-->
```python
print(x + 1)
```
<!-- output -->
```text
4
```
<!-- file: c.json -->
```json
{"a": 1}
```
<!-- layout -->
```text
a/b
```
"""


def test_a_good_page_passes(follow, tmp_path):
    follow(GOOD.replace("kept   two", "kept two"))
    assert (tmp_path / "reader/c.json").read_text() == '{"a": 1}\n'


@pytest.mark.parametrize(
    "bad, complaint",
    [
        ("```console\n$ echo one\ntwo\n```\n", "did not print"),
        ("```console\n$ printf 'a\\nb\\n'\nb\na\n```\n", "did not print"),
        ("```console\n$ false\n```\n", "status 1"),
        ("```console\n$ true\n# status 2\n```\n", "status 0"),
        ("```console\n$ exit 0\n$ true\n```\n", "ended early"),
        ("```console\nait --help\n```\n", "begins with"),
        ("```sh\nfalse\ntrue\n```\n", "status 1"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\nprint(1)\n```\n<!-- output -->\n```text\n2\n```\n", "did not print"),
        ("<!-- output -->\n```text\n2\n```\n", "nothing was run"),
        ("```json\n{\n```\n", "Expecting"),
        ("```text\nanything\n```\n", "needs a mark"),
        ("```\nanything\n```\n", "needs a mark"),
    ],
)
def test_a_bad_page_fails(follow, bad, complaint):
    with pytest.raises((Failure, ValueError), match=complaint):
        follow(bad)


def test_what_a_page_consists_of(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One [two](x.md)\n\ntext\n\n    code\n\n- item\n\n    more of it\n\n| a | b \\| c |\n|---|---|\n| 1 | 2 |\n"
        "\n```sh\n# no heading\n[no](link)\n```\n\n## Again: `--fail-on`\n\n## 中文，标题\n\n## One two\n"
    )
    assert pages.headings(page) == [
        (1, "One [two](x.md)"),
        (2, "Again: `--fail-on`"),
        (2, "中文，标题"),
        (2, "One two"),
    ]
    assert pages.anchors(page) == {"one-two", "again---fail-on", "中文标题", "one-two-1"}
    assert pages.tables(page) == [(3, 2)]
    assert pages.indented(page) == [5]
    assert list(pages.links(page)) == [(1, "x.md")]
