"""Runs `ait llm dump` on the stand-in host and holds the result against what is expected."""

import dataclasses
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess

from atb_host import HOSTS, Asked, Host, Recording, differences, read_tree
from conftest import PROGRAM

TIMEOUT_SECONDS = 60


def host_program(abi=1):
    return HOSTS / f"abi{abi}/bin/atb_host"


@dataclasses.dataclass
class Run:
    process: subprocess.CompletedProcess
    out: pathlib.Path

    @property
    def devices(self):
        """{pid: device} of the host's processes, the first one first."""
        lines = re.findall(r"^host (\d+) device (\d+)$", self.process.stdout, re.M)
        return {int(pid): int(device) for pid, device in lines}

    @property
    def pid(self):
        return next(iter(self.devices))

    @property
    def root(self):
        return self.out / "ait_dump"

    @property
    def manifest(self):
        return json.loads((self.root / "manifest.json").read_text())

    def files(self):
        """All that was recorded: everything below ait_dump but the manifest."""
        files = read_tree(self.root) if self.root.exists() else {}
        files.pop("manifest.json", None)
        return files


def dump_command(command, *words, out=None):
    if not isinstance(command, str):
        command = shlex.join(map(str, command))
    place = [] if out is None else ["-o", str(out)]
    return [PROGRAM, "llm", "dump", "--exec", command, *place, *map(str, words)]


def run_to_the_end(command, **options):
    """As subprocess.run, but where it takes too long, none of the command's processes stays behind."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **pipes, **options) as process:
        try:
            out, err = process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def record(tmp_path, *words, host=None, more=(), abi=1, status=0, out="out", **options):
    """Dumps the host with the given options of `ait llm dump`; `more`: further options of the host."""
    command = [host_program(abi), *(host or Host()).words(), *more]
    process = run_to_the_end(dump_command(command, *words, out=out), cwd=tmp_path, **options)
    assert process.returncode == status, process.stdout + process.stderr
    return Run(process, tmp_path / (out or "."))


def assert_recorded(run, host=None, asked=None):
    """Exactly what one process without threads hands over, every byte of it."""
    expected = Recording(host or Host(), asked or Asked(), run.pid).files()
    wrong = differences(run.files(), expected)
    assert not wrong, "\n".join(wrong[:10])
    return expected


def assert_tensors_counted(run, expected, **differing):
    """The manifest's counts are those of the files."""
    tensors = [data for path, data in expected.items() if path.startswith("tensors/") and path.endswith(".bin")]
    counts = {"written": len(tensors), "written_bytes": sum(map(len, tensors)), **differing}
    assert run.manifest["tensors"] | counts == run.manifest["tensors"]
