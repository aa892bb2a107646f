"""scripts/check_portable.py: what it says of files that ask for too much, and of those that do not."""

import os
import pathlib
import re
import subprocess
import sys
import urllib.parse
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check_portable
import make_sbom
import release_notes

PROGRAM = pathlib.Path(os.environ.get("AIT_BIN", ROOT / "build/bin/ait"))


def compiled(folder, name, source, *options):
    file = folder / f"{name}.c"
    file.write_text(source)
    command = ["cc", "-shared", "-fPIC", "-o", str(folder / f"{name}.so"), str(file), *options]
    subprocess.run(command, check=True)
    file.unlink()
    return folder / f"{name}.so"


def problems(path):
    return check_portable.check(path)[0]


def test_a_library_that_needs_old_symbols_alone_passes(tmp_path):
    library = compiled(tmp_path, "fine", '#include <stdlib.h>\nint f(void) { return abs(atoi(getenv("A"))); }\n')
    assert problems(library) == []


@pytest.mark.parametrize(
    "name, source, options, expected",
    [
        (
            "newer",
            "#include <stdint.h>\nuint32_t arc4random(void);\nuint32_t f(void) { return arc4random(); }\n",
            [],
            "arc4random needs GLIBC_2.36",
        ),
        (
            "missing",
            "int nobody_has_this(void);\nint f(void) { return nobody_has_this(); }\n",
            [],
            "nobody_has_this is nowhere to be found",
        ),
        (
            "runtime",
            '#include <stdlib.h>\nint f(void) { return atoi("1"); }\n',
            ["-Wl,--no-as-needed", "-lstdc++"],
            "libstdc++.so.6 is needed",
        ),
    ],
)
def test_what_a_host_may_lack_is_named(tmp_path, name, source, options, expected):
    found = problems(compiled(tmp_path, name, source, *options))
    assert expected in found


def test_the_ordinary_program_is_not_portable():
    found = problems(PROGRAM)
    assert any("is needed" in line for line in found) and any("GLIBCXX" in line for line in found)


def test_files_in_a_wheel_are_found_and_must_be_of_its_machine(tmp_path):
    library = compiled(tmp_path, "fine", '#include <stdlib.h>\nint f(void) { return atoi("1"); }\n')
    wheel = tmp_path / "some-1-py3-none-manylinux_2_28_aarch64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(library, "some/deep/fine.so")
    found, count = check_portable.check(wheel)
    assert count == 1
    assert (
        found == [f"some/deep/fine.so: it is for {os.uname().machine}, not for aarch64"]
        or os.uname().machine == "aarch64"
    )


def test_a_wheel_without_any_program_or_library_is_wrong(tmp_path):
    wheel = tmp_path / "empty.whl"
    zipfile.ZipFile(wheel, "w").close()
    assert problems(wheel) == ["there is no program and no library in it"]


def test_a_bundle_has_the_package_for_whichever_python_there_is(tmp_path):
    """lib/python beside the program, which is of no version."""
    package = tmp_path / "lib/python/site-packages/ait_llm/api_check"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import sys; print('of the bundle', sys.argv[1:])")
    program = tmp_path / "bin/ait"
    program.parent.mkdir()
    program.write_bytes(PROGRAM.read_bytes())
    program.chmod(0o755)
    environment = {**os.environ, "AIT_PYTHON": sys.executable, "PYTHONPATH": "/nowhere"}
    command = [str(program), "api", "check", "-forward", "some.json"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert process.stdout == "of the bundle ['check', '-forward', 'some.json']\n", process.stderr


def test_release_notes_are_the_section_of_the_version():
    text = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 - 2030-01-01\n\n- second\n\n## 0.1.0\n\n- first\n"
    assert release_notes.notes(text, "0.2.0") == "- second"
    assert release_notes.notes(text, "0.1.0") == "- first"
    assert release_notes.notes(text, "0.3.0") == "- new"
    with pytest.raises(SystemExit, match="0.3.0"):
        release_notes.notes(text.replace("- new\n", ""), "0.3.0")


def test_the_version_stands_in_one_place():
    version = re.search(r"project\(ait VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    for name in ("pyproject.toml", "python/compat/pyproject.toml", "CITATION.cff", "Containerfile"):
        assert version not in (ROOT / name).read_text(), name


def test_the_bill_of_materials_names_everything_once_with_version_and_licence():
    bill = make_sbom.bill("1.2.3")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    parts = bill["components"]
    assert {"fmtlib", "simdjson", "nanobind", "uplot"} <= {part["name"] for part in parts}
    for part in parts:
        assert re.fullmatch(r"pkg:(deb/debian|pypi|npm)/\S+@\S+", part["purl"]), part
        assert part["version"] and part["version"] in urllib.parse.unquote(part["purl"])
        assert part["licenses"][0]["expression"]
    references = [part["bom-ref"] for part in parts]
    assert len(set(references)) == len(references)
    (depends,) = bill["dependencies"]
    assert depends == {"ref": "pkg:pypi/ait-llm@1.2.3", "dependsOn": references}
