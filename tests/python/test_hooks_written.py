"""A tensor that is met again in its round gets a further name for its file in place of a second copy.

That is for tensors on a device; here those on the CPU are taken for such ones. On a GPU: test_cuda_tensors.py.
"""

import os
import shutil
import threading
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, _native, register_hook
from ait_llm.dump.torch_dump import process
from ait_llm.dump.torch_dump.store import Store, operand
from ait_llm.dump.torch_dump.written import Written
from hook_models import manifest_of


@pytest.fixture
def far(monkeypatch):
    """Every tensor is on a device."""
    monkeypatch.setattr(Written, "remembers", staticmethod(lambda tensor: not tensor.is_inference()))
    monkeypatch.setattr(process._process, "store", Store())


class Restless(torch.nn.Module):
    """Passes tensors on, in place changes among them."""

    def __init__(self):
        super().__init__()
        self.fc, self.same, self.after, self.last = (torch.nn.Linear(8, 8), *(torch.nn.Identity() for _ in range(3)))

    def forward(self, x):
        y = self.same(self.fc(x))
        y = self.same(y)
        y = self.after(y.mul_(2))
        return self.last(y.t()), self.last(y)


def contents(handle):
    root = Path(handle.folder)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.pth")}


def record(model, folder, rounds=(0,), context=torch.no_grad, when=None, **config):
    torch.manual_seed(1)
    config = DumpConfig(str(folder), token_range=list(rounds), **config)
    with register_hook(model, config, when=when) as handle, context():
        for _ in range(max(rounds) + 1):
            model(torch.randn(8, 8))
    return handle


def test_the_files_are_those_of_a_recording_that_copies_every_tensor(tmp_path, far, monkeypatch):
    model = Restless()
    config = dict(rounds=(0, 1), dump_weight=True, store_as="bf16")
    ours = record(model, tmp_path / "ours", **config)
    again = manifest_of(ours)["tensors"]["linked"]
    monkeypatch.setattr(Written, "remembers", staticmethod(lambda tensor: False))
    plain = record(model, tmp_path / "plain", **config)
    assert contents(ours) == contents(plain)
    # Each round: `same` is called twice and gives what it gets; `after` gives what it gets, which `last` gets.
    assert again >= 2 * 6 and manifest_of(plain)["tensors"]["linked"] == 0
    for name in ("submitted", "written", "written_bytes", "failed"):
        assert manifest_of(ours)["tensors"][name] == manifest_of(plain)["tensors"][name]
    assert manifest_of(ours)["state"] == "complete"
    assert manifest_of(ours)["stored_otherwise"] == manifest_of(plain)["stored_otherwise"]


def test_a_tensor_that_was_changed_in_place_is_written_again(tmp_path, far):
    handle = record(Restless(), tmp_path)
    names = ["root.fc/output", "root.same#1/output", "root.after/input_0", "root.last/input_0", "root.last#1/input_0"]
    fc, same, after, turned, last = (os.stat(f"{handle.folder}/0/{name}.pth").st_ino for name in names)
    assert fc == same != after == last != turned


def test_without_counters_every_tensor_is_copied(tmp_path, far):
    handle = record(Restless(), tmp_path, context=torch.inference_mode)
    assert manifest_of(handle)["tensors"]["linked"] == 0
    assert len(contents(handle)) == manifest_of(handle)["tensors"]["written"]


def test_files_of_their_own_are_copies(tmp_path, far, monkeypatch):
    monkeypatch.setenv("AIT_TORCH_LINKS", "0")
    handle = record(Restless(), tmp_path)
    assert manifest_of(handle)["tensors"]["linked"] == 0
    assert all(path.stat().st_nlink == 1 for path in Path(handle.folder).rglob("*.pth"))


def test_rounds_that_are_removed_take_nothing_along(tmp_path, far):
    handle = record(Restless(), tmp_path, rounds=range(7), when="every=3")
    tensors = manifest_of(handle)["tensors"]
    assert tensors["failed"] == 0 and tensors["removed"] > 0
    kept = {name.split("/")[0] for name in contents(handle)}
    per_round = tensors["written"] // 7
    assert len(contents(handle)) == len(kept) * per_round


def test_what_was_taken_away_is_written_by_the_next_round(tmp_path, far):
    model, x = Restless(), torch.randn(8, 8)
    with register_hook(model, DumpConfig(str(tmp_path), token_range=[0, 1])) as handle, torch.no_grad():
        model(x)
        handle.flush()
        shutil.rmtree(os.path.join(handle.folder, "0"))
        model(x)
    assert manifest_of(handle)["tensors"]["failed"] == 0
    assert len(contents(handle)) == manifest_of(handle)["tensors"]["written"] // 2


def test_a_tensor_that_has_gone_is_not_taken_for_its_successor():
    written, path = Written(), "0/a.pth"
    written.remembers = lambda tensor: True
    for _ in range(100):
        tensor = torch.randn(4)
        assert written.find(tensor, "0") is None
        written.add(tensor, "0", path, 16)
        assert written.find(tensor, "0") == (path, 16)
        assert written.find(tensor, "1") is None
        assert written.find(tensor.view(2, 2), "0") is None
        del tensor


def test_a_first_file_that_could_not_be_written_is_a_failure_of_both(tmp_path):
    recorder, account = _native.Recorder(1 << 20, 3), _native.Account()
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    recorder.submit(account, os.fsencode(blocked / "first.pth"), operand(torch.ones(8)))
    recorder.submit_again([(account, os.fsencode(tmp_path / "second.pth"), os.fsencode(blocked / "first.pth"), 32)])
    recorder.flush()
    assert (account.submitted, account.written, account.failed) == (2, 0, 2)
    assert not (tmp_path / "second.pth").exists()


def test_repeats_and_removals_of_several_threads_wait_for_nobody_forever(tmp_path):
    recorder, account = _native.Recorder(1 << 20, 5), _native.Account()

    def work(number):
        for round_ in range(20):
            folder = tmp_path / f"{number}_{round_}" / "module"
            first = os.fsencode(folder / "first.pth")
            recorder.submit(account, first, operand(torch.full((64,), float(number))))
            recorder.submit_again([(account, os.fsencode(folder / f"{i}.pth"), first, 256) for i in range(10)])
            if round_ % 2:
                recorder.remove_tensors(account, os.fsencode(folder.parent))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.flush()
    assert (account.submitted, account.failed, account.removed) == (4 * 20 * 11, 0, 4 * 10 * 11)
    assert len(list(tmp_path.rglob("*.pth"))) == 4 * 10 * 11
