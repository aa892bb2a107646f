"""Completion in real shells, and man pages: both made from the help of the commands."""

import os
import re
import shutil
import subprocess

import pytest
from conftest import error_line
from terminal import Terminal


@pytest.fixture
def script(ait, tmp_path):
    """Writes the script of a shell to a file."""

    def write(shell, name):
        done = ait("completion", shell)
        assert done.returncode == 0, done.stderr
        (tmp_path / name).write_text(done.stdout)
        return tmp_path / name

    return write


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


CASES = [
    ("ait ll", "ait llm "),
    ("ait llm comp", "ait llm compare "),
    ("ait llm compare --golden-p", "ait llm compare --golden-path "),
    ("ait llm compare --metric-compat ms", "ait llm compare --metric-compat msit "),
    ("ait llm convert --info st", "ait llm convert --info stat "),
    ("ait show layer0.n", "ait show layer0.npy "),
    ("ait llm compare -gp layer0.n", "ait llm compare -gp layer0.npy "),
    ("ait debug compare ac", "ait debug compare aclcmp "),
    ("ait api check -forw", "ait api check -forward "),
    ("msit llm dump --probe atb --save-ti", "msit llm dump --probe atb --save-ti"),
]


def completed(terminal, typed):
    """What stands on the command line after a tab."""
    terminal.write(f"{typed}\t")
    terminal.write("\x01printf '<%s>\\n' '\x05'\n")  # to the line's beginning, and around it
    shown = terminal.read_until(">\n")
    return re.findall(r"<([^<>%]*)>\n$", shown)[0]


def check(terminal, tmp_path):
    (tmp_path / "layer0.npy").touch()
    for typed, wanted in CASES:
        found = completed(terminal, typed)
        assert found.rstrip().startswith(wanted.rstrip()), (typed, found)


@needs("bash")
def test_bash_completes(script, tmp_path):
    path = script("bash", "ait.bash")
    with Terminal(["/bin/bash", "--norc", "-i"], tmp_path) as terminal:
        terminal.write(f"bind 'set bell-style none'; PS1=; source {path}; echo rea''dy\n")
        terminal.read_until("ready\n")
        check(terminal, tmp_path)


@needs("zsh")
def test_zsh_completes(script, tmp_path):
    script("zsh", "_ait")
    with Terminal([shutil.which("zsh"), "-f", "-i"], tmp_path) as terminal:
        terminal.write(f"unsetopt beep; bindkey -e; PS1=; PROMPT_EOL_MARK=; fpath=({tmp_path} $fpath)\n")
        terminal.write("autoload -U compinit; compinit -u -D; echo rea''dy\n")
        terminal.read_until("ready\n")
        check(terminal, tmp_path)


@needs("fish")
def test_fish_completes(script, tmp_path):
    path = script("fish", "ait.fish")
    (tmp_path / "layer0.npy").touch()
    environment = {**os.environ, "HOME": str(tmp_path)}
    for typed, wanted in CASES:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {path}; complete -C '{typed}'"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=60,
        )
        assert not done.stderr
        words = [line.split("\t")[0] for line in done.stdout.splitlines()]
        assert any(word.startswith(wanted.split()[-1]) for word in words), (typed, words)


def test_every_option_of_the_help_is_completed(ait, script):
    text = script("bash", "ait.bash").read_text()
    for words in (["llm", "compare"], ["llm", "dump"], ["llm", "opcheck"], ["api", "check"]):
        (line,) = re.findall(rf"^    ' {' '.join(words)}'\) words='([^']*)'", text, re.MULTILINE)
        shown = re.findall(r"^  (-\S*)", ait(*words, "--help").stdout, re.MULTILINE)
        assert len(shown) > 5
        assert {name for names in shown for name in names.split(",")} == set(line.split())


def test_a_shell_that_is_not_known_is_refused(ait):
    assert "give bash, zsh or fish" in error_line(ait("completion", "tcsh"))


def test_every_command_has_a_man_page(ait, tmp_path):
    assert ait("man", "-o", "man1").returncode == 0
    found = {path.name for path in (tmp_path / "man1").iterdir()}
    assert {"ait.1", "ait-llm-compare.1", "ait-debug-compare-aclcmp.1", "ait-show.1"} <= found
    page = (tmp_path / "man1/ait-llm-compare.1").read_text()
    assert page == ait("man", "ait-llm-compare").stdout
    assert page.isascii()
    assert "\\fB\\-gp\\fR, \\fB\\-\\-golden\\-path\\fR \\fIPATH\\fR" in page
    assert "there is no page 'ait-llm'; there are ait, " in error_line(ait("man", "ait-llm"))


@needs("mandoc")
def test_man_pages_are_well_formed(ait, tmp_path):
    ait("man", "-o", "man1")
    for path in sorted((tmp_path / "man1").iterdir()):
        done = subprocess.run(["mandoc", "-Tlint", path], capture_output=True, text=True, timeout=60)
        told = (done.stdout + done.stderr).splitlines()
        # The text has no date of its own; long lines are the help's.
        assert not [line for line in told if "missing date" not in line and "longer than 80 bytes" not in line]


@needs("man")
def test_man_shows_them(ait, tmp_path):
    ait("man", "-o", "man1")
    done = subprocess.run(
        ["man", "-l", "man1/ait-show.1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"},
        timeout=60,
    )
    assert done.returncode == 0 and "--values N" in done.stdout, done.stderr
