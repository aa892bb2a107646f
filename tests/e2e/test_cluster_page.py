"""The shell of docs/cluster.md, with processes in place of nodes and pods."""

import os
import re
import subprocess

import pages
from parts import plain_folders, report_of

PAGE = pages.DOCS / "cluster.md"
PARTS = 16


def files():
    return {block.detail: block.text for block in pages.blocks(PAGE) if block.mark == "file"}


def prepare(ait, tmp_path, program):
    """Two runs, their plan and report, and the environment of a node."""
    golden, mine = plain_folders(tmp_path, pairs=100)
    assert ait("llm", "compare", "-gp", golden, "-mp", mine, "-o", "alone").returncode == 0
    assert ait("llm", "compare", "-gp", golden, "-mp", mine, "--plan", "run.plan").returncode == 0
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def run_all(commands, cwd):
    """Two at a time, as many as this machine has processors for."""
    for first in range(0, len(commands), 2):
        started = [
            subprocess.Popen(words, cwd=cwd, env=environment) for words, environment in commands[first : first + 2]
        ]
        assert [process.wait(timeout=60) for process in started] == [0] * len(started)


def test_the_job_array_and_its_merging(ait, tmp_path, program):
    environment = prepare(ait, tmp_path, program)
    scripts = files()
    for name in ("compare.sbatch", "merge.sbatch"):
        (tmp_path / name).write_text(scripts[name])
    (last,) = re.findall(r"--array=1-(\d+)$", scripts["compare.sbatch"], re.MULTILINE)
    assert int(last) == PARTS
    of = lambda task: {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_MAX": last, "SLURM_CPUS_PER_TASK": "1"}
    run_all([(["sh", "compare.sbatch"], environment | of(task)) for task in range(PARTS, 0, -1)], tmp_path)
    run_all([(["sh", "merge.sbatch"], environment)], tmp_path)
    assert report_of(tmp_path / "out").read_bytes() == report_of(tmp_path / "alone").read_bytes()


def shell_of_job(text):
    """What its container runs, in place of the image's own ait and in the volume that it mounts."""
    (folder,) = re.findall(r"^ +workingDir: (.+)$", text, re.MULTILINE)
    assert "command: [sh, -c]" in text and f"mountPath: {folder}}}" in text
    (shell,) = re.findall(r"^ +args:\n +- (.+)$", text, re.MULTILINE)
    return shell


def test_the_jobs_of_kubernetes(ait, tmp_path, program):
    environment = prepare(ait, tmp_path, program)
    text = files()["compare.yaml"]
    (completions,) = re.findall(r"^ +completions: (\d+)$", text, re.MULTILINE)
    (parts,) = re.findall(r'name: PARTS, value: "(\d+)"', text)
    assert int(completions) == int(parts) == PARTS
    of = lambda index: {"JOB_COMPLETION_INDEX": str(index), "PARTS": parts}
    shell = shell_of_job(text)
    run_all([(["sh", "-c", shell], environment | of(index)) for index in range(PARTS)], tmp_path)
    run_all([(["sh", "-c", shell_of_job(files()["merge.yaml"])], environment)], tmp_path)
    assert report_of(tmp_path / "out").read_bytes() == report_of(tmp_path / "alone").read_bytes()
