"""Tells whether recorded overflows are the mathematics' or the device's. See docs/api-check.md."""

import sys

from ait_llm.api_check.overflow_check import main

if __name__ == "__main__":
    sys.exit(main())
