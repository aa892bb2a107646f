"""The native side of the hooks, and the way from a device to it with a device that is only pretended."""

import os
import random
import subprocess
import sys

import ait_llm
import pytest
import torch
from ait_llm import _native
from ait_llm.dump.torch_dump import pinned
from ait_llm.dump.torch_dump.pinned import PinnedLane
from ait_llm.dump.torch_dump.store import operand
from hook_models import DTYPES
from torch_oracle import assert_same_tensor


def load(path):
    return torch.load(path, weights_only=True)


def test_an_account_knows_what_became_of_its_files_and_of_no_others(tmp_path):
    recorder = _native.Recorder(1 << 20, 2)
    (tmp_path / "file").write_text("in the way")
    good, bad = _native.Account(), _native.Account()
    for index in range(10):
        recorder.submit(good, os.fsencode(tmp_path / f"{index}.pth"), operand(torch.full((3,), float(index))))
        recorder.submit(bad, os.fsencode(tmp_path / "file" / f"{index}.pth"), operand(torch.zeros(2)))
    recorder.submit_text(good, os.fsencode(tmp_path / "x.txt"), b"text")
    recorder.flush()
    assert (good.submitted, good.written, good.failed, good.first_failure) == (11, 11, 0, None)
    assert good.submitted_bytes == good.written_bytes == 10 * 12 + 4
    assert (bad.submitted, bad.written, bad.failed, bad.written_bytes) == (10, 0, 10, 0)
    assert bad.first_failure.startswith(f"{tmp_path}/file/") and "Not a directory" in bad.first_failure
    for index in range(10):
        assert load(tmp_path / f"{index}.pth").tolist() == [float(index)] * 3


def test_of_several_texts_for_one_path_the_last_wins(tmp_path):
    recorder = _native.Recorder(1 << 20, 4)
    for index in range(200):
        recorder.submit_text(_native.Account(), os.fsencode(tmp_path / "x.json"), b"%d" % index)
    recorder.flush()
    assert (tmp_path / "x.json").read_bytes() == b"199"


def test_tensors_larger_than_what_may_wait_are_written(tmp_path):
    recorder = _native.Recorder(1 << 16, 2)
    tensors = [torch.arange(100_000), torch.arange(100_000).reshape(100, 1000).t()]
    for index, tensor in enumerate(tensors):
        recorder.submit(_native.Account(), os.fsencode(tmp_path / f"{index}.pth"), operand(tensor))
    recorder.flush()
    for index, tensor in enumerate(tensors):
        assert_same_tensor(load(tmp_path / f"{index}.pth"), tensor)


def test_lent_memory_never_lends_a_byte_twice_and_gets_all_back():
    generator = random.Random(5)
    lent = _native.LentMemory(1 << 20, 64 * 256)
    taken = {}
    refused = 0
    for _ in range(5000):
        if taken and generator.random() < 0.5:
            offset = generator.choice(list(taken))
            lent.give_back(offset, taken.pop(offset))
            continue
        size = generator.choice([0, 1, 255, 256, 257, 1000, 5000])
        offset = lent.reserve(size)
        if offset is None:
            refused += 1
            continue
        assert offset + size <= lent.bytes
        for other, length in taken.items():
            assert offset + size <= other or other + max(length, 1) <= offset
        taken[offset] = size
    assert refused > 100
    for offset, size in taken.items():
        lent.give_back(offset, size)
    assert lent.reserve(lent.bytes) == 0  # in one piece again
    assert lent.reserve(1) is None


def test_memory_that_was_not_lent_is_refused():
    recorder, account = _native.Recorder(1 << 20, 1), _native.Account()
    lent = _native.LentMemory(1 << 20, 4096)
    for offset, dtype, shape in [
        (0, "float32", [1025]),
        (4096, "uint8", [1]),
        (2**63, "uint8", [1]),
        (0, "uint8", [2**40, 2**40]),
        (0, "uint8", [-1]),
        (0, "nonsense", [1]),
    ]:
        with pytest.raises(ait_llm.AitError):
            recorder.submit_lent(account, b"/nowhere/x.pth", lent, offset, dtype, shape)
    assert account.submitted == 0


class Device:
    """Streams and events of a device that is behind by some events."""

    now = "the model's"

    class Event:
        lag = 3
        recorded = 0

        def record(self, stream):
            self.stream = stream
            Device.Event.recorded += 1
            self.due = Device.Event.recorded + Device.Event.lag

        def query(self):
            return Device.Event.recorded >= self.due

        def synchronize(self):
            Device.Event.recorded = max(Device.Event.recorded, self.due)

    @staticmethod
    def current_stream(device):
        return Device.now


@pytest.fixture
def lane():
    return PinnedLane(torch.device("cpu"), torch.empty(1 << 20, dtype=torch.uint8), Device)


