"""Installs the libraries, builds consumer/ against them as another project would, and compares two npy files with it.

consumer_test.py --cmake CMAKE --build FOLDER --work FOLDER -- OPTIONS…    options: those that configure consumer/
"""

import argparse
import shutil
import struct
import subprocess
import sys
from pathlib import Path


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def write_npy(path, values):
    """A float32 vector as version 1.0 of numpy's format."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}".ljust(117) + "\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
    path.write_bytes(start + header.encode() + struct.pack(f"<{len(values)}f", *values))
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    work = arguments.work
    # Headers of an earlier install would hide that one is no longer offered.
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)

    prefix, program = work / "prefix", work / "program"
    run(arguments.cmake, "--install", arguments.build, "--prefix", prefix, "--component", "development")
    source = Path(__file__).parent / "consumer"
    run(arguments.cmake, "-S", source, "-B", program, f"-DCMAKE_PREFIX_PATH={prefix}", *arguments.options)
    run(arguments.cmake, "--build", program)

    golden = write_npy(work / "golden.npy", [1, 2, 3])
    actual = write_npy(work / "actual.npy", [3, 2, 1])
    printed = run(program / "compare_npy", golden, golden), run(program / "compare_npy", golden, actual)
    expected = "cosine_similarity 1.000000\n", "cosine_similarity 0.714286\n"
    if printed != expected:
        sys.exit(f"compare_npy printed {printed}, not {expected}")
    # The headers of each library that are its own stay at home.
    if (prefix / "include/ait/formats/npy.h").exists():
        sys.exit("formats/npy.h was installed, but formats does not offer it")


if __name__ == "__main__":
    main()
