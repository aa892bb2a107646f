"""`ait doctor`."""

import json
import os
import pathlib
import shutil
import stat
import subprocess

import pytest
from atb_host import HOSTS
from conftest import error_line


def report(ait, **environment):
    process = ait("doctor", "--json", env={**os.environ, **environment})
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def python_that(tmp_path, body):
    program = tmp_path / "fake-python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_the_facts_are_this_machines(ait, tmp_path):
    facts = report(ait)
    assert facts["machine"]["cores"] == len(os.sched_getaffinity(0))
    assert facts["machine"]["memory_bytes"] > 0
    assert facts["machine"]["glibc"] == os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    assert facts["machine"]["simd"]
    assert facts["disks"][0]["writable"] is True
    assert any("Showing and comparing" in sentence for sentence in facts["conclusions"])


def test_the_table_says_what_to_type_next(ait):
    process = ait("doctor")
    assert process.returncode == 0
    assert "glibc" in process.stdout
    assert process.stdout.splitlines()[-1].startswith("Next: ")


@pytest.mark.parametrize("abi", [0, 1])
def test_libatb_is_found_with_its_probe_interface(ait, abi):
    home = HOSTS / f"abi{abi}"
    for variables in ({"ATB_HOME_PATH": str(home)}, {"LD_LIBRARY_PATH": f"/nowhere:{home}/lib"}):
        facts = report(ait, **variables)
        assert facts["libatb"] == {
            "path": f"{home}/lib/libatb.so",
            "probe_interface": True,
            "new_string_abi": abi == 1,
        }
        assert f"with the {'new' if abi else 'old'} C++ string ABI" in " ".join(facts["conclusions"])


def test_the_engine_works_where_libatb_is_missing(ait, program, tmp_path):
    without = {"ATB_HOME_PATH": "", "LD_LIBRARY_PATH": ""}
    facts = report(ait, **without)
    if facts["libatb"] is not None:
        pytest.skip("this machine has the library")
    assert facts["engine"] == str(program.parent / "ait-llama")
    assert "ait-llama can be recorded" in " ".join(facts["conclusions"])
    copy, _ = installed(program, tmp_path / "prefix")
    alone = subprocess.run([copy, "doctor", "--json"], capture_output=True, text=True, env={**os.environ, **without})
    assert json.loads(alone.stdout)["engine"] is None
    assert "ait-llama" not in alone.stdout


def test_a_libatb_without_the_interface_is_said_to_be_out_of_reach(ait, tmp_path):
    library = tmp_path / "lib" / "libatb.so"
    library.parent.mkdir()
    shutil.copy(HOSTS / "abi1/lib/libatb_host.so", library)  # calls the interface, but has it not
    facts = report(ait, ATB_HOME_PATH=str(tmp_path))
    assert facts["libatb"] == {"path": str(library), "probe_interface": False, "new_string_abi": None}
    assert "cannot be recorded" in " ".join(facts["conclusions"])


def test_a_libatb_that_is_no_library_is_said_to_be_so(ait, tmp_path):
    library = tmp_path / "lib" / "libatb.so"
    library.parent.mkdir()
    library.write_bytes(b"\x7fELF _ZNSt7__cxx1112basic_string")
    facts = report(ait, ATB_HOME_PATH=str(tmp_path))
    assert facts["libatb"] == {"path": str(library), "probe_interface": None, "new_string_abi": None}
    assert "The acceleration library cannot be read" in " ".join(facts["conclusions"])


