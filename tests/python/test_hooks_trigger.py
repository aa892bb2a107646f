"""register_hook(when=…): statistics of all rounds, tensors only around those in which something happens."""

import logging
import os
import signal
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from ait_llm.dump.torch_dump import rounds
from ait_llm.dump.torch_dump.zero_edit import config_of
from hook_models import Failing, Model, X, load, manifest_of
from torch_oracle import assert_same_tensor


def run(model, inputs, tmp_path, **options):
    config = options.pop("config", None) or DumpConfig(str(tmp_path))
    with register_hook(model, config, **options) as handle:
        for each in inputs:
            model(each)
    return handle


def rounds_with(handle, pattern):
    return sorted({int(path.relative_to(handle.folder).parts[0]) for path in Path(handle.folder).glob(pattern)})


def rounds_with_tensors(handle):
    return rounds_with(handle, "*/*/*.pth")


def planted(count, at, value):
    inputs = [X + 0.001 * number for number in range(count)]
    inputs[at] = torch.full_like(X, value)
    return inputs


def test_tensors_are_kept_of_the_rounds_around_a_nan_and_statistics_of_all(tmp_path):
    model, inputs = Model(), planted(20, 12, float("nan"))
    handle = run(model, inputs, tmp_path, when="nan,inf", keep=3)
    assert rounds_with_tensors(handle) == [9, 10, 11, 12, 13, 14, 15]
    assert rounds_with(handle, "[0-9]*/**/statistics.csv") == list(range(20))
    for number in (9, 12, 15):
        assert_same_tensor(load(handle, str(number), "root", "input_0.pth"), inputs[number])
    manifest = manifest_of(handle)
    assert (manifest["state"], manifest["incomplete_because"]) == ("complete", [])
    (event,) = manifest["when"].pop("held")
    assert event == {
        "round": 12,
        "condition": "nan",
        "module": "root.blocks.0.fc",  # the first that computed one
        "tensor": "output",
        "statistic": "max",
        "value": "nan",
    }
    assert manifest["when"] == {
        "conditions": "nan,inf",
        "keep": 3,
        "rounds_watched": 20,
        "held_more_often": 0,
        "rounds_with_tensors": [[9, 15]],
        "other_rounds": "their tensors were not kept, as was asked for; their statistics were",
    }
    tensors = manifest["tensors"]
    there = len(list(Path(handle.folder).glob("*/*/*.pth")))
    assert tensors["written"] == tensors["submitted"] == there + tensors["removed"]
    assert there == 7 * tensors["written"] // 20


def test_where_nothing_happens_no_tensor_is_kept_and_nothing_is_missing(tmp_path):
    handle = run(Model(), [X] * 9, tmp_path, when="nan,inf,norm>1e6,spike=50")
    assert rounds_with_tensors(handle) == []
    manifest = manifest_of(handle)
    assert manifest["state"] == "complete"
    assert (manifest["when"]["held"], manifest["when"]["rounds_with_tensors"]) == ([], [])
    assert manifest["tensors"]["removed"] == manifest["tensors"]["written"] > 0


def test_every_nth_round_is_kept(tmp_path):
    handle = run(Model(), [X] * 9, tmp_path, when="every=4")
    assert rounds_with_tensors(handle) == [0, 4, 8]


def test_a_spike_is_seen_with_its_median(tmp_path):
    handle = run(Model(), planted(20, 15, 1e4), tmp_path, when="spike=100", keep=0)
    (event,) = manifest_of(handle)["when"]["held"]
    assert (event["round"], event["condition"], event["statistic"]) == (15, "spike=100", "norm")
    assert float(event["value"]) > 100 * float(event["median"]) > 0
    assert rounds_with_tensors(handle) == [15]


def test_infinite_masks_are_no_event(tmp_path):
    class Masked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.softmax = torch.nn.Softmax(-1)

        def forward(self, x, mask):
            return self.softmax(x + mask)

    mask = torch.zeros(3, 4)
    mask[:, 2] = -torch.inf
    model = Masked()
    with register_hook(model, DumpConfig(str(tmp_path)), when="inf") as handle:
        for _ in range(4):
            model(X, mask)
    assert manifest_of(handle)["when"]["held"] == []


def test_only_the_rounds_of_a_token_range_are_watched(tmp_path):
    config = DumpConfig(str(tmp_path), token_range=[2, 5, 6, 7, 8])
    handle = run(Model(), planted(12, 7, float("nan")), tmp_path, config=config, when="nan", keep=1)
    assert rounds_with_tensors(handle) == [6, 7, 8]
    assert rounds_with(handle, "[0-9]*/**/statistics.csv") == [2, 5, 6, 7, 8]
    assert config.when is None and config.dump_statistics_mode == 0  # the script's own


