"""Runs recorded torch APIs again, each on its own. See docs/api-check.md."""

import sys

from ait_llm.api_check.check_command import main

if __name__ == "__main__":
    sys.exit(main())
