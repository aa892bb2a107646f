"""The fixtures of the tests that run the program."""

import importlib.util
import pathlib

E2E = pathlib.Path(__file__).resolve().parents[1] / "e2e"
# By its path: this file has the same name.
specification = importlib.util.spec_from_file_location("e2e_fixtures", E2E / "conftest.py")
fixtures = importlib.util.module_from_spec(specification)
specification.loader.exec_module(fixtures)
program, ait, compare = fixtures.program, fixtures.ait, fixtures.compare