def test_rounds_that_raise_are_rounds(tmp_path):
    model = Failing()
    with register_hook(model, DumpConfig(str(tmp_path)), when="nan", keep=1) as handle:
        for number in range(8):
            model.fails = number % 2 == 0
            try:
                model(X if number != 5 else X * float("nan"))
            except Exception as error:
                assert number % 2 == 0, error
    assert manifest_of(handle)["when"]["rounds_watched"] == 8
    assert rounds_with_tensors(handle) == [4, 5, 6]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"when": "nans"}, "when: 'nans' is no condition: give a comma list of nan, inf, norm>X, every=N and spike=F"),
        ({"when": ""}, "when: '' stands where a condition is expected"),
        ({"when": "nan,spike=1"}, "'spike=1' is no condition, F must be a number above 1"),
        ({"when": ["nan"]}, "when must be a list of conditions such as \"nan,spike=10\", not ['nan']"),
        ({"when": "nan", "keep": -1}, "keep must be a number of rounds from 0 to 1000, not -1"),
        ({"when": "nan", "keep": True}, "keep must be a number of rounds from 0 to 1000, not True"),
    ],
)
def test_what_makes_no_sense_is_said_and_nothing_is_recorded(tmp_path, caplog, options, words):
    model = Model()
    with caplog.at_level(logging.ERROR, "ait_llm"):
        handle = run(model, [X], tmp_path, **options)
    assert words in caplog.text and "nothing will be recorded" in caplog.text
    assert handle.folder is None and list(tmp_path.iterdir()) == []


def test_statistics_alone_and_a_condition_for_tensors_contradict_each_other(tmp_path, caplog):
    config = DumpConfig(str(tmp_path), dump_statistics_mode=1)
    assert run(Model(), [X], tmp_path, config=config, when="nan").folder is None
    assert "dump_statistics_mode 1 asks for none" in caplog.text


def test_variables_for_a_script_that_knows_nothing_of_it(tmp_path):
    config = config_of({"AIT_TORCH_DUMP_PATH": str(tmp_path), "AIT_TORCH_WHEN": "nan,every=5", "AIT_TORCH_KEEP": "7"})
    assert (config.when, config.keep, config.dump_statistics_mode) == ("nan,every=5", 7, 2)
    assert 10**9 in config.token_range and str(config.token_range) == "all"
    environ = {"AIT_TORCH_DUMP_PATH": str(tmp_path), "AIT_TORCH_WHEN": "nan", "AIT_TORCH_TOKEN_RANGE": "3,5"}
    assert [number for number in range(9) if number in config_of(environ).token_range] == [3, 4, 5]
    assert config_of({"AIT_TORCH_DUMP_PATH": str(tmp_path)}).when is None
    for wrong in ({"AIT_TORCH_WHEN": "nope"}, {"AIT_TORCH_WHEN": "nan", "AIT_TORCH_KEEP": "-1"}):
        with pytest.raises(ValueError, match="AIT_TORCH_WHEN, AIT_TORCH_KEEP and AIT_TORCH_SKETCH: "):
            config_of({"AIT_TORCH_DUMP_PATH": str(tmp_path), **wrong})


def test_a_killed_process_leaves_its_last_rounds(tmp_path):
    model = Model()
    handle = register_hook(model, DumpConfig(str(tmp_path)), when="nan", keep=2)
    child = os.fork()
    if child == 0:
        for _ in range(10):
            model(X)
        handle.flush()
        Path(tmp_path, "path").write_text(handle.folder)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    handle.remove()
    folder = Path(Path(tmp_path, "path").read_text())
    assert sorted({int(path.parts[-3]) for path in folder.glob("*/*/*.pth")}) == [
        7,
        8,
        9,
    ]  # the last has not been judged yet
    for path in folder.glob("*/*/*.pth"):
        torch.load(path, weights_only=True)


def test_a_manifest_does_not_grow_with_the_rounds(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "MAX_DESCRIBED", 10)
    handle = run(Model(), [X] * 40, tmp_path, when="nan")
    manifest = manifest_of(handle)
    assert list(manifest["rounds"]) == [str(each) for each in (*range(5), *range(33, 40))]
    described = manifest["rounds"]["39"]
    assert described["expected"] == described["seen"] == 8
    summed = manifest["rounds_summed_up"]
    assert summed == {"count": 28, "expected": 28 * 8, "seen": 28 * 8, "calls": 28 * 8, "function_calls": 0}
