"""Makes a wheel of ait-llm from what CMake has built and installed, for whichever machine that was.

    make_wheel.py STAGE NATIVE TAG OUTPUT

STAGE holds `scripts` and `data`, as `cmake --install` leaves them; NATIVE is the module of one Python; TAG names
Python, interface and platform ("cp311-cp311-linux_aarch64"). Metadata come from pyproject.toml. pip makes the same
wheel for the machine it runs on; it cannot for another one, and would compile everything again for every Python.
"""

import base64
import hashlib
import os
import pathlib
import sys
import tempfile
import zipfile

from portable_components import components, licence_texts
from scikit_build_core.build import prepare_metadata_for_build_wheel

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = [ROOT / "python/ait_llm", ROOT / "engine/python/ait_engine"]


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def metadata(tag):
    """Name of the dist-info folder, and its files."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.devnull, "w") as quiet:
            sys.stdout, before = quiet, sys.stdout
            info = prepare_metadata_for_build_wheel(folder)
            sys.stdout = before
        root = pathlib.Path(folder, info)
        files = {str(path.relative_to(root)): path.read_bytes() for path in files_below(root)}
    files["WHEEL"] = f"Wheel-Version: 1.0\nGenerator: ait\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    texts = {f"third-party/{name}.txt": text for name, text in licence_texts(components())}
    files.update({f"licenses/{name}": text for name, text in texts.items()})
    own = b"License-File: LICENSE\n"
    files["METADATA"] = files["METADATA"].replace(
        own, own + b"".join(f"License-File: {name}\n".encode() for name in sorted(texts)), 1
    )
    return info, files


def contents(stage, native, tag):
    """Pairs of a name in the wheel and the bytes, with the file's permissions."""
    for package in PACKAGES:
        for path in files_below(package):
            yield f"{package.name}/{path.relative_to(package)}", path.read_bytes(), 0o644
    yield f"ait_llm/{native.name}", native.read_bytes(), 0o755
    info, files = metadata(tag)
    data = info.replace(".dist-info", ".data")
    for part in ("scripts", "data"):
        for path in files_below(stage / part):
            yield f"{data}/{part}/{path.relative_to(stage / part)}", path.read_bytes(), path.stat().st_mode & 0o755
    for name, content in files.items():
        yield f"{info}/{name}", content, 0o644


def make_wheel(stage, native, tag, output):
    info, _ = metadata(tag)
    wheel = output / f"{info.removesuffix('.dist-info')}-{tag}.whl"
    record = []
    with zipfile.ZipFile(wheel, "w") as archive:

        def add(name, content, mode):
            # A fixed date: the same sources give the same wheel.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)

        for name, content, mode in contents(stage, native, tag):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}\n")
            add(name, content, mode)
        add(f"{info}/RECORD", "".join(record) + f"{info}/RECORD,,\n", 0o644)
    return wheel


if __name__ == "__main__":
    stage, native, tag, output = sys.argv[1:]
    print(make_wheel(pathlib.Path(stage), pathlib.Path(native), tag, pathlib.Path(output)))
