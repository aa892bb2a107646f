"""Labels of files that a library saves anew in every call: which data a label means, on a library of a few lines."""

import json
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ait_llm
from ait_llm.dump import labels

NAME = "0_Model/3_Runner/after/outTensor0.bin"


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Saves a number as the library would; every test is a task of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACLTRANSFORMER_HOME_PATH", str(tmp_path / "home"))
    monkeypatch.setenv("ACLTRANSFORMER_SAVE_TENSOR", "1")
    monkeypatch.setenv(labels.TASK_ID, "")
    monkeypatch.setenv("AIT_CMP_TASK", "1")
    labels._saved_files.clear()
    labels.set_task_id()

    def run(value, name=NAME):
        path = tmp_path / "home" / "tensors" / str(os.getpid()) / os.environ[labels.TASK_ID] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = tmp_path / "scratch.bin"
        ait_llm.save(str(scratch), torch.tensor(float(value)))
        path.write_bytes(scratch.read_bytes())  # in place, as the library does

    yield run
    labels._saved_files.clear()


def results(folder):
    """{id: value or problem}, as the last line of each id has it."""
    labels._end_files()
    lines = (folder / f"{os.environ[labels.TASK_ID]}_labels.jsonl").read_text().splitlines()
    last = {label["data_id"]: label for label in map(json.loads, lines)}
    assert not any(label["waits"] for label in last.values())
    return {name: label["problem"] or float(np.asarray(ait_llm.load(label["path"]))) for name, label in last.items()}


def label(data_id, name=NAME):
    labels.set_label("acl", data_id, tensor_path=name)


def test_labels_before_and_after_the_library(library, tmp_path):
    for number in range(3):
        label(f"before{number}")
        library(number)
        library(number + 10, "after.bin")
        label(f"after{number}", "after.bin")
    assert results(tmp_path) == {f"{w}{n}": n + 10 * (w == "after") for n in range(3) for w in ("before", "after")}


def test_many_calls_within_one_step_of_the_clock(library, tmp_path):
    for number in range(200):
        library(number)
        label(str(number))
    assert results(tmp_path) == {str(n): n for n in range(200)}


def test_the_case_of_another_version(library, tmp_path):
    for number in range(2):
        library(number, NAME.replace("outT", "outt"))
        label(str(number))
    assert results(tmp_path) == {"0": 0, "1": 1}


def test_a_file_of_an_older_process_with_the_same_number_is_not_taken(library, tmp_path):
    library(1)
    (path,) = (tmp_path / "home").rglob("outTensor0.bin")
    os.utime(path, (1e9, 1e9))
    label("a")
    assert "did not save this file" in results(tmp_path)["a"]


def test_calls_that_were_not_saved(library, tmp_path):
    label("a")
    label("b")
    library(5)
    label("c")
    found = results(tmp_path)
    assert "did not save" in found["a"] and found["b"] == 5 and "did not save" in found["c"]


def test_without_inotify_the_time_of_the_file_has_to_do(library, tmp_path, monkeypatch):
    monkeypatch.setattr("ait_llm.dump._saved_file._Writes.start", lambda self: None)
    for number in range(3):
        label(str(number))
        library(number)
        os.utime(next((tmp_path / "home").rglob("outTensor0.bin")), (2e9 + number, 2e9 + number))
    assert results(tmp_path) == {"0": 0, "1": 1, "2": 2}


def test_a_path_that_leads_out_of_the_round_is_copied_under_its_name_alone(library, tmp_path):
    library(1, "../outside.bin")
    label("a", "../outside.bin")
    assert results(tmp_path) == {"a": 1}
    assert not [path for path in tmp_path.rglob("outside.bin") if "cmp_dump_data" not in str(path)][1:]


def test_a_forked_process_does_not_end_the_labels_of_its_parent(library, tmp_path):
    label("a")
    if (child := os.fork()) == 0:
        labels._end_files()
        os._exit(0)
    os.waitpid(child, 0)
    library(7)
    assert results(tmp_path) == {"a": 7}
