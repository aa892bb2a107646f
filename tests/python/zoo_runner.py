"""Runs programs, each in a process of its own that has some modules imported already.

    python zoo_runner.py FOLDER module,module program.py…

To import torch takes longer than most programs of the zoo run, so this process does it once and forks for each. What
a program writes is in FOLDER/{name}.stdout and {name}.stderr, how it ended in {name}.status, its process in {name}.pid.
FOLDER/{name} is the folder that it starts in.
"""

import importlib
import os
import runpy
import signal
import sys
import time
from pathlib import Path

SECONDS = 300


def start(program, folder):
    """In a forked process: what would be the main program if it had been started by itself."""
    name = program.stem
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, stream in ((1, "stdout"), (2, "stderr")):
        with open(folder / f"{name}.{stream}", "wb") as file:
            os.dup2(file.fileno(), number)
    (folder / name).mkdir()
    os.chdir(folder / name)
    sys.argv = [str(program)]
    runpy.run_path(str(program), run_name="__main__")


def end_of(child):
    """The status of a process, in a word."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return str(os.waitstatus_to_exitcode(status))
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"still ran after {SECONDS} s"


def main():
    folder = Path(sys.argv[1]).absolute()
    programs = [Path(each).absolute() for each in sys.argv[3:]]
    sys.path.insert(0, str(programs[0].parent))
    for module in filter(None, sys.argv[2].split(",")):
        importlib.import_module(module)
    for program in programs:
        child = os.fork()
        if child == 0:
            start(program, folder)
            return
        (folder / f"{program.stem}.pid").write_text(str(child))
        (folder / f"{program.stem}.status").write_text(end_of(child))


main()