def installed(program, prefix):
    """A copy of the program and its probe under `prefix`."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib" / "ait").mkdir(parents=True)
    probe = prefix / "lib" / "ait" / "libatb_probe.so"
    shutil.copy(program.parent.parent / "lib" / "ait" / "libatb_probe.so", probe)
    return pathlib.Path(shutil.copy(program, prefix / "bin" / "ait")), probe


def recorded_by(program, tmp_path):
    """One dump of `true` and what doctor says of the probe."""
    environment = {**os.environ, "AIT_PYTHON": "false"}
    words = ["llm", "dump", "--exec", "true", "-o", tmp_path / "out"]
    dump = subprocess.run([program, *words], capture_output=True, text=True, cwd=tmp_path)
    doctor = subprocess.run([program, "doctor", "--json"], capture_output=True, text=True, env=environment)
    return dump, json.loads(doctor.stdout)


def test_the_probe_lies_beside_the_program(program, tmp_path):
    copy, probe = installed(program, tmp_path / "prefix")
    dump, facts = recorded_by(copy, tmp_path)
    assert dump.returncode == 0, dump.stderr
    assert facts["probe"] == {"path": str(probe), "problem": None}


@pytest.mark.parametrize("damage, said", [
    (lambda probe: probe.unlink(), "is not there"),
    (lambda probe: probe.chmod(0o775), "chmod go-w"),
    (lambda probe: probe.chmod(0o757), "chmod go-w"),
])  # fmt: skip
def test_a_probe_that_cannot_be_trusted_is_not_preloaded(program, tmp_path, damage, said):
    copy, probe = installed(program, tmp_path / "prefix")
    damage(probe)
    dump, facts = recorded_by(copy, tmp_path)
    assert said in error_line(dump)
    assert not (tmp_path / "out").exists()
    assert said in facts["probe"]["problem"]
    assert any("Nothing can be recorded" in sentence for sentence in facts["conclusions"])


def test_a_path_that_the_loader_would_cut_in_two_is_refused(program, tmp_path):
    copy, _ = installed(program, tmp_path / "my tools")
    dump, _ = recorded_by(copy, tmp_path)
    assert "blank" in error_line(dump)


def test_the_python_that_is_asked_for_is_asked(ait, tmp_path):
    answer = r"printf 'python 3.9.1\nnumpy 1.2\ntorch 2.1.0\ntorchvision 0.16.0\ntorch_npu\nait_llm 0.1\n'"
    python = report(ait, AIT_PYTHON=python_that(tmp_path, answer))["python"]
    assert python["version"] == "3.9.1"
    assert python["packages"] == {
        "numpy": "1.2",
        "torch": "2.1.0",
        "torchvision": "0.16.0",
        "torch_npu": None,
        "ait_llm": "0.1",
    }


@pytest.mark.parametrize("torch, torchvision, wanted", [
    ("2.3.0", "0.18.0", None),
    ("2.3.0", "0.17.0", "0.18.0"),
    ("2.2.0+cpu", "0.17.0+cpu", None),
    ("2.1.0+cu118", "0.16.1", "0.16.0"),
    ("2.0.0", "0.15.2", "0.15.1"),
    ("2.1.0", "", None),
    ("", "0.16.0", None),
    ("2.13.0", "0.1.0", None),
])  # fmt: skip
def test_a_torchvision_that_does_not_fit_is_named(ait, tmp_path, torch, torchvision, wanted):
    answer = rf"printf 'python 3.9.1\ntorch {torch}\ntorchvision {torchvision}\n'"
    sentences = report(ait, AIT_PYTHON=python_that(tmp_path, answer))["conclusions"]
    found = [sentence for sentence in sentences if "does not fit torch" in sentence]
    assert len(found) == (wanted is not None)
    assert not found or f"install torchvision {wanted} " in found[0]


def test_a_python_that_does_not_run_is_named(ait, tmp_path):
    for program in ("/nowhere/python", python_that(tmp_path, "exit 3")):
        facts = report(ait, AIT_PYTHON=program)
        assert facts["python"]["version"] is None
        assert any(program in sentence for sentence in facts["conclusions"])


def test_modules_lying_in_the_current_folder_are_not_run(ait, tmp_path):
    for name in ("csv.py", "torch.py", "importlib.py", "numpy.py"):
        (tmp_path / name).write_text("open('was_run', 'w')\n")
    report(ait)
    assert not (tmp_path / "was_run").exists()
