"""How recorded tensors are stored: what is the same is stored once, by as many threads as the machine has room for."""

import logging
import os
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, _native, register_hook
from ait_llm.dump.torch_dump import capacity, process
from ait_llm.dump.torch_dump.store import Store, operand
from hook_models import Giving, load, manifest_of
from torch_oracle import assert_same_tensor


class Residual(torch.nn.Module):
    """Passes a value on unchanged, as dropout does outside of training, and a mask to everybody."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Identity(), torch.nn.Identity()
        self.fc = torch.nn.Linear(64, 64)
        self.mask = torch.ones(1, 64, 64)

    def forward(self, x):
        return self.second(self.first(self.fc(x)) * self.mask)


def files_of(handle, *parts):
    return os.stat(os.path.join(handle.folder, *parts))


def test_tensors_with_the_same_bytes_are_stored_once(tmp_path, monkeypatch):
    monkeypatch.setenv("AIT_TORCH_WRITERS", "1")  # two may write the same bytes at the same time
    monkeypatch.setattr(process._process, "store", Store())
    model, x = Residual(), torch.randn(1, 64, 64)
    with register_hook(model, DumpConfig(str(tmp_path), token_range=[0, 1, 2])) as handle:
        for each in (x, x, x + 1):
            model(each)
    same = [("0", "root.fc", "output.pth"), ("0", "root.first", "input_0.pth"), ("1", "root.first", "output.pth")]
    assert len({files_of(handle, *parts).st_ino for parts in same}) == 1
    assert files_of(handle, "2", "root.fc", "output.pth").st_ino != files_of(handle, *same[0]).st_ino
    assert_same_tensor(load(handle, "1", "root.second", "output.pth"), load(handle, "0", "root.second", "output.pth"))
    tensors = manifest_of(handle)["tensors"]
    assert manifest_of(handle)["state"] == "complete"
    assert tensors["written"] == tensors["submitted"] == 3 * 8
    inodes = {files_of(folder, name).st_ino for folder, name in all_files(handle)}
    assert tensors["linked"] == tensors["written"] - len(inodes) > 0
    assert tensors["linked_bytes"] == tensors["linked"] * 64 * 64 * 4


class _Folder:
    def __init__(self, folder):
        self.folder = folder


def all_files(handle):
    for folder, _, names in os.walk(handle.folder):
        for name in names:
            if name.endswith(".pth"):
                yield _Folder(folder), name


def test_the_same_bytes_of_another_type_or_shape_are_another_tensor(tmp_path):
    x = torch.randn(32, 64)
    model = Giving([x, x.view(torch.int32), x.view(64, 32), x.t().contiguous()])
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        model()
    for index, tensor in enumerate(model.value[0]):
        assert_same_tensor(load(handle, "0", "root", f"output_{index}.pth"), tensor)
    assert manifest_of(handle)["tensors"]["linked"] == 0


def test_files_of_their_own_can_be_asked_for(tmp_path):
    recorders = {links: _native.Recorder(1 << 20, 2, links) for links in (True, False)}
    for links, recorder in recorders.items():
        account = _native.Account()
        for index in range(3):
            path = os.fsencode(tmp_path / f"{links}{index}.pth")
            recorder.submit(account, path, operand(torch.ones(4096)))
            recorder.flush()
        assert (account.written, account.linked) == (3, 2 if links else 0)


def test_tensors_of_a_round_are_taken_away_after_they_were_written(tmp_path):
    recorder, account = _native.Recorder(1 << 20, 3), _native.Account()
    for index in range(50):
        recorder.submit(account, os.fsencode(tmp_path / "7" / f"m{index}" / "output.pth"), operand(torch.ones(1000)))
        recorder.submit(account, os.fsencode(tmp_path / "8" / f"m{index}" / "output.pth"), operand(torch.ones(1000)))
    recorder.submit_text(_native.Account(), os.fsencode(tmp_path / "7" / "m3" / "statistics.csv"), b"kept")
    recorder.remove_tensors(account, os.fsencode(tmp_path / "7"))
    recorder.remove_tensors(account, os.fsencode(tmp_path / "9"))  # there is none
    recorder.flush()
    assert [str(each.relative_to(tmp_path)) for each in (tmp_path / "7").rglob("*.*")] == ["7/m3/statistics.csv"]
    assert len(list((tmp_path / "8").rglob("*.pth"))) == 50
    assert (account.submitted, account.written, account.removed) == (100, 100, 50)


@pytest.mark.parametrize(
    ("cores", "memory", "threads", "mebibytes"),
    [(1, 1 << 30, 1, 64), (2, 24 << 30, 2, 512), (16, 32 << 30, 16, 2048), (256, 2 << 40, 16, 4096)],
)
def test_writers_grow_with_the_cores_and_their_memory_with_the_machine(monkeypatch, cores, memory, threads, mebibytes):
    monkeypatch.setattr(capacity, "cores", lambda: cores)
    monkeypatch.setattr(capacity, "memory_bytes", lambda: memory)
    assert capacity.writers() == threads
    assert capacity.queued_bytes(threads) == mebibytes << 20


def test_variables_say_how_many_writers_and_how_much_memory(monkeypatch, caplog):
    monkeypatch.setenv("AIT_TORCH_WRITERS", "3")
    monkeypatch.setenv("AIT_TORCH_MEMORY", "77")
    monkeypatch.setenv("AIT_TORCH_LINKS", "0")
    assert (capacity.writers(), capacity.queued_bytes(3), capacity.links()) == (3, 77 << 20, False)
    for text in ("0", "65", "-1", "two", "1.5", "²"):
        monkeypatch.setenv("AIT_TORCH_WRITERS", text)
        with caplog.at_level(logging.WARNING, "ait_llm"):
            assert 1 <= capacity.writers() <= 16
        assert f"AIT_TORCH_WRITERS must be a number from 1 to 64, not {text!r}" in caplog.text


def test_float32_can_be_stored_as_bfloat16_and_everybody_says_so(tmp_path):
    model, x = Residual(), torch.randn(1, 64, 64)
    config = DumpConfig(str(tmp_path), store_as="bf16", dump_weight=True, dump_statistics_mode=2)
    with register_hook(model, config) as handle:
        expected = model(x)
    assert_same_tensor(load(handle, "0", "root", "output.pth"), expected.detach().to(torch.bfloat16))
    assert load(handle, "weights", "root.fc.weight.pth").dtype is torch.bfloat16
    manifest = manifest_of(handle)
    assert manifest["config"]["store_as"] == "bf16" and manifest["state"] == "complete"
    (entry,) = manifest["stored_otherwise"]
    assert entry["reason"] == "float32 is stored as bfloat16, rounded to the nearest, as store_as asks"
    assert entry["count"] == manifest["tensors"]["written"]
    table = next(Path(handle.folder, "0").rglob("statistics.csv")).read_text()
    assert "torch.float32" in table and "bfloat16" not in table  # of what was computed


def test_other_types_are_stored_as_they_are(tmp_path):
    values = [torch.randn(3, dtype=torch.float64), torch.randn(3).half(), torch.arange(3)]
    model = Giving(values)
    with register_hook(model, DumpConfig(str(tmp_path), store_as="bf16")) as handle:
        model()
    for index, tensor in enumerate(values):
        assert_same_tensor(load(handle, "0", "root", f"output_{index}.pth"), tensor)
    assert manifest_of(handle)["stored_otherwise"] == []
