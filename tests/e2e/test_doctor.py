"""`ait doctor`."""

import json
import os
import stat


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


def test_libatb_is_found_with_its_string_abi(ait, tmp_path):
    library = tmp_path / "lib" / "libatb.so"
    library.parent.mkdir()
    library.write_bytes(b"\x7fELF _ZN3atb9OperationE")
    assert report(ait, ATB_HOME_PATH=str(tmp_path))["libatb"] == {
        "path": str(library),
        "new_string_abi": False,
    }
    library.write_bytes(b"\x7fELF _ZNSt7__cxx1112basic_string")
    facts = report(ait, LD_LIBRARY_PATH=f"/nowhere:{library.parent}")
    assert facts["libatb"]["new_string_abi"] is True
    assert "new C++ string ABI" in " ".join(facts["conclusions"])


def test_the_python_that_is_asked_for_is_asked(ait, tmp_path):
    answer = r"printf 'python 3.9.1\nnumpy 1.2\ntorch 2.1.0\ntorch_npu\nait_llm 0.1\n'"
    python = report(ait, AIT_PYTHON=python_that(tmp_path, answer))["python"]
    assert python["version"] == "3.9.1"
    assert python["packages"] == {
        "numpy": "1.2",
        "torch": "2.1.0",
        "torch_npu": None,
        "ait_llm": "0.1",
    }


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
