"""Where Python does the work, it takes no module from the current folder: that may be a dump of anybody's."""

import os
import sys

import pytest

MODULES = ["ait_llm", "argparse", "contextlib", "json", "runpy", "shutil", "tempfile", "torch"]


@pytest.mark.parametrize(
    "words",
    [
        ["llm", "compare", "-gp", "g", "-mp", "m", "-o", "out", "--on", "ray"],
        ["api", "check", "-forward", "forward_info.json"],
        ["api", "overflow", "-forward", "forward_info.json"],
        ["llm", "dump", "--probe", "torch", "--exec", f"{sys.executable} scripts/x.py"],
        ["doctor"],
    ],
    ids=lambda words: "_".join(words[:2]),
)
def test_nothing_of_the_current_folder_is_run(ait, tmp_path, words):
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\n")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/x.py").write_text("")
    done = ait(*words, env={**os.environ, "AIT_PYTHON": sys.executable})
    ran = tmp_path / "ran"
    assert not ran.exists(), ran.read_text()
    assert "Traceback" not in done.stderr and "does not have the package" not in done.stderr, done.stderr


def test_a_script_of_the_user_has_the_modules_beside_it(ait, tmp_path):
    (tmp_path / "beside.py").write_text("open('ran', 'w').close()\n")
    (tmp_path / "x.py").write_text("import beside\n")
    done = ait("llm", "dump", "--probe", "torch", "--exec", f"{sys.executable} x.py")
    assert (tmp_path / "ran").exists(), done.stderr
