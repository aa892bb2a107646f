"""Makes `ait_engine` importable from the source tree for the tests of the embedded acceleration library."""

import os
import pathlib
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("AIT_ENGINE_LIB", str(REPOSITORY / "build" / "engine" / "lib" / "libatb.so"))
sys.path.insert(0, str(REPOSITORY / "engine" / "python"))

import ait_engine  # noqa: F401
