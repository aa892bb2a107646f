"""Recordings of models and of the embedded acceleration library, and what `ait llm compare` says of two of them."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import pathlib
import shutil
import subprocess

import torch
from ait_llm import DumpConfig, register_hook
from models import Clock, Words, feed

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
AIT = pathlib.Path(os.environ.get("AIT_BIN", REPOSITORY / "build" / "bin" / "ait")).resolve()
LLAMA = AIT.with_name("ait-llama")


def record_torch(
    model: torch.nn.Module,
    folder: pathlib.Path,
    words: Words,
    clock: Clock | None = None,
    cached: bool = True,
    **options: object,
) -> pathlib.Path:
    """`options` are those of register_hook."""
    rounds = list(range(words.following.shape[1] + 1))
    with contextlib.redirect_stderr(io.StringIO()):  # where the files are is nothing new
        with register_hook(model, DumpConfig(str(folder), token_range=rounds), **options):
            feed(model, words, clock, cached)
    return folder / "ait_dump"


def record_engine(
    model_folder: pathlib.Path, folder: pathlib.Path, words: Words, dtype: str, *arguments: str, padded: bool = False
) -> tuple[pathlib.Path, list[list[int]]]:
    """It is given the prompts of `words` alone and chooses the following ones itself; these are returned, too."""
    prompts = []
    for row, mask in zip(words.prompt.tolist(), words.mask.tolist()):
        prompts.append(",".join(str(word) for word, kept in zip(row, mask) if kept))
    steps = words.following.shape[1] + 1
    more = ["--padding", "left"] if padded else []
    command = [LLAMA, "--model", model_folder, "--tokens", ";".join(prompts), "--steps", steps, "--dtype", dtype]
    command += ["--threads", "1", *more, *arguments]
    quoted = " ".join(f"'{word}'" for word in map(str, command))
    said = run_ait(
        "llm", "dump", "--exec", quoted, "--type", "model", "tensor", "-er", "0,99", "-stp", "1", "-o", folder
    )
    chosen = [[int(word) for word in line.split(",")] for line in said.splitlines()[: len(prompts)]]
    return folder / "ait_dump", chosen


def run_ait(*arguments: object) -> str:
    command = [str(AIT), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


@functools.cache
def takes_noise() -> bool:
    return "--noise" in run_ait("llm", "compare", "--help")


def compare(golden: pathlib.Path, actual: pathlib.Path, noise: pathlib.Path | None, out: pathlib.Path) -> dict:
    more = [] if noise is None else ["--noise", noise]
    text = run_ait("llm", "compare", "-gp", golden, "-mp", actual, "-o", out, "--json", "--threads", "1", *more)
    return json.loads(text)


@contextlib.contextmanager
def own_folder(name: str, keep: pathlib.Path | None):
    """Of one case; in memory where there is such a place, and gone afterwards unless it is to be kept."""
    place = keep or pathlib.Path(os.environ.get("TMPDIR") or ("/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"))
    folder = (
        place / f"ait_eval_{os.getpid()}_{name.replace('/', '_')}" if keep is None else place / name.replace("/", "_")
    )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
