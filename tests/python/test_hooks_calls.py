"""Which call belongs to which round, and what stays behind when a recording ends."""

import contextlib
import copy
import gc
import io
import os
import pickle
import threading
import weakref
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from hook_models import Failing, Model, X, listeners_of, manifest_of, record, state_of
from torch_oracle import Watcher, assert_recorded, recorded

# Calls


def test_repeated_calls_of_a_module_are_kept_apart(tmp_path):
    class Loop(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 4)

        def forward(self, x):
            for _ in range(3):
                x = self.fc(x)
            return x

    model = Loop()
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1])) as handle, Watcher(model) as watcher:
        model(X)
        model(X)
    assert set(watcher.calls[1]) == {"root", "root.fc", "root.fc#1", "root.fc#2"}
    assert_recorded(handle.folder, watcher.calls, rounds=[0, 1])


def test_a_root_that_calls_itself_is_one_round(tmp_path):
    class Recursive(torch.nn.Module):
        def forward(self, x, depth=2):
            return x if depth == 0 else self(x + 1, depth - 1)

    model = Recursive()
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1])) as handle:
        model(X)
        model(X + 10)
    found = recorded(handle.folder)
    assert {number: set(calls) for number, calls in found.items()} == {n: {"root", "root#1", "root#2"} for n in (0, 1)}
    assert torch.equal(found[1]["root#2"]["input_0.pth"], X + 12)


def test_modules_called_outside_the_root_belong_to_the_latest_round(tmp_path):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path), [0, 2])) as handle:
        model.head(X)
        model(X)
        model.head(X + 1)
        model(X)
        model.head(X + 2)
        model(X)
        model.head(X + 3)
    found = recorded(handle.folder)
    heads = {
        (number, name): files["input_0.pth"]
        for number, calls in found.items()
        for name, files in calls.items()
        if "head" in name
    }
    names = {0: ("root.head", "root.head#1", "root.head#2"), 2: ("root.head", "root.head#1")}
    assert set(heads) == {(number, name) for number, each in names.items() for name in each}
    assert torch.equal(heads[0, "root.head"], X)
    assert torch.equal(heads[0, "root.head#2"], X + 1)
    assert torch.equal(heads[2, "root.head#1"], X + 3)


def test_a_call_that_raises_is_raised_and_what_came_before_is_there(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), Failing())
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1])) as handle:
        with pytest.raises(ArithmeticError):
            model(X)
        model[1].fails = False
        model(X)
    found = recorded(handle.folder)
    assert set(found[0]) == {"root", "root.0", "root.1", "root.1.fc"}
    assert set(found[0]["root"]) == {"input_0.pth"}
    assert set(found[1]["root"]) == {"input_0.pth", "output.pth"}
    rounds = manifest_of(handle)["rounds"]
    assert (rounds["0"]["state"], rounds["1"]["state"]) == ("raised", "finished")
    assert rounds["0"]["never_ran"] == ["root", "root.1"]


def test_an_exception_that_the_model_catches_does_not_disturb_the_count(tmp_path):
    class Catching(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.failing = Failing()
            self.head = torch.nn.Linear(4, 4)

        def forward(self, x):
            with contextlib.suppress(ArithmeticError):
                x = self.failing(x)
            return self.head(x)

    model = Catching()
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1])) as handle:
        model(X)
        model(X)
    for number in (0, 1):
        assert set(recorded(handle.folder)[number]) == {"root", "root.failing", "root.failing.fc", "root.head"}
    assert manifest_of(handle)["rounds"]["1"]["state"] == "finished"


def test_threads_have_rounds_of_their_own(tmp_path):
    model = Model()
    barrier = threading.Barrier(4)

    class Meeting(torch.nn.Module):
        def forward(self, x):
            barrier.wait(30)
            return x

    model.blocks[1].act = Meeting()  # all are inside the model at once
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1, 3])) as handle:
        threads = [threading.Thread(target=model, args=(X * (i + 1),)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = recorded(handle.folder)
    assert set(found) == {0, 1, 3}
    for calls in found.values():
        assert len(calls) == 8
        assert torch.equal(calls["root"]["input_0.pth"], calls["root.blocks.0"]["input_0.pth"])
        assert torch.equal(calls["root.head"]["output.pth"], calls["root"]["output.pth"])
    assert len({float(calls["root"]["input_0.pth"][0, 0]) for calls in found.values()}) == 3


# Handles


def test_nothing_is_on_the_model_and_remove_takes_the_rest_away(tmp_path):
    model = Model()
    before, of_torch = state_of(model), dict(vars(torch.nn.Module))
    handle = register_hook(model, DumpConfig(str(tmp_path)))
    assert state_of(model) == before and listeners_of(model)
    model(X)
    assert state_of(model) == before
    handle.remove()
    handle.remove()
    assert listeners_of(model) == [] and dict(vars(torch.nn.Module)) == of_torch
    model(X)
    assert set(recorded(handle.folder)) == {0}


def test_outside_the_rounds_only_the_root_is_listened_to(tmp_path):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path), [1])):
        assert len(listeners_of(model)) == 1
        model(X)
        assert len(listeners_of(model)) == 1
        model(X)
        assert len(listeners_of(model)) == len(list(model.modules()))
        model(X)
        assert len(listeners_of(model)) == 1


