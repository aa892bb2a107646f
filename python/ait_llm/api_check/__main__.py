"""`python -m ait_llm.api_check check …` and `… overflow …`, which `ait api` runs."""

import sys

from ait_llm.api_check import check_command

if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["check"]:
        sys.exit(check_command.main(words[1:], "ait api check"))
    sys.exit("usage: python -m ait_llm.api_check check -forward FILE …")
