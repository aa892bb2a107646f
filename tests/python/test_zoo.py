"""Programs that use torch in ways that a recorder can disturb run as they do alone: the same output, the same end and
the same files, byte for byte, recorded from outside (as by `ait llm dump --probe torch`), tensors or statistics, and by
register_hook."""

import fcntl
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ait_llm import startup

ZOO = Path(__file__).parent / "zoo"
RUNNER = Path(__file__).parent / "zoo_runner.py"
PROGRAMS = sorted(path.stem for path in ZOO.glob("*.py") if path.stem != "listen")

# To import torch takes longer than most programs run, and so does torch.compile, which other parts of torch import in
# the end: programs are run in groups that have in common what is imported before.
IMPORTS = {
    "plain": ["torch", "torch.ao.quantization", "torch.func", "torch.fx"],
    "compiling": ["torch._dynamo.backends.debugging", "torch.export", "torch._export.serde.serialize"],
    "starting others": [],
}
COMPILING = [*"averaging checkpointing compile_parts compile_whole dtypes exports functional".split()]
COMPILING += [*"fx_trace jit_trace make_fx modes profiled".split()]
SLOW = ["distributed", "spawns"]
GROUP_OF = dict.fromkeys(PROGRAMS, "plain")
GROUP_OF.update(dict.fromkeys(COMPILING, "compiling"), **dict.fromkeys(SLOW, "starting others"))

WAYS = ["probe", "statistics", "register_hook"]
SAID = (b"ait_llm: recording ", b"ait_llm: what torch.compile makes ")  # lines that a program alone does not have
UNRECORDED = [("redirected", "register_hook")]  # it does not call it
KILLED = ["killed", "left_by_exit"]  # have no time to end a recording
TOO_DEEP = ["deep"]  # leaves no room on the stack for a recording, either

CASES = [
    pytest.param(name, way, id=f"{name}-{way}", marks=[pytest.mark.slow] if name in SLOW else [])
    for name in PROGRAMS
    for way in WAYS
]


class Runs:
    """The programs of one group, run alone and with all ways of recording when the first of them is asked for."""

    def __init__(self, folder, group):
        self._folder = folder / group.replace(" ", "_")
        self._group = group

    @functools.cached_property
    def folder(self):
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / "lock", "w") as lock:  # pytest may have distributed the tests to several processes
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (self._folder / "alone").exists():
                for process in [self._start(way) for way in ("alone", *WAYS)]:
                    _, errors = process.communicate(timeout=1800)
                    assert process.returncode == 0, errors
        return self._folder

    def _start(self, way):
        out, dump = self._folder / way / "out", self._folder / way / "dump"
        out.mkdir(parents=True)
        environ = {key: value for key, value in os.environ.items() if not key.startswith("AIT_")}
        environ.update(PYTHONHASHSEED="0", OMP_NUM_THREADS="1", KINETO_LOG_LEVEL="99")  # the profiler tells the time
        if way in ("probe", "statistics"):
            path = [startup.FOLDER, *filter(None, [environ.get("PYTHONPATH")])]
            environ.update(PYTHONPATH=os.pathsep.join(path))
            environ.update(AIT_TORCH_DUMP_PATH=str(dump), AIT_TORCH_TOKEN_RANGE="0,999")
            environ.update(AIT_TORCH_STATISTICS="1" if way == "statistics" else "0")
        elif way == "register_hook":
            environ["AIT_ZOO"] = str(dump)
        programs = [str(ZOO / f"{name}.py") for name in PROGRAMS if GROUP_OF[name] == self._group]
        command = [sys.executable, str(RUNNER), str(out), ",".join(IMPORTS[self._group]), *programs]
        return subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True, cwd=self._folder)

    def seen(self, way, name):
        """Everything that a program leaves behind."""
        out = self.folder / way / "out"
        said = (out / f"{name}.stderr").read_bytes().splitlines(keepends=True)
        return {
            "status": (out / f"{name}.status").read_text(),
            "stdout": (out / f"{name}.stdout").read_bytes(),
            "stderr": b"".join(line for line in said if not line.startswith(SAID)),
            **{
                str(path.relative_to(out)): path.read_bytes()
                for path in sorted((out / name).rglob("*"))
                if path.is_file()
            },
        }

    def manifests(self, way, name):
        pid = (self.folder / way / "out" / f"{name}.pid").read_text()
        folders = (self.folder / way / "dump").glob(f"ait_dump/torch_tensors/*_{pid}*")
        return [json.loads((folder / "manifest.json").read_text()) for folder in folders]


@pytest.fixture(scope="module")
def runs_of(tmp_path_factory):
    """The runs of a group; processes of pytest share them."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return functools.lru_cache(maxsize=None)(lambda group: Runs(shared / "zoo", group))


def test_the_zoo_is_large():
    assert len(PROGRAMS) - len(SLOW) >= 40


@pytest.mark.skipif(not hasattr(torch, "compiler"), reason="the programs are written for torch 2")
@pytest.mark.parametrize(("name", "way"), CASES)
def test_a_recorded_program_runs_as_it_would_alone(name, way, runs_of):
    runs = runs_of(GROUP_OF[name])
    alone, recorded = runs.seen("alone", name), runs.seen(way, name)
    assert recorded.keys() == alone.keys()
    for key, content in alone.items():
        assert recorded[key] == content, key
    manifests = runs.manifests(way, name)
    assert bool(manifests) is ((name, way) not in UNRECORDED)
    for manifest in manifests:
        assert manifest["errors"] == [] or name in TOO_DEEP
        assert manifest["tensors"]["failed"] == manifest["other_files"]["failed"] == 0
        assert (manifest["state"] == "recording") is (name in KILLED)
