"""set_label in a folder where somebody has planted something, and what it makes there."""

import os

import pytest
import torch
from ait_llm.dump import labels

NOBODY = 65534


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the labels of this test go; the launcher's folder in it is {tmp_path}/17."""
    monkeypatch.setenv("AIT_CMP_TASK", "1")
    monkeypatch.setenv("AIT_CMP_TASK_PID", "17")
    monkeypatch.setenv("AIT_CMP_TASK_DIR", str(tmp_path))
    monkeypatch.setenv(labels.TASK_ID, "5_0")
    return tmp_path


def test_everything_is_for_the_owner_and_the_group(folder):
    old = os.umask(0)
    labels.set_label("pta", "a", torch.ones(2))
    os.umask(old)
    made = [path for path in folder.rglob("*") if path.name != "17"]
    assert {path.name for path in made} >= {f"{os.getpid()}_cmp_dump_data", "pta_tensor", "5_0_labels.jsonl"}
    for path in [folder / "17", *made]:
        assert oct(path.stat().st_mode & 0o777) == ("0o750" if path.is_dir() else "0o640"), path


@pytest.mark.parametrize("plant", ["link", "fifo"])
def test_what_is_planted_under_the_name_of_the_labels_is_left_alone(folder, caplog, plant):
    (folder / "17").mkdir()
    target = folder / "target"
    target.write_text("untouched")
    if plant == "link":
        (folder / "17/5_0_labels.jsonl").symlink_to(target)
    else:
        os.mkfifo(folder / "17/5_0_labels.jsonl")
    labels.set_label("pta", "a", torch.ones(2))
    assert target.read_text() == "untouched"
    (message,) = caplog.messages
    assert message.startswith("set_label: pta of a cannot be kept: ") and "5_0_labels.jsonl" in message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make folders of another user")
@pytest.mark.parametrize("name", ["17", "17/{}_cmp_dump_data"])
def test_nothing_is_written_into_a_folder_of_another_user(folder, caplog, name):
    planted = folder / name.format(os.getpid())
    planted.mkdir(parents=True)
    os.chown(planted, NOBODY, NOBODY)
    labels.set_label("pta", "a", torch.ones(2))
    assert list(planted.iterdir()) == []
    assert "belongs to user 65534" in caplog.text
