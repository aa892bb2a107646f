"""Builds the wheel of ait-compat, unless one of its names already belongs to somebody else in this environment.

pip asks no one before it overwrites the files of another distribution, and a wheel cannot object. So the objection is
raised here, when pip builds from this folder or from its source distribution: `pip install python/compat`. That is why
only the latter is published.
"""

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

NAME = "ait-compat"
PACKAGES = ["ait_compat", "api_accuracy_checker", "components", "llm", "msit_llm", "msquickcmp", "ptdbg_ascend"]
PROGRAMS = {"msit": "ait_compat.msit:main"}
HERE = Path(__file__).resolve().parent

# Runs in the environment that pip installs into, which this process may be shielded from: what is installed there
# under a name (distributions that list such a file), and what an import or a shell would find (anything else).
_LOOK = r"""
import importlib.metadata, importlib.util, json, os, sys, sysconfig
packages, programs = json.loads(sys.argv[1])
sys.path = [entry for entry in sys.path if entry]  # not the current folder
scripts = sysconfig.get_path("scripts")
owners, places = {}, {}
for distribution in importlib.metadata.distributions():
    name = distribution.metadata["Name"]
    declared = (distribution.read_text("top_level.txt") or "").split()
    for file in distribution.files or []:
        top = file.parts[0]
        declared.append(top[:-3] if top.endswith(".py") and len(file.parts) == 1 else top)
        if file.name in programs and os.path.dirname(os.path.normpath(distribution.locate_file(file))) == scripts:
            owners.setdefault(file.name, []).append(name)
    for package in set(packages) & set(declared):
        owners.setdefault(package, []).append(name)
for package in packages:
    spec = importlib.util.find_spec(package)
    if spec is not None:
        places[package] = spec.origin or next(iter(spec.submodule_search_locations or []), "somewhere")
for program in programs:
    if os.path.lexists(os.path.join(scripts, program)):
        places[program] = os.path.join(scripts, program)
print(json.dumps([owners, places]))
"""


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    refuse_taken_names()
    version = ait_version()
    stem = f"{NAME.replace('-', '_')}-{version}"
    contents = sources()
    info = f"{stem}.dist-info"
    contents[f"{info}/METADATA"] = metadata(version)
    contents[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: ait\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    programs = "".join(f"{program} = {function}\n" for program, function in PROGRAMS.items())
    contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{programs}".encode()
    contents[f"{info}/top_level.txt"] = "".join(f"{package}\n" for package in PACKAGES).encode()
    contents[f"{info}/RECORD"] = record_of(contents, f"{info}/RECORD").encode()
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            # A fixed date: the same sources give the same wheel.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    version = ait_version()
    stem = f"{NAME.replace('-', '_')}-{version}"
    contents = sources()
    contents["PKG-INFO"] = metadata(version)
    for name in ("backend.py", "pyproject.toml"):
        contents[name] = (HERE / name).read_bytes()
    with tarfile.open(os.path.join(sdist_directory, f"{stem}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return f"{stem}.tar.gz"


def sources():
    return {
        f"{path.relative_to(HERE)}": path.read_bytes()
        for package in PACKAGES
        for path in sorted((HERE / package).rglob("*"))
        if path.suffix in (".py", ".typed")
    }


def metadata(version):
    return (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\n"
        "Summary: ait under the names of the tools that came before it\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: ait-llm\n"
    ).encode()


def record_of(contents, own_name):
    lines = []
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join(lines) + f"{own_name},,\n"


def ait_version():
    """One place for the version: project() in the root's CMakeLists.txt, of which a source distribution has a copy."""
    own = HERE / "PKG-INFO"
    if own.exists():
        return re.search(r"^Version: (.*)$", own.read_text(encoding="utf-8"), re.MULTILINE).group(1)
    text = (HERE.parent.parent / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(ait VERSION ([0-9.]+)", text).group(1)


def refuse_taken_names():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    names = json.dumps([PACKAGES, list(PROGRAMS)])
    answer = subprocess.run(
        [sys.executable, "-c", _LOOK, names], env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    owners, places = json.loads(answer)
    for name in [*PACKAGES, *PROGRAMS]:
        others = [owner for owner in owners.get(name, []) if re.sub(r"[-_.]+", "-", owner).lower() != NAME]
        if others:
            taken_by = f"the installed package {others[0]}"
        elif name in places and not owners.get(name):
            taken_by = places[name]
        else:
            continue
        sys.exit(
            f"{NAME} is not installed because the name {name} belongs to {taken_by}: remove that first, "
            "or do without the old names and import ait_llm."
        )
