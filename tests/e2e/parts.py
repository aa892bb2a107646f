"""Comparing in parts, and what one process makes of the same."""

import json
import random

import numpy as np
from rows_file import read_rows


def plain_folders(root, pairs=300, elements=64):
    """Two folders of files: alike, different, missing on either side, unreadable, of several tensors, not finite."""
    draw = np.random.default_rng(7)
    for side in ("golden", "mine"):
        (root / side).mkdir(parents=True)
    for i in range(pairs):
        golden = draw.standard_normal((elements // 8, 8)).astype(np.float32)
        mine = golden * np.float32(1 + 0.01 * (i % 3))
        if i % 50 == 11:
            mine[0, 0] = np.nan
        if i % 40 == 5:
            np.savez(root / f"golden/{i}.npz", a=golden, b=golden, only_golden=golden)
            np.savez(root / f"mine/{i}.npz", b=mine, a=mine)
            continue
        if i % 40 != 7:
            np.save(root / f"golden/{i}.npy", golden)
        if i % 40 != 9:
            np.save(root / f"mine/{i}.npy", mine)
        if i % 40 == 13:
            (root / f"mine/{i}.npy").write_bytes(b"junk")
    return root / "golden", root / "mine"


def report_of(folder):
    (path,) = folder.glob("*.csv")
    return path


def document_of(process):
    """What --json says, but for the name of the report."""
    document = json.loads(process.stdout)
    return {key: value for key, value in document.items() if key != "report"}


def in_one(ait, tmp_path, arguments):
    """One process: its exit status, csv, rows and JSON."""
    process = ait("llm", "compare", *arguments, "-o", "alone", "--json")
    report = report_of(tmp_path / "alone")
    return process.returncode, report.read_bytes(), repr(read_rows(report.with_suffix(".rows"))), document_of(process)


def run_parts(ait, plan, parts, folder, seed=0, twice=2):
    """Each part by a process of its own, in random order, some of them twice."""
    numbers = list(range(1, parts + 1))
    draw = random.Random(seed)
    numbers += draw.sample(numbers, min(twice, parts))
    draw.shuffle(numbers)
    for number in numbers:
        process = ait("llm", "compare", "--from-plan", plan, "--part", f"{number}/{parts}", "-o", folder)
        assert process.returncode == 0, process.stderr


def merged(ait, tmp_path, folder="parts", out="merged"):
    process = ait("llm", "compare", "--merge", folder, "-o", out, "--json")
    report = report_of(tmp_path / out)
    return process.returncode, report.read_bytes(), repr(read_rows(report.with_suffix(".rows"))), document_of(process)


def in_parts(ait, tmp_path, arguments, parts):
    planned = ait("llm", "compare", *arguments, "--plan", "run.plan", "--json")
    assert planned.returncode == 0, planned.stderr
    run_parts(ait, "run.plan", parts, "parts")
    return merged(ait, tmp_path)
