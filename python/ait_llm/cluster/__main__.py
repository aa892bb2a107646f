"""`python -m ait_llm.cluster`, which `ait llm compare --on ray` runs."""

import sys

from ait_llm.cluster.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
