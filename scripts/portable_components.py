"""What portable files contain of others: packages/portable/components.txt with versions, nanobind, and what the page of
the html report has inside."""

import dataclasses
import importlib.metadata
import json
import pathlib
import subprocess
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass
class Component:
    name: str
    version: str
    licence: str  # an SPDX expression
    url: str  # a package URL, https://github.com/package-url/purl-spec
    text: pathlib.Path  # its copyright and licence


def version_of(package):
    command = ["dpkg-query", "-W", "-f", "${source:Version}", package]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def components():
    found = []
    for line in (ROOT / "packages/portable/components.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        name, package, *licence, _ = line.split()
        version = version_of(package)
        text = pathlib.Path("/usr/share/doc", package, "copyright")
        url = f"pkg:deb/debian/{name}@{urllib.parse.quote(version)}?arch=source&distro=bookworm"
        found.append(Component(name, version, " ".join(licence), url, text))
    nanobind = importlib.metadata.distribution("nanobind")
    text = next(pathlib.Path(nanobind.locate_file(f)) for f in nanobind.files if f.name == "LICENSE")
    _, old = (ROOT / "packages/portable/nanobind-python3.9.txt").read_text(encoding="utf-8").split()[-1].split("==")
    for name, version in ("nanobind", nanobind.version), ("nanobind-python3.9", old):
        found.append(Component(name, version, "BSD-3-Clause", f"pkg:pypi/nanobind@{version}", text))
    lock = json.loads((ROOT / "web/package-lock.json").read_text(encoding="utf-8"))["packages"]
    for path, entry in lock.items():
        if not path or entry.get("dev"):
            continue
        name = path.removeprefix("node_modules/")
        url = f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"
        text = ROOT / "packages/portable/licences" / f"{name.split('/')[-1]}.txt"
        found.append(Component(name, entry["version"], entry["license"], url, text))
    return found


def licence_texts(found):
    return [(component.name.split("/")[-1], component.text.read_bytes()) for component in found]
