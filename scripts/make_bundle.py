"""Makes the bundle of a machine from its wheels: one archive that unpacks anywhere and runs, without pip and root.

    make_bundle.py ARCHITECTURE DIST     writes DIST/ait-{version}-linux-{architecture}.tar.gz

One copy of the package serves all Pythons, because each looks for a module of its own name.
"""

import gzip
import io
import pathlib
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["README.md", "README.zh-CN.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"]


def place(name):
    """Where a file of a wheel goes in the bundle; None for what only pip needs."""
    first, rest = name.split("/", 1)
    if first.endswith(".data"):
        part, rest = rest.split("/", 1)
        return {"scripts": "bin/", "data": ""}[part] + rest
    if first.endswith(".dist-info"):
        licences = "licenses/third-party/"
        return "licences/" + rest.removeprefix(licences) if rest.startswith(licences) else None
    return f"lib/python/site-packages/{name}"


def contents(wheels):
    """Bytes and permissions by the name in the bundle."""
    found = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                name = None if entry.is_dir() else place(entry.filename)
                if name is None:
                    continue
                file = archive.read(entry), (entry.external_attr >> 16) & 0o755
                if found.setdefault(name, file)[0] != file[0]:
                    sys.exit(
                        f"make_bundle: {wheel.name} and the wheels before it differ in {name}; make all of them again"
                    )
    for path in [*(ROOT / name for name in PAGES), *sorted((ROOT / "docs").rglob("*"))]:
        if path.is_file():
            found[str(path.relative_to(ROOT))] = path.read_bytes(), 0o644
    return found


def make_bundle(architecture, dist):
    wheels = sorted(dist.glob(f"ait_llm-*_{architecture}.whl"))
    if not wheels:
        sys.exit(f"make_bundle: {dist} has no wheel for {architecture}; scripts/wheel {architecture} makes them")
    version = wheels[0].name.split("-")[1]
    name = f"ait-{version}-linux-{architecture}"
    bundle = dist / f"{name}.tar.gz"
    # No dates and no owners: the same wheels give the same bundle.
    with open(bundle, "wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, (content, mode) in sorted(contents(wheels).items()):
                entry = tarfile.TarInfo(f"{name}/{path}")
                entry.size, entry.mode = len(content), mode
                archive.addfile(entry, io.BytesIO(content))
    return bundle


if __name__ == "__main__":
    made = make_bundle(sys.argv[1], pathlib.Path(sys.argv[2]))
    print(f"bundle: {made} ({made.stat().st_size / 1e6:.1f} MB)")
