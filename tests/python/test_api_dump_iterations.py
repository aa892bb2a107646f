"""Which iterations are recorded, how a training is stopped, and what processes leave behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from ait_llm.api_check.config import Config
from ait_llm.api_check.iterations import Control
from training import read, recording

EXIT = "Model pretest: exit after iteration 1."


class Loop:
    """A script with a data loader: batch i is the number i, and each iteration calls Torch*full_like with it."""

    def __init__(self, folder, batches=5, workers=0, **settings):
        config = Config()
        config.update_config(dump_path=str(folder), **settings)
        self.control = Control(config)
        self.data = torch.utils.data.DataLoader(list(range(batches)), batch_size=1, num_workers=workers)
        self.seen = []

    def run(self):
        self.control.follow_loaders()
        try:
            for batch in self.data:
                self.seen.append(int(batch))
                torch.full_like(batch, batch.item())
        finally:
            self.control.restore()
            self.control._at_exit.clear()


def recorded_batches(folder):
    calls = read(folder, "forward").items()
    return [call["args"][1]["value"] for key, call in calls if key.startswith("Torch*full_like*")]


@pytest.mark.parametrize(("target", "stopped_at"), [(0, 2), (1, 3), (3, 5)])
def test_the_target_iteration_is_recorded_and_the_fetch_behind_it_stops_the_training(target, stopped_at, tmp_path):
    fetch = torch.utils.data.dataloader._BaseDataLoaderIter.__next__
    loop = Loop(tmp_path, target_iter=target)
    with pytest.raises(Exception) as caught:
        loop.run()
    assert type(caught.value) is Exception
    assert str(caught.value) == f"Model pretest: exit after iteration {target}."
    assert loop.seen == list(range(stopped_at - 1))
    assert recorded_batches(tmp_path) == [target]
    assert torch.utils.data.dataloader._BaseDataLoaderIter.__next__ is fetch


def test_the_second_iteration_is_the_usual_one(tmp_path):
    with pytest.raises(Exception, match=EXIT):
        Loop(tmp_path).run()
    assert recorded_batches(tmp_path) == [1]


def test_a_training_that_ends_with_its_target_is_not_stopped(tmp_path):
    loop = Loop(tmp_path, batches=2)
    loop.run()
    assert loop.seen == [0, 1] and recorded_batches(tmp_path) == [1]


def test_several_iterations_have_folders_of_their_own(tmp_path):
    with pytest.raises(Exception, match="exit after iteration 2."):
        Loop(tmp_path, target_iter=[0, 2]).run()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step0", "step2"]
    assert recorded_batches(tmp_path / "step0") == [0] and recorded_batches(tmp_path / "step2") == [2]


def test_fetches_of_all_loaders_count_and_empty_ones_do_not(tmp_path):
    loop = Loop(tmp_path, batches=1, target_iter=2)
    loop.control.follow_loaders()
    for _ in range(3):
        for batch in loop.data:
            torch.full_like(batch, loop.control.fetches)
    loop.control.restore()
    assert recorded_batches(tmp_path) == [3]


def test_without_the_loaders_control_the_script_decides(tmp_path):
    loop = Loop(tmp_path, enable_dataloader=False, target_iter=2)
    loop.control.follow_loaders()
    for batch in loop.data:
        loop.control.start()
        torch.full_like(batch, batch.item())
        loop.control.stop()
        loop.control.step()
    loop.control.restore()
    assert recorded_batches(tmp_path) == [2]


def test_on_may_be_said_in_every_iteration(tmp_path):
    control = Loop(tmp_path).control
    for number in range(3):
        control.set_dump_switch("ON")
        torch.full((), number)
    control.set_dump_switch("OFF")
    torch.full((), 7)
    assert [call["args"][1]["value"] for call in read(tmp_path, "forward").values()] == [0, 1, 2]


def test_other_words_than_on_and_off_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Please set switch with 'ON' or 'OFF'."):
        Loop(tmp_path).control.set_dump_switch("on")


def test_a_missing_folder_is_named_when_recording_begins(tmp_path):
    with pytest.raises(FileNotFoundError, match="no/where"):
        recording(tmp_path / "no" / "where").__enter__()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        recording(tmp_path / "file").__enter__()
    assert torch.overrides._get_current_function_mode_stack() == []


def test_files_of_an_earlier_process_with_the_same_number_stay(tmp_path):
    old = tmp_path / f"stack_info_{os.getpid()}.json"
    old.write_text("old")
    with recording(tmp_path):
        torch.ones(1)
    assert old.read_text() == "old"
    assert list(json.loads((tmp_path / f"forward_info_{os.getpid()}_1.json").read_text())) == ["Torch*ones*0"]


def test_files_are_for_the_owner_and_the_group(tmp_path):
    with recording(tmp_path):
        torch.ones(1)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


def test_where_error_data_are_to_go_is_remembered(tmp_path):
    with recording(tmp_path, error_data_path=str(tmp_path / "errors")):
        torch.ones(1)
    (about,) = tmp_path.glob("rank_info_*.json")
    facts = json.loads(about.read_text())
    assert facts["error_data_path"] == str(tmp_path / "errors") and facts["pid"] == os.getpid()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"real_data": 1}, "real_data must be bool type"),
        ({"dump_path": 3}, "dump_path must be str type"),
        ({"target_iter": True}, "target_iter must be int type"),
        ({"target_iter": -1}, "target_iter must be greater than 0"),
        ({"target_iter": [0, True]}, "target_iter cannot contain boolean values"),
        ({"target_iter": [0, "1"]}, "All elements in target_iter must be of int type"),
        ({"target_iter": [0, -1]}, "All elements in target_iter must be greater than or equal to 0"),
        ({"white_list": ["relu", 3]}, "All elements in white_list must be of str type"),
        ({"white_list": ["reluu"]}, "reluu is not in support_wrap_ops.yaml, please check the white_list"),
        ({"api_list": "some"}, "api_list must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused_and_change_nothing(settings, words):
    config = Config()
    with pytest.raises(ValueError, match=words):
        config.update_config(error_data_path="x", **settings)
    assert vars(config) == vars(Config())
    with pytest.raises(TypeError):
        config.update_config(dump_paths="x")


def test_settings_that_are_not_given_stay():
    config = Config()
    config.update_config("some/where", real_data=True)
    config.update_config(target_iter=[3])
    assert (config.dump_path, config.real_data, config.target_iter) == ("some/where", True, [3])


def test_workers_of_a_loader_record_nothing(tmp_path):
    with pytest.raises(Exception, match=EXIT):
        Loop(tmp_path, workers=2).run()
    assert len(list(tmp_path.glob("*_info_*.json"))) == 4 and recorded_batches(tmp_path) == [1]


def test_a_forked_child_records_into_files_of_its_own(tmp_path):
    record = recording(tmp_path)
    record.control.follow_loaders()
    with record:
        torch.ones(1)
        child = os.fork()
        if child == 0:
            torch.zeros(1)
            with record:
                torch.eye(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        torch.ones(1)
    record.control.restore()
    calls = {path.name: list(json.loads(path.read_text())) for path in tmp_path.glob("forward_info_*.json")}
    assert calls == {
        f"forward_info_{os.getpid()}.json": ["Torch*ones*0", "Torch*ones*1"],
        f"forward_info_{child}.json": ["Torch*eye*0"],
    }


KILLED = """
import sys, torch
from ait_llm.api_check import dump
dump.config.update_config(dump_path=sys.argv[1])
dump.set_dump_switch("ON")
print("on", flush=True)
x = torch.ones(64, requires_grad=True)
while True:
    (x * 2).sum().backward()
"""


def test_a_process_that_is_killed_leaves_whole_files(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE)
    process.stdout.readline()
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    forward, stack, backward = (read(tmp_path, kind) for kind in ("forward", "stack", "backward"))
    assert len(forward) > 100 and list(stack)[: len(forward)] == list(forward)
    assert len(stack) - len(forward) <= 1 and set(backward) < set(forward)
