"""Records hosts of another machine under an emulator and compares every file, byte by byte.

    check_emulated.py PROBE HOSTS EMULATOR [ARGUMENT …]

HOSTS is the build folder of tests/atb. Prints what is wrong, and fails if anything is.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from atb_host import Asked, Host, Recording, differences, read_tree

EVERYTHING = Asked(types=("tensor", "op", "kernel", "cpu_profiling"), time=2, tiling=True, ranges=((0, 1),))
RUNS = [
    (Host(rounds=3, names=True), EVERYTHING, []),
    (Host(dtype=0, dims=(64, 257)), Asked(ids=["2_2", "3_1"], part=1), []),
    (Host(rounds=1), Asked(), ["--end", "thread-exit", "--threads", "1"]),
]


def record(probe, program, emulator, host, asked, more):
    with tempfile.TemporaryDirectory() as folder:
        # Only the host is to preload the probe, not the emulator. The rest is inherited: -E splits values at commas.
        command = [*emulator, "-E", f"LD_PRELOAD={probe}", program, *host.words(), *more]
        environment = {**os.environ, **asked.environment(folder)}
        process = subprocess.run(command, env=environment, capture_output=True, text=True)
        if process.returncode != 0 or process.stderr:
            return [f"status {process.returncode}: {process.stderr}"]
        pid = int(process.stdout.split()[1])
        found = read_tree(pathlib.Path(folder) / "ait_dump")
        statistics = [path for path in found if path.startswith("cpu_profiling/")]
        wrong = [] if bool(statistics) == ("cpu_profiling" in asked.types) else [f"statistics: {statistics}"]
        for path in statistics:
            del found[path]
        expected = Recording(host, asked, pid, suffix="T0" if more else "").files()
        return wrong + differences(found, expected)


def main(probe, hosts, *emulator):
    failed = 0
    for abi in (0, 1):
        for host, asked, more in RUNS:
            program = f"{hosts}/abi{abi}/bin/atb_host"
            wrong = record(pathlib.Path(probe).resolve(), program, emulator, host, asked, more)
            failed += bool(wrong)
            words = " ".join([*host.words(), *more])
            print(f"{'failed' if wrong else 'passed'}: string ABI {abi}, {words}", *wrong, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
