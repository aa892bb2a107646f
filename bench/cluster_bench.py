"""`ait llm compare --on ray` on two workers of this machine against `--threads 2`, and the coordinator's memory.

    cluster_bench.py FOLDER AIT

Needs the Python of `make test-cluster` (build/cluster-venv). The start of the cluster and its workers is not counted.
One line of JSON.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

PAIRS = 10_000
MANY_PAIRS = 200_000
FILE_BYTES = 1 << 20
DIFFERENT_FILES = 16
ROUNDS = 3


def make_pairs(root, pairs, file_bytes):
    """Links to a few files: the disk has room for them, and the memory that holds them is read all the same."""
    draw = np.random.default_rng(0)
    for side in ("golden", "mine"):
        (root / side).mkdir(parents=True)
    for i in range(DIFFERENT_FILES):
        golden = draw.standard_normal(file_bytes // 4).astype(np.float32)
        np.save(root / f"golden_{i}.npy", golden)
        np.save(root / f"mine_{i}.npy", golden * np.float32(1.001))
    for i in range(pairs):
        for side in ("golden", "mine"):
            os.link(root / f"{side}_{i % DIFFERENT_FILES}.npy", root / side / f"{i}.npy")
    return ["--golden-path", str(root / "golden"), "--my-path", str(root / "mine")]


def on_ray(program, words, out):
    """Seconds, the cluster's start aside."""
    from ait_llm.cluster.command import compare, parse
    from ait_llm.cluster.engine import Cluster
    from ait_llm.cluster.parts import warm_up

    given = parse(["--program", str(program), "--output", str(out), "--json", "--", *words])
    given.printed = subprocess.DEVNULL
    parts = pathlib.Path(out) / "parts"
    parts.mkdir(parents=True)
    with Cluster(None, str(program), processors=2) as cluster:
        warm_up(2)
        start = time.perf_counter()
        compare(given, cluster, str(parts))
        return time.perf_counter() - start


def alone(program, words, out):
    start = time.perf_counter()
    command = [program, "llm", "compare", *words, "-o", out, "--threads", "2", "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def report(out):
    (path,) = pathlib.Path(out).glob("*.csv")
    return path.read_bytes()


def memory_of_coordinator():
    """At most so far, in MiB. What getrusage tells is also that of the program that started this one."""
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def main(folder, program):
    folder = pathlib.Path(folder)
    words = make_pairs(folder / "few", PAIRS, FILE_BYTES)
    times = {"alone": [], "ray": []}
    for i in range(ROUNDS):
        times["alone"].append(alone(program, words, folder / f"alone_{i}"))
        times["ray"].append(on_ray(program, words, folder / f"ray_{i}"))
        assert report(folder / f"alone_{i}") == report(folder / f"ray_{i}")
    memory = memory_of_coordinator()
    on_ray(program, make_pairs(folder / "many", MANY_PAIRS, 256), folder / "ray_many")
    best = {name: min(each) for name, each in times.items()}
    result = {
        "pairs": PAIRS,
        "alone_seconds": best["alone"],
        "ray_seconds": best["ray"],
        "times": best["ray"] / best["alone"],
        "alone_gb_per_second": 2 * PAIRS * FILE_BYTES / best["alone"] / 1e9,
        "coordinator_mib": memory,
        "coordinator_mib_of_many": memory_of_coordinator(),
        "many_pairs": MANY_PAIRS,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