def test_tensors_pass_through_page_locked_memory_whatever_their_type_and_order(lane, tmp_path, monkeypatch):
    recorder, account = _native.Recorder(1 << 20, 2), _native.Account()
    generator = random.Random(7)
    expected = {}
    for index in range(300):
        dtype = generator.choice(DTYPES)
        shape = generator.choice([(), (0,), (3,), (100, 7), (2, 0, 3), (300, 100)])
        size = torch.empty(0, dtype=dtype).element_size()
        count = torch.Size(shape).numel() * size
        raw = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), dtype=torch.uint8)
        tensor = raw.view(dtype).reshape(shape)
        if generator.random() < 0.3 and tensor.dim() == 2:
            tensor = tensor.t()
        path = tmp_path / f"{index}.pth"
        expected[path] = tensor.clone()
        monkeypatch.setattr(Device, "now", generator.choice(["the model's", "the model's", "another"]))
        assert lane.submit(recorder, account, os.fsencode(path), tensor)
        raw.zero_()  # the tensor may change as soon as submit has returned
    lane.hand_over(recorder)
    recorder.flush()
    assert (account.submitted, account.written) == (300, 300)
    for path, tensor in expected.items():
        assert_same_tensor(load(path), tensor)
    assert lane._blocks[0].lent.reserve(lane._blocks[0].lent.bytes) == 0  # everything came back


def test_copies_are_waited_for_on_their_own_stream(lane, monkeypatch):
    recorder, account = _native.Recorder(1 << 20, 1), _native.Account()
    for stream in ("one", "one", "two", "one"):
        monkeypatch.setattr(Device, "now", stream)
        assert lane.submit(recorder, account, b"/nowhere/x.pth", torch.zeros(10))
    lane._end_batch()
    assert [(batch.event.stream, len(batch.copies)) for batch in lane._batches] == [("one", 2), ("two", 1), ("one", 1)]


def test_a_tensor_larger_than_the_page_locked_memory_goes_another_way(lane):
    recorder = _native.Recorder(1 << 20, 1)
    assert not lane.submit(recorder, _native.Account(), b"/nowhere/x.pth", torch.zeros(1 << 20))


def test_page_locked_memory_grows_while_the_disk_does_not_keep_up_and_no_further(monkeypatch, tmp_path):
    monkeypatch.setattr(pinned, "_pinned", lambda nbytes: torch.empty(nbytes, dtype=torch.uint8))
    limit = 8 << 20
    lane = PinnedLane(torch.device("cpu"), torch.empty(1 << 20, dtype=torch.uint8), Device, limit)
    recorder, account = _native.Recorder(32 << 20, 2), _native.Account()
    expected = [torch.full(((1 << 20) + index,), index % 251, dtype=torch.uint8) for index in range(40)]
    expected.append(torch.arange(3 << 20, dtype=torch.int32).view(torch.uint8)[: 3 << 20])
    for index, tensor in enumerate(expected):
        assert lane.submit(recorder, account, os.fsencode(tmp_path / f"{index}.pth"), tensor)
    assert not lane.submit(recorder, account, b"/nowhere/x.pth", torch.zeros(limit, dtype=torch.uint8))
    lane.hand_over(recorder)
    recorder.flush()
    for index, tensor in enumerate(expected):
        assert_same_tensor(load(tmp_path / f"{index}.pth"), tensor)
    sizes = [block.lent.bytes for block in lane._blocks]
    assert len(sizes) > 1 and sum(sizes) <= limit
    assert all(block.lent.reserve(block.lent.bytes) == 0 for block in lane._blocks)


def test_where_no_more_memory_is_to_be_had_the_rest_serves(monkeypatch, tmp_path):
    monkeypatch.setattr(pinned, "_pinned", lambda nbytes: torch.empty(-1))  # a RuntimeError
    lane = PinnedLane(torch.device("cpu"), torch.empty(1 << 20, dtype=torch.uint8), Device, 1 << 30)
    recorder, account = _native.Recorder(1 << 20, 1), _native.Account()
    for index in range(5):
        assert lane.submit(recorder, account, os.fsencode(tmp_path / f"{index}.pth"), torch.zeros(200_000))
    assert not lane.submit(recorder, account, b"/nowhere/x.pth", torch.zeros(1 << 20))
    lane.hand_over(recorder)
    recorder.flush()
    assert account.written == 5


def test_a_copy_that_fails_gives_its_memory_back(lane, monkeypatch):
    recorder = _native.Recorder(1 << 20, 1)
    monkeypatch.setattr(Device, "current_stream", lambda device: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lane.submit(recorder, _native.Account(), b"/nowhere/x.pth", torch.zeros(100))
    assert lane._blocks[0].lent.reserve(lane._blocks[0].lent.bytes) == 0


@pytest.mark.parametrize("value, text", [(3.0, "3.0"), (1e-5, "1e-05"), (0.1, "0.1"), (float("nan"), "nan")])
def test_numbers_are_written_as_in_reports(value, text):
    assert _native.number_text(value) == text


@pytest.mark.parametrize("by_dlpack", [True, False])
def test_every_type_shape_and_layout_is_measured_whatever_torch_is_asked(by_dlpack):
    """Where torch has DLPack's table of functions, it is asked by that; otherwise question by question."""
    code = """
import sys
from ait_llm import _native
if sys.argv[1] == "False":
    set_torch = _native.set_torch
    _native.set_torch = lambda *arguments: set_torch(*arguments[:5])
from statistics_cases import cases, faults, measured
names, tensors = zip(*cases())
rows, ways = measured(tensors)
for fault in faults(names, tensors, rows):
    print(fault)
assert ways["cpu"] > 0.9 * sum(tensor.numel() > 0 for tensor in tensors), ways
"""
    environ = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
    command = [sys.executable, "-c", code, str(by_dlpack)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
