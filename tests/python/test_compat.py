"""ait-compat: installs beside ait_llm, and never over somebody else's package of one of its names."""

import subprocess
import sys
import venv
from pathlib import Path

import ait_llm
import pytest
import torch

COMPAT = Path(__file__).resolve().parents[2] / "python" / "compat"


class Environment:
    """A fresh virtual environment without network and without pip of its own."""

    def __init__(self, folder):
        venv.create(folder, with_pip=False, symlinks=True)
        self.bin = folder / "bin"
        self.python = self.bin / "python"
        self.site = next((folder / "lib").glob("python*/site-packages"))

    def run(self, *command, check=True):
        return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=check, timeout=120)

    def install(self, *options, source=COMPAT):
        return self.run(
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--python",
            self.python,
            "install",
            "--no-index",
            "--no-deps",
            *options,
            source,
            check=False,
        )

    def print(self, code):
        return self.run(self.python, "-c", code).stdout.strip()

    def add_ait_llm(self):
        """And torch: those that the tests themselves run with, behind everything installed here."""
        folders = [str(Path(package.__file__).parents[1]) for package in (ait_llm, torch)]
        (self.site / "tests.pth").write_text("\n".join(folders))

    def files(self):
        return {
            path: path.read_bytes()
            for folder in (self.site, self.bin)
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "venv")


@pytest.mark.parametrize("options", [["--no-build-isolation"], []], ids=["without isolation", "with isolation"])
def test_it_installs_and_the_documents_import_works(environment, tmp_path, options):
    installed = environment.install(*options)
    assert installed.returncode == 0, installed.stderr
    environment.add_ait_llm()
    code = f"""
import torch, llm, msit_llm, ait_llm
from llm.dump.manual_dump import dump_data
import msit_llm.dump.manual_dump
assert msit_llm.dump.manual_dump.dump_data is dump_data
from llm import DumpConfig, register_hook
assert msit_llm.register_hook is register_hook is ait_llm.register_hook and msit_llm.DumpConfig is DumpConfig
from llm.dump.torch_dump import register_hook as under_llm
from msit_llm.dump.torch_dump import register_hook as under_msit_llm
assert under_llm is under_msit_llm is register_hook
assert msit_llm.compare is ait_llm.compare and msit_llm.__version__ == ait_llm.__version__
dump_data(0, 1, torch.zeros(2), "my.bin", {str(tmp_path)!r})
import api_accuracy_checker.dump as DP
from api_accuracy_checker.dump import msCheckerConfig
from ait_llm.api_check import dump
assert DP.dump.set_dump_switch == DP.set_dump_switch == dump.set_dump_switch and msCheckerConfig is dump.config
from ptdbg_ascend import register_hook, overflow_check
DP.restore()
print(llm.__file__)
"""
    assert Path(environment.print(code)).is_relative_to(environment.site)
    assert len(list(tmp_path.glob("ait_dump/*_-1/golden_tensor/0/1_tensor.pth"))) == 1
    home = environment.run(environment.python, "-m", "ait_compat.att_home").stdout.strip()
    scripts = Path(home) / "debug" / "accuracy_tools" / "api_accuracy_checker" / "run_ut"
    assert scripts.is_relative_to(environment.site)
    for script in ("run_ut.py", "run_overflow_check.py"):
        assert "-forward FILE" in environment.run(environment.python, scripts / script, "--help").stdout
    again = environment.install(*options)
    assert again.returncode == 0, again.stderr


@pytest.fixture
def source_distribution(tmp_path):
    code = "import backend, sys; print(backend.build_sdist(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    name = subprocess.run(command, cwd=COMPAT, capture_output=True, text=True, check=True).stdout.strip()
    return tmp_path / name


def test_its_source_distribution_installs_without_the_rest_of_the_repository(environment, source_distribution):
    installed = environment.install(source=source_distribution)
    assert installed.returncode == 0, installed.stderr
    environment.add_ait_llm()
    code = "import importlib.metadata, llm; print(importlib.metadata.version('ait-compat'), llm.__file__)"
    version, file = environment.print(code).split()
    assert version == ait_llm.__version__ and Path(file).is_relative_to(environment.site)


def test_its_source_distribution_asks_for_free_names_too(environment, source_distribution):
    foreign_distribution(environment.site)
    installed = environment.install(source=source_distribution)
    assert installed.returncode != 0 and "Someone_Elses.LLM" in installed.stdout + installed.stderr


def test_it_has_the_version_of_ait(environment):
    environment.install()
    version = environment.print("import importlib.metadata as m; print(m.version('ait-compat'))")
    assert version == ait_llm.__version__


def foreign_distribution(site, name="Someone_Elses.LLM"):
    (site / "llm").mkdir()
    (site / "llm" / "__init__.py").write_text("'''a real package'''")
    info = site / "someone_elses_llm-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "RECORD").write_text("llm/__init__.py,,\n")


def editable_distribution(site):
    elsewhere = site.parent / "project"
    (elsewhere / "msit_llm").mkdir(parents=True)
    (elsewhere / "msit_llm" / "__init__.py").write_text("")
    (site / "project.pth").write_text(str(elsewhere))


def plain_folder(site):
    (site / "llm").mkdir()


def plain_module(site):
    (site / "llm.py").write_text("")


def program(site):
    (site.parents[2] / "bin" / "msit").write_text("#!/bin/sh\n")


TAKEN = {
    "distribution": (foreign_distribution, "llm", "Someone_Elses.LLM"),
    "editable": (editable_distribution, "msit_llm", "project"),
    "folder": (plain_folder, "llm", "site-packages"),
    "module": (plain_module, "llm", "llm.py"),
    "program": (program, "msit", "bin/msit"),
}


@pytest.mark.parametrize("options", [["--no-build-isolation"], []], ids=["without isolation", "with isolation"])
@pytest.mark.parametrize("kind", TAKEN)
def test_it_refuses_a_name_that_is_taken(environment, kind, options):
    take, name, owner = TAKEN[kind]
    take(environment.site)
    before = environment.files()
    refused = environment.install(*options)
    assert refused.returncode != 0
    sentences = [line for line in refused.stderr.splitlines() if "ait-compat is not installed because" in line]
    assert len(sentences) == 1, refused.stderr
    assert f"the name {name} belongs to" in sentences[0]
    assert owner in sentences[0]
    assert "Traceback" not in refused.stderr
    assert environment.files() == before


def test_msit_is_the_native_program_under_another_name(environment):
    environment.install()
    (environment.bin / "ait").symlink_to("/bin/bash")  # says what name it was called by
    called = environment.run(environment.bin / "msit", "-c", 'echo "$0" "$1"; exit 7', "msit", "a b", check=False)
    assert called.stdout == "msit a b\n"
    assert called.returncode == 7
    name = environment.run(environment.bin / "msit", "-c", "cat /proc/$$/cmdline | tr '\\0' '\\n' | head -1").stdout
    assert name == "msit\n"


def test_msit_says_so_when_there_is_no_ait(environment):
    environment.install()
    called = subprocess.run([str(environment.bin / "msit")], env={"PATH": "/nowhere"}, capture_output=True, text=True)
    assert called.returncode == 1
    assert "the program ait is not installed" in called.stderr
