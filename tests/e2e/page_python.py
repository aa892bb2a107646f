"""Runs blocks of Python one after the other in one process, as a reader who types them does.

Each line of standard input is a JSON string of code; the answer is a JSON object with what it printed and raised.
"""

import contextlib
import io
import json
import os
import sys
import traceback

answers = os.fdopen(os.dup(1), "w")  # what the code and its children print must not mix with the answers
os.dup2(2, 1)
names = {"__name__": "__main__"}
for number, line in enumerate(sys.stdin):
    printed, raised = io.StringIO(), None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            exec(compile(json.loads(line), f"<block {number}>", "exec"), names)
        except BaseException:
            raised = traceback.format_exc()
    answers.write(json.dumps({"printed": printed.getvalue(), "raised": raised}) + "\n")
    answers.flush()
