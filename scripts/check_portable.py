"""Holds every program and library in wheels, archives and folders against what they promise: glibc 2.28 and no other
shared library than its own.

    check_portable.py PATH…      PATH is a wheel, a bundle (.tar.gz), a folder, or a file

Prints one line for each thing that is wrong and one for each path, and fails if anything is wrong.
"""

import dataclasses
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

NEWEST_GLIBC = (2, 28)
# Parts of glibc; up to 2.33 threads and dlopen are libraries of their own.
GLIBC = re.compile(r"lib(c\.so\.6|m\.so\.6|pthread\.so\.0|dl\.so\.2|rt\.so\.1)|ld-linux[-\w]*\.so\.\d")
INTERPRETERS = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
SYMBOL = re.compile(r"^\s*\d+: \S+\s+\S+ \S+\s+(\S+)\s+\S+\s+(?:\[.*?\]\s+)?(\S+) (\S+)", re.MULTILINE)


@dataclasses.dataclass
class Binary:
    path: pathlib.Path
    machine: str
    interpreter: str
    needed: list
    undefined: list  # (name, version or "", is weak)
    defined: set


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def read(path):
    # readelf reads the files of all machines, unlike objdump and nm.
    command = ["readelf", "--wide", "--file-header", "--program-headers", "--dynamic", "--dyn-syms", str(path)]
    text = subprocess.run(
        command, check=True, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    ).stdout
    machine = re.search(r"^\s*Machine:\s+(.*)$", text, re.MULTILINE).group(1)
    interpreter = re.search(r"Requesting program interpreter: (.*?)\]", text)
    undefined, defined = [], set()
    for binding, section, name in SYMBOL.findall(text):
        name, _, version = name.partition("@")
        if section == "UND":
            undefined.append((name, version.lstrip("@"), binding == "WEAK"))
        else:
            defined.add(name)
    needed = re.findall(r"\(NEEDED\)\s+Shared library: \[(.*?)\]", text)
    return Binary(
        path, MACHINES.get(machine, machine), interpreter.group(1) if interpreter else "", needed, undefined, defined
    )


def problems_of(binary, siblings):
    """`siblings` are the files that come with it, by name."""
    found = []
    own = [siblings[name] for name in binary.needed if name in siblings]
    for name in binary.needed:
        if not GLIBC.fullmatch(name) and name not in siblings:
            found.append(f"{name} is needed")
    if binary.interpreter and binary.interpreter != INTERPRETERS.get(binary.machine):
        found.append(f"the loader of {binary.machine} is not {binary.interpreter}")
    if not binary.undefined:
        found.append("no symbol was read")
    is_module = binary.path.name.startswith("_native.")
    for name, version, is_weak in binary.undefined:
        numbers = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        if numbers is not None:
            if tuple(map(int, numbers.groups())) > NEWEST_GLIBC:
                found.append(f"{name} needs {version}")
        elif version:
            found.append(f"{name} needs {version}, which is not of the C library")
        elif not (
            is_weak or (is_module and name.startswith(("Py", "_Py"))) or any(name in each.defined for each in own)
        ):
            found.append(f"{name} is nowhere to be found")
    return found


def check_folder(folder, machine=None):
    """What is wrong with the programs and libraries below a folder, and how many there are."""
    binaries = [
        read(path) for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink() and is_elf(path)
    ]
    siblings = {binary.path.name: binary for binary in binaries}
    found = [] if binaries else ["there is no program and no library in it"]
    for binary in binaries:
        wrong = problems_of(binary, siblings)
        if machine and binary.machine != machine:
            wrong.append(f"it is for {binary.machine}, not for {machine}")
        found += [f"{binary.path.relative_to(folder)}: {line}" for line in wrong]
    return found, len(binaries)


def check(path):
    machine = next((each for each in INTERPRETERS if f"_{each}." in path.name or f"-{each}." in path.name), None)
    if path.is_dir():
        return check_folder(path, machine)
    with tempfile.TemporaryDirectory() as folder:
        if path.suffix == ".whl":
            zipfile.ZipFile(path).extractall(folder)
        elif path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        else:
            return problems_of(read(path), {}), 1
        return check_folder(pathlib.Path(folder), machine)


def main(paths):
    failed = False
    for path in map(pathlib.Path, paths):
        found, count = check(path)
        print(*(f"{path.name}: {line}" for line in found), sep="\n", end="\n" if found else "")
        print(f"{path.name}: {count} programs and libraries, {len(found)} problems")
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
