"""`--on ray` where there is no Ray; with one: tests/cluster."""

import os
import sys

import pytest
from conftest import error_line


def test_without_ray_it_says_how_to_install_it(ait, tmp_path):
    """Also in a folder with one of that name, which Python would take for a package."""
    try:
        import ray  # noqa: F401

        pytest.skip("this Python has Ray")
    except ImportError:
        pass
    (tmp_path / "ray").mkdir()
    environment = {**os.environ, "AIT_PYTHON": sys.executable}
    done = ait("llm", "compare", "-gp", "g", "-mp", "m", "-o", "ray", "--on", "ray", env=environment)
    assert "pip install 'ait-llm[cluster]'" in error_line(done)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--address", "here"], "--address has no effect without --on ray"),
        (["--on", "ray", "--plan", "p"], "--plan does not go together with --on ray"),
        (["--on", "ray", "--noise", "n"], "ait locate --noise"),
    ],
)
def test_options_that_do_not_go_with_it(ait, words, complaint):
    assert complaint in error_line(ait("llm", "compare", "-gp", "g", "-mp", "m", *words))