def test_models_and_configurations_are_recorded_side_by_side(tmp_path):
    one, other = Model(), torch.nn.Sequential(Model(), torch.nn.Linear(2, 2))
    handles = [
        register_hook(one, DumpConfig(str(tmp_path))),
        register_hook(other, DumpConfig(str(tmp_path), [1])),
        register_hook(one, DumpConfig(str(tmp_path), [0, 1], [torch.nn.Linear])),
        register_hook(other[0], DumpConfig(str(tmp_path / "inner"), [0, 1])),
    ]
    base = tmp_path / "ait_dump" / "torch_tensors" / f"cpu_{os.getpid()}"
    assert [handle.folder for handle in handles[:3]] == [str(base), f"{base}_1", f"{base}_2"]
    with Watcher(one) as of_one:
        one(X)
        one(X + 1)
    with Watcher(other) as of_other, Watcher(other[0]) as of_inner:
        other(X)
        other(X + 1)
    for handle in handles:
        handle.remove()
    assert listeners_of(one) == listeners_of(other) == []
    assert_recorded(handles[0].folder, of_one.calls, rounds=[0])
    assert_recorded(handles[1].folder, of_other.calls, rounds=[1])
    assert_recorded(handles[3].folder, of_inner.calls, rounds=[0, 1])
    assert {name for calls in recorded(handles[2].folder).values() for name in calls} == {
        "root.blocks.0.fc",
        "root.blocks.1.fc",
        "root.head",
    }


def test_the_same_again_is_a_warning_and_the_same_recording(tmp_path, caplog):
    model = Model()
    first = register_hook(model, DumpConfig(str(tmp_path)))
    second = register_hook(model, DumpConfig(str(tmp_path)))
    assert caplog.messages == ["dump_data has been register in model."]
    assert second.folder == first.folder
    second.remove()
    assert listeners_of(model) == []
    third = register_hook(model, DumpConfig(str(tmp_path)))
    model(X)
    third.remove()
    assert third.folder == f"{first.folder}_1"
    assert 0 in recorded(third.folder)


def test_a_folder_of_an_older_process_of_the_same_number_is_left_alone(tmp_path):
    old = tmp_path / "ait_dump" / "torch_tensors" / f"cpu_{os.getpid()}" / "7"
    old.mkdir(parents=True)
    handle = record(Model(), tmp_path, X)
    assert handle.folder.endswith(f"cpu_{os.getpid()}_1")
    assert list(old.parent.iterdir()) == [old]


def test_a_model_is_freed_as_if_nobody_had_listened(tmp_path):
    model = Model()
    handle = register_hook(model, DumpConfig(str(tmp_path)))
    output = model(X)
    graph = weakref.ref(output)
    seen = weakref.ref(model)
    del model, output
    gc.collect()
    assert seen() is None and graph() is None
    handle.remove()
    assert manifest_of(handle)["state"] == "complete"


def test_no_activation_is_kept_alive_by_a_recording(tmp_path):
    alive = []

    class Watching(torch.nn.Module):
        def forward(self, x):
            y = x * 2
            alive.append(weakref.ref(y))
            return y

    model = torch.nn.Sequential(Watching(), torch.nn.Linear(4, 4), torch.nn.ReLU())
    with register_hook(model, DumpConfig(str(tmp_path), dump_statistics_mode=2)), torch.no_grad():
        model(X)
        assert alive[0]() is None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_of_a_model_are_not_recorded(copied, tmp_path):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        other = copied(model)
        for parameter in other.parameters():
            parameter.data.zero_()
        assert float(other(X).abs().max().detach()) == 0.0
        assert torch.equal(model(X), model(X)) and float(model(X).abs().max().detach()) > 0
    assert manifest_of(handle)["root_calls"] == 3
    buffer = io.BytesIO()
    torch.save(other.state_dict(), buffer)


def test_a_model_that_moves_before_its_first_call_has_the_folder_of_its_device(tmp_path):
    model = Model().to("meta")
    handle = register_hook(model, DumpConfig(str(tmp_path), device_id=1))
    model.to_empty(device="cpu")
    model(X)
    handle.remove()
    assert Path(handle.folder).name == f"cpu_{os.getpid()}"
    assert set(recorded(handle.folder)) == {0}
