"""`python -m ait_llm.api_check check …` and `… overflow …`, which `ait api` runs."""

import sys

from ait_llm.api_check import check_command, overflow_check

COMMANDS = {"check": check_command.main, "overflow": overflow_check.main}

if __name__ == "__main__":
    word, *rest = sys.argv[1:] or [""]
    if word not in COMMANDS:
        sys.exit("usage: python -m ait_llm.api_check check|overflow -forward FILE …")
    sys.exit(COMMANDS[word](rest, f"ait api {word}"))
