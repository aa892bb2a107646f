"""The program `msit`: the native `ait`, which goes by the name it is called with."""

import os
import shutil
import sys
import sysconfig


def main() -> None:
    beside = os.path.join(sysconfig.get_path("scripts"), "ait")
    program = beside if os.access(beside, os.X_OK) else shutil.which("ait")
    if program is None:
        sys.exit("msit: error: the program ait is not installed; install ait-llm into this environment")
    os.execv(program, ["msit", *sys.argv[1:]])
