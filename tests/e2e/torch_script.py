"""Runs `ait llm dump --probe torch` on small scripts, and the same scripts under a recorder of the tests' own."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import torch
from dump_run import dump_command, run_to_the_end

# Replaces the call of every module and saves {(round, folder, file): tensor}. Nothing of ait is in it: it tells what
# a script's outermost model and its parts really get and give.
RECORDER = """
import dataclasses, runpy, sys, torch

original, seen, state = torch.nn.Module.__call__, {}, {"depth": 0, "round": -1, "names": {}, "calls": {}}

def leaves(value, stem):
    if isinstance(value, torch.Tensor):
        yield stem, value
    elif isinstance(value, (tuple, list)):
        for index, each in enumerate(value):
            yield from leaves(each, f"{stem}_{index}")
    elif hasattr(value, "items"):
        for key, each in value.items():
            yield from leaves(each, f"{stem}_{key}")
    elif dataclasses.is_dataclass(value):
        yield from leaves(vars(value), stem)

def save(folder, found):
    for stem, tensor in found:
        seen[state["round"], folder, f"{stem}.pth"] = tensor.detach().clone()

def call(module, *args, **kwargs):
    if state["depth"] == 0:
        state.update(round=state["round"] + 1, calls={})
        state["names"] = {id(each): f"root.{name}" if name else "root" for name, each in module.named_modules()}
    name = state["names"][id(module)]
    count = state["calls"][name] = state["calls"].get(name, -1) + 1
    folder = f"{name}#{count}" if count else name
    save(folder, leaves(args, "input"))
    save(folder, leaves(kwargs, "input"))
    state["depth"] += 1
    try:
        output = original(module, *args, **kwargs)
    finally:
        state["depth"] -= 1
    save(folder, leaves(output, "output"))
    return output

torch.nn.Module.__call__ = call
out, sys.argv = sys.argv[1], sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
torch.save(seen, out)
"""


def write_script(folder, code, name="script.py"):
    path = folder / name
    path.write_text(textwrap.dedent(code))
    return path


def what_happens(tmp_path, code):
    """{(round, folder, file): tensor} of a run without ait, and what the script prints."""
    recorder = write_script(tmp_path, RECORDER, "recorder.py")
    script = write_script(tmp_path, code)
    process = run_to_the_end([sys.executable, recorder, tmp_path / "seen.pt", script], cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    return torch.load(tmp_path / "seen.pt", weights_only=True), process.stdout


@dataclasses.dataclass
class TorchDump:
    process: subprocess.CompletedProcess
    root: pathlib.Path  # ait_dump

    @property
    def manifest(self):
        return json.loads((self.root / "manifest.json").read_text())

    @property
    def pids(self):
        return [process["pid"] for process in self.manifest["processes"]]

    @property
    def folders(self):
        return sorted((self.root / "torch_tensors").glob("*"))

    @property
    def folder(self):
        (only,) = self.folders
        return only

    @functools.cached_property
    def tensors(self):
        """What recorded() says of each folder."""
        return {folder.name: recorded(folder) for folder in self.folders}

    @property
    def reasons(self):
        """Why it is not complete: the same in the manifest and the summary."""
        manifest = self.manifest
        assert manifest["complete"] is (manifest["incomplete_because"] == [])
        for sentence in manifest["incomplete_because"]:
            assert sentence in self.process.stdout
        return manifest["incomplete_because"]

    def summary(self, name):
        """The value of a line of the summary."""
        return re.search(rf"^{name} +(\S.*)$", self.process.stdout, re.M).group(1)

    @property
    def next(self):
        return re.search(r"^Next: (.*)\n\Z", self.process.stdout, re.M).group(1)


def dump(tmp_path, command, *words, status=0, out="out", **options):
    """Runs a command line, or a script's code, under `ait llm dump --probe torch`."""
    if "\n" in command:
        command = [sys.executable, write_script(tmp_path, command)]
    options.setdefault("env", environment())
    process = run_to_the_end(dump_command(command, "--probe", "torch", *words, out=out), cwd=tmp_path, **options)
    assert process.returncode == status, process.stdout + process.stderr
    return TorchDump(process, tmp_path / out / "ait_dump")


def environment(**changes):
    """For commands that are no Python themselves: one that has ait_llm."""
    return {**os.environ, "AIT_PYTHON": sys.executable, **changes}


def recorded(folder):
    """{(round, folder, file): tensor} of a process folder; every file must be whole."""
    files = folder.glob("[0-9]*/*/*.pth")
    return {(int(path.parts[-3]), *path.parts[-2:]): torch.load(path, weights_only=True) for path in files}


def raw(tensor):
    return tensor.dtype, tensor.shape, tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def assert_same(found, expected):
    """Bit for bit."""
    assert set(found) == set(expected)
    for key, tensor in expected.items():
        assert raw(found[key]) == raw(tensor), key


def assert_counts_are_true(run):
    """What the manifest counts is what lies on the disk, and nothing is half there."""
    assert list(run.root.rglob(".*")) == []
    tensors = [tensor for found in run.tensors.values() for tensor in found.values()]
    counts = run.manifest["tensors"]
    assert counts["written"] == len(tensors)
    assert counts["written_bytes"] == sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    assert counts["announced"] == counts["written"] + counts["failed"] + counts["lost"]
    return counts
