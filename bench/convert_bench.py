"""`ait llm convert --to-stats --watch` on a dump that is written at 500 MB/s: how far behind it is, and what it takes.

    convert_bench.py FOLDER AIT

The program has one core, the writer the others. One line of JSON for each kind of file.
"""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "python"))
import ge_files

RATE = 500e6
SECONDS = 6


def npy_bytes(folder, array):
    np.save(folder / "one.npy", array)
    content = (folder / "one.npy").read_bytes()
    (folder / "one.npy").unlink()
    return content


def kinds(folder):
    matrix = np.random.default_rng(0).standard_normal((1024, 2048)).astype(np.float16)
    small = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)
    yield "4 MiB GE files, float16", "Add.Add_{i}.1.6.{i:016d}", ge_files.encode("", [], [ge_files.Stored(matrix)])
    yield (
        "4 MiB GE files in blocks (NZ), float16",
        "Add.Add_{i}.1.6.{i:016d}",
        ge_files.encode("", [], [ge_files.to_nz(matrix)]),
    )
    yield (
        "4 MiB FX files, float32",
        "mm_{i}-aten.mm.default.OUTPUT.0.{i:020d}.npy",
        npy_bytes(folder, matrix[:, :1024].astype(np.float32)),
    )
    yield "64 KiB FX files, float32", "mm_{i}-aten.mm.default.OUTPUT.0.{i:020d}.npy", npy_bytes(folder, small)


def write(folder, name, content):
    """At RATE, or as fast as it goes; gives the rate."""
    count = int(RATE * SECONDS / len(content))
    start = time.perf_counter()
    for i in range(count):
        early = start + i * len(content) / RATE - time.perf_counter()
        if early > 0.001:
            time.sleep(early)
        (folder / name.format(i=i)).write_bytes(content)
    return count * len(content) / (time.perf_counter() - start)


def has_sources(folder):
    return any("_min_max." not in entry.name for entry in os.scandir(folder))


def measure(folder, ait, title, name, content):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["taskset", "-c", "0", ait, "llm", "convert", "--to-stats", folder, "--watch", "--delete-source"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    rate = write(folder, name, content)
    end = time.perf_counter()
    while has_sources(folder):
        time.sleep(0.02)
    lag = time.perf_counter() - end
    process.send_signal(signal.SIGINT)
    process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    total = len(content) * int(RATE * SECONDS / len(content))
    print(json.dumps({"files": title, "written": rate, "lag": lag, "per_cpu_second": total / cpu}), flush=True)
    shutil.rmtree(folder)


def main():
    folder, ait = pathlib.Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores - {0} or cores)
    for title, name, content in kinds(folder):
        measure(folder / "dump", ait, title, name, content)


main()
