"""Every script in examples/ runs in an empty folder and prints what lies beside it."""

import re

import pages
import pytest
from page_runner import Reader, check_output

EXAMPLES = pages.REPOSITORY / "examples"
# The table of the examples' page says how each is run.
COMMANDS = {
    re.search(r"examples/(\w+)\.(?:py|sh)", command).group(1): command
    for command in re.findall(r"^\| `(.*?)` \|", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
}


def test_every_example_is_in_the_table_and_has_its_output():
    scripts = {path.stem for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")} - {"generate"}
    assert scripts == set(COMMANDS) == {path.stem for path in EXAMPLES.glob("*.out")}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_prints_what_lies_beside_it(program, name, tmp_path):
    pytest.importorskip("transformers")
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "examples").symlink_to(EXAMPLES)
    with Reader(folder, program, tmp_path) as reader:
        done = reader.shell(COMMANDS[name])
    assert done.returncode == 0, done.stdout
    expected = (EXAMPLES / f"{name}.out").read_text(encoding="utf-8")
    check_output(f"examples/{name}.out", COMMANDS[name], expected.split("\n"), done.stdout)
