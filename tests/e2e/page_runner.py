"""Runs a page of the documentation from top to bottom, as a reader would, in an empty folder.

Shell blocks share their folder and what they export; Python blocks share one interpreter. A ```console block holds
command lines and, below each, its output. Of the output every line must appear in this order; `…` stands for any
text. A line `# status N` after a command says that it ends so.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pages

STAGE = pathlib.Path(__file__).parent / "stage"
SEPARATOR = "\x1e"
SHELLS = ("console", "sh", "bash")
PYTHONS = ("python", "py")


class Failure(AssertionError):
    pass


def pattern(line):
    """What a line may look like: "…" stands for anything, and columns are as wide as this machine's longest text."""
    wanted = ".*".join(re.escape(part) for part in line.split("…"))
    return re.sub(r"(?:\\ ){2,}", "  +", wanted)


def check_output(place, what, shown, printed):
    lines = iter(printed.split("\n"))
    for expected in filter(str.strip, shown):
        if not any(re.fullmatch(pattern(expected.rstrip()), text.rstrip()) for text in lines):
            raise Failure(f"{place}: {what} did not print (in this place): {expected}\n\n{printed}")


def console_commands(block):
    """(command, status, lines shown) of each command of a console block."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    if parts[0].strip() or len(parts) == 1:
        raise Failure(f"{block.place}: a console block begins with a line `$ command`")
    for part in parts[1:]:
        lines = part.rstrip("\n").split("\n")
        count = 1
        while lines[count - 1].endswith("\\"):
            count += 1
        command, shown, status = "\n".join(lines[:count]), lines[count:], 0
        if shown and (said := re.fullmatch(r"# status (\d+)", shown[0])):
            status, shown = int(said.group(1)), shown[1:]
        yield command, status, shown


class Reader:
    """Somebody who follows a page in `folder` with the program at hand."""

    def __init__(self, folder, program, shared):
        self._folder = folder
        self._state = folder.parent / f"{folder.name}.state"
        state = shlex.quote(str(self._state))
        self._before = f"if [ -f {state} ]; then source {state}; fi\n"  # what earlier blocks have exported
        self._environment = {
            **os.environ,
            "HOME": str(folder.parent),
            "PATH": f"{program.parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            "AIT_PYTHON": sys.executable,
            "PYTHON": sys.executable,
            "STAGE": str(STAGE),
            "SHARED": str(shared),
            "REPOSITORY": str(pages.REPOSITORY),
            "AIT_ENGINE_LIB": str(program.parent.parent / "engine/lib/libatb.so"),
            "HOSTS": str(program.parent.parent / "tests/atb"),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "TRANSFORMERS_VERBOSITY": "error",
            "PYTHONWARNINGS": "ignore",
        }
        self._python = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._python:
            self._python.stdin.close()
            self._python.wait(timeout=60)

    def shell(self, script):
        """What the script prints, its status last."""
        state = shlex.quote(str(self._state))
        after = f'trap \'{{ export -p; printf "cd %q\\n" "$PWD"; }} >{state}\' EXIT\n'
        return subprocess.run(
            ["bash", "-c", self._before + after + script],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=300,
        )

    def console(self, block):
        commands = list(console_commands(block))
        script = "".join(f"{command}\nprintf '\\n{SEPARATOR}%d\\n' $?\n" for command, _, _ in commands)
        printed = self.shell(script).stdout.split(SEPARATOR)
        rest = printed[0]
        for (command, status, shown), after in zip(commands, printed[1:]):
            ended, _, following = after.partition("\n")
            if int(ended) != status:
                raise Failure(f"{block.place}: {command} ended with status {ended}\n\n{rest}")
            check_output(block.place, command, shown, rest)
            rest = following
        if len(printed) != len(commands) + 1:
            raise Failure(f"{block.place}: the shell ended early\n\n{rest}")

    def run_shell(self, block):
        done = self.shell("set -eo pipefail\n" + block.text)
        if done.returncode:
            raise Failure(f"{block.place}: ended with status {done.returncode}\n\n{done.stdout}")
        return done.stdout

    def run_python(self, block):
        if not self._python:
            self._python = subprocess.Popen(
                ["bash", "-c", f'{self._before}exec "$PYTHON" {pathlib.Path(__file__).with_name("page_python.py")}'],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        self._python.stdin.write(json.dumps(block.text) + "\n")
        self._python.stdin.flush()
        answer = json.loads(self._python.stdout.readline() or '{"printed": "", "raised": "the process ended"}')
        if answer["raised"]:
            raise Failure(f"{block.place}: {answer['raised']}\n\n{answer['printed']}")
        return answer["printed"]

    def follow(self, page):
        printed = None  # by the block before
        for block in pages.blocks(page):
            if block.mark in ("not run", "layout"):
                continue
            if block.mark == "file":
                (self._folder / block.detail).parent.mkdir(parents=True, exist_ok=True)
                (self._folder / block.detail).write_text(block.text, encoding="utf-8")
            elif block.mark == "output":
                if printed is None:
                    raise Failure(f"{block.place}: nothing was run whose output this could be")
                check_output(block.place, "what stands above", block.text.split("\n"), printed)
            elif block.language == "console":
                self.console(block)
                printed = None
            elif block.language in SHELLS:
                printed = self.run_shell(block)
            elif block.language in PYTHONS:
                printed = self.run_python(block)
            elif block.language == "json":
                json.loads(block.text)
            else:
                raise Failure(
                    f"{block.place}: a block of {block.language or 'no language'} needs a mark (tests/e2e/pages.py)"
                )
