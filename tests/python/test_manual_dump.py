"""dump_data: what it writes, what it says, and what is left when the process dies."""

import json
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import ait_llm
import pytest
import torch
from ait_llm import _native
from ait_llm.dump.manual_dump import dump_data, flush
from tensor_bytes import bytes_of

DTYPES = [
    torch.bool,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
    torch.complex32,
    torch.complex64,
    torch.complex128,
]


def golden_tensor(output, pid=None):
    return Path(output) / "ait_dump" / f"{pid or os.getpid()}_-1" / "golden_tensor"


def entries(folder):
    """{(data id, token id): (golden path, my path)} of a metadata.json."""
    metadata = json.loads((folder / "metadata.json").read_text())
    return {(data, token): tuple(paths) for data, tokens in metadata.items() for token, paths in tokens.items()}


def load(path):
    return torch.load(path, weights_only=True)


def same(loaded, expected):
    assert type(loaded) is torch.Tensor
    assert loaded.dtype == expected.dtype
    assert loaded.shape == expected.shape
    assert loaded.is_contiguous()
    expected = expected.detach().resolve_conj().resolve_neg()
    assert torch.equal(bytes_of(loaded), bytes_of(expected))


def run_python(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )


@pytest.fixture
def my_path(tmp_path):
    path = tmp_path / "my.bin"
    ait_llm.save(path, torch.zeros(1))
    return str(path)


def test_the_steps_of_the_document_lead_to_pairs_that_can_be_compared(tmp_path):
    script = """
import sys, torch
from ait_llm.dump.manual_dump import dump_data
for token in range(3):
    for data in (1, 2, 10):
        golden = torch.arange(6.0).reshape(2, 3) * data + token
        dump_data(token, data, golden, f"{sys.argv[1]}/{token}_{data}.bin", sys.argv[1])
"""
    for token in range(3):
        for data in (1, 2, 10):
            ait_llm.save(tmp_path / f"{token}_{data}.bin", torch.arange(6.0).reshape(2, 3) * data + token)
    process = run_python(script, tmp_path)
    assert process.returncode == 0 and process.stderr == ""
    (folder,) = tmp_path.glob("ait_dump/*_-1/golden_tensor")
    found = entries(folder)
    assert set(found) == {(data, token) for data in ("1", "2", "10") for token in ("0", "1", "2")}
    for (data, token), (golden, my) in found.items():
        assert golden == str(folder / token / f"{data}_tensor.pth")
        assert ait_llm.compare(golden, my).identical


def test_ids_may_be_integers_and_strings(tmp_path, my_path):
    dump_data(0, "layers.0", torch.zeros(1), my_path, tmp_path)
    dump_data("prefill", 7, torch.ones(1), my_path, tmp_path)
    dump_data(torch.tensor(3), 7, torch.ones(1), my_path, tmp_path)
    flush()
    found = entries(golden_tensor(tmp_path))
    assert set(found) == {("layers.0", "0"), ("7", "prefill"), ("7", "3")}
    assert found["7", "prefill"] == (str(golden_tensor(tmp_path) / "prefill" / "7_tensor.pth"), my_path)


def test_the_last_of_two_dumps_of_one_id_wins(tmp_path, my_path):
    for value in (1.0, 2.0):
        dump_data(0, 1, torch.full((2,), value), my_path, tmp_path)
    flush()
    ((golden, _),) = entries(golden_tensor(tmp_path)).values()
    same(load(golden), torch.full((2,), 2.0))


def test_paths_are_absolute(tmp_path, my_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dump_data(0, 1, torch.zeros(1), "my.bin")
    flush()
    assert list(entries(golden_tensor(tmp_path)).values()) == [
        (str(golden_tensor(tmp_path) / "0" / "1_tensor.pth"), my_path)
    ]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_is_saved_bit_for_bit(tmp_path, my_path, dtype):
    size = torch.empty(0, dtype=dtype).element_size()
    generator = torch.Generator().manual_seed(1)
    tensors = []
    for shape in [(), (5,), (0,), (2, 0, 3), (2, 3, 4)]:
        count = torch.Size(shape).numel() * size
        raw = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), generator=generator, dtype=torch.uint8)
        tensors.append(raw.view(dtype).reshape(shape))
    tensors.append(tensors[-1].transpose(0, 2))
    for index, tensor in enumerate(tensors):
        dump_data(0, index, tensor, my_path, tmp_path)
    flush()
    for index, tensor in enumerate(tensors):
        same(load(golden_tensor(tmp_path) / "0" / f"{index}_tensor.pth"), tensor)


BASE = torch.arange(1000.0).reshape(10, 10, 10)
VIEWS = {
    "transposed": BASE.permute(2, 0, 1),
    "steps": BASE[::3, 1::2, 5],
    "expanded": BASE[0, :1].expand(4, 10),
    "overlapping": BASE.as_strided((5, 5), (1, 1), 3),
    "channels last": torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "conjugate": torch.randn(4, dtype=torch.complex64).conj(),
    "negative": torch.randn(4, dtype=torch.complex64).conj().imag,
    "scalar of a view": BASE[1, 2, 3],
    "with gradient": BASE.clone().requires_grad_() * 2,
    "parameter": torch.nn.Parameter(torch.rand(3)),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_views_are_saved_without_what_is_around_them(tmp_path, my_path, kind):
    tensor = VIEWS[kind]
    dump_data(0, 1, tensor, my_path, tmp_path)
    flush()
    path = golden_tensor(tmp_path) / "0" / "1_tensor.pth"
    same(load(path), tensor)
    assert path.stat().st_size < tensor.numel() * tensor.element_size() + 2000


def test_the_tensor_may_change_as_soon_as_dump_data_has_returned(tmp_path, my_path):
    tensor = torch.zeros(1_000_000)
    for token in range(1, 20):
        tensor.fill_(token)
        dump_data(token, 1, tensor, my_path, tmp_path)
        tensor.fill_(-1)
    flush()
    for token in range(1, 20):
        loaded = load(golden_tensor(tmp_path) / str(token) / "1_tensor.pth")
        assert bool((loaded == token).all())


def test_a_tensor_larger_than_the_queue_is_saved(tmp_path, my_path):
    large = torch.arange(24_000_000, dtype=torch.int32)
    for index, tensor in enumerate([large, large.reshape(2, -1).t()]):
        dump_data(0, index, tensor, my_path, tmp_path)
    flush()
    assert torch.equal(load(golden_tensor(tmp_path) / "0" / "0_tensor.pth"), large)
    assert torch.equal(load(golden_tensor(tmp_path) / "0" / "1_tensor.pth"), large.reshape(2, -1).t())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_tensors_of_a_device_lie_in_the_devices_folder(tmp_path, my_path):
    tensor = torch.arange(100, device="cuda:0").reshape(10, 10).t()
    dump_data(0, 1, tensor, my_path, tmp_path)
    flush()
    same(load(tmp_path / "ait_dump" / f"{os.getpid()}_0" / "golden_tensor" / "0" / "1_tensor.pth"), tensor.cpu())


def test_dump_data_works_inside_a_compiled_model(tmp_path, my_path):
    @torch.compile(backend="eager")
    def model(tensor):
        hidden = tensor * 2
        dump_data(0, 1, hidden, my_path, tmp_path)
        return hidden + 1

    assert model(torch.ones(3)).tolist() == [3.0] * 3
    flush()
    same(load(golden_tensor(tmp_path) / "0" / "1_tensor.pth"), torch.full((3,), 2.0))


def test_files_are_for_their_owner(tmp_path, my_path):
    old = os.umask(0)
    dump_data(0, 1, torch.zeros(1), my_path, tmp_path)
    flush()
    os.umask(old)
    folder = golden_tensor(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o750
    for path in (folder / "metadata.json", folder / "0" / "1_tensor.pth"):
        assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make folders of another user")
@pytest.mark.parametrize("how", ["folder", "link"])
def test_nothing_is_written_into_a_folder_of_another_user(tmp_path, my_path, caplog, how):
    planted = tmp_path / "ait_dump"
    if how == "folder":
        planted.mkdir()
    else:
        (tmp_path / "elsewhere").mkdir()
        planted.symlink_to("elsewhere")
    os.chown(planted, 65534, 65534, follow_symlinks=False)
    dump_data(0, 1, torch.ones(3), my_path, tmp_path)
    flush()
    assert list(planted.iterdir()) == []
    assert "belongs to user 65534" in caplog.text


def test_a_link_of_ones_own_may_lead_to_another_disk(tmp_path, my_path):
    (tmp_path / "large").mkdir()
    (tmp_path / "ait_dump").symlink_to("large")
    dump_data(0, 1, torch.ones(3), my_path, tmp_path)
    flush()
    assert len(list((tmp_path / "large").rglob("*.pth"))) == 1


HOSTILE_IDS = [
    "..",
    ".",
    "../../escaped",
    "/etc/escaped",
    "a/b",
    "a_b",
    "a%2Fb",
    "metadata.json",
    ".metadata.lock",
    "a\nb",
    "a\0b",
    "zürich 图层",
    "\ud800",
    "~",
    "a b",
    "-",
    "...",
]


def test_no_id_leads_out_of_the_folder_or_to_another_ids_file(tmp_path, my_path):
    output = tmp_path / "deep" / "output"
    for value, hostile in enumerate(HOSTILE_IDS):
        dump_data(hostile, "x", torch.tensor(value), my_path, output)
        dump_data("x", hostile, torch.tensor(value), my_path, output)
    flush()
    folder = golden_tensor(output)
    found = entries(folder)
    assert len(found) == 2 * len(HOSTILE_IDS)
    for value, hostile in enumerate(HOSTILE_IDS):
        name = hostile.encode(errors="replace").decode()
        for key in (("x", name), (name, "x")):
            golden = Path(found[key][0])
            assert folder in golden.resolve().parents
            assert int(load(golden)) == value
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["deep"]


GOOD = {"token_id": 0, "data_id": 1, "golden_data": torch.zeros(1), "my_path": "my.bin"}
BAD_ARGUMENTS = [
    ({"token_id": -1}, "Please check whether token_id passed in are correct"),
    ({"token_id": None}, "Please check whether token_id passed in are correct"),
    ({"token_id": "-1"}, "Please check whether token_id passed in are correct"),
    ({"data_id": -1}, "Please check whether data_id passed in are correct"),
    ({"data_id": ""}, "Please check whether data_id passed in are correct"),
    ({"golden_data": None}, "The golden_data is not a torch tensor!"),
    ({"golden_data": [1.0]}, "The golden_data is not a torch tensor!"),
    ({"golden_data": torch.zeros(1).numpy()}, "The golden_data is not a torch tensor!"),
    ({"my_path": ""}, "Please check whether my_path passed in are correct"),
    ({"my_path": None}, "Please check whether my_path passed in are correct"),
    ({"my_path": 7}, "Please check whether my_path passed in are correct"),
]


@pytest.mark.parametrize("bad, text", BAD_ARGUMENTS, ids=lambda value: str(value)[:40])
def test_a_bad_argument_is_a_warning_and_nothing_is_written(tmp_path, caplog, bad, text):
    (tmp_path / "my.bin").touch()
    dump_data(**{**GOOD, "my_path": str(tmp_path / "my.bin"), "output_path": tmp_path / "out", **bad})
    flush()
    ((logger, level, message),) = caplog.record_tuples
    call = {**GOOD, **bad}
    assert (logger, level) == ("ait_llm", logging.WARNING)
    assert message.startswith(f"dump_data(token_id={call['token_id']!r}, data_id={call['data_id']!r}): {text}")
    assert not (tmp_path / "out").exists()


def test_without_arguments_it_only_warns(caplog):
    dump_data()
    (message,) = caplog.messages
    assert message.startswith("dump_data(token_id=-1, data_id=-1): Please check whether token_id passed in are correct")


@pytest.mark.parametrize(
    "tensor",
    [torch.eye(2).to_sparse(), torch.zeros(2, device="meta"), torch.empty(2, dtype=torch.bits8)],
    ids=["sparse", "without data", "bits"],
)
def test_a_tensor_that_cannot_be_saved_is_a_warning(tmp_path, my_path, caplog, tensor):
    dump_data(0, 1, tensor, my_path, tmp_path)
    (message,) = caplog.messages
    assert message.startswith("dump_data: data_id 1 of token_id 0 cannot be saved: ")


@pytest.mark.parametrize("output_path", [None, 7, "a\0b"])
def test_an_impossible_output_path_is_a_warning(my_path, caplog, output_path):
    dump_data(0, 1, torch.zeros(1), my_path, output_path)
    (message,) = caplog.messages
    assert "cannot be saved" in message


def test_a_my_path_that_does_not_exist_is_warned_of_once_and_kept(tmp_path, caplog):
    for token in range(3):
        dump_data(token, 1, torch.zeros(1), tmp_path / "later.bin", tmp_path)
    flush()
    (message,) = caplog.messages
    assert "later.bin does not exist yet" in message
    assert {my for _, my in entries(golden_tensor(tmp_path)).values()} == {str(tmp_path / "later.bin")}


FAILING = """
import sys, torch
from ait_llm.dump.manual_dump import dump_data, flush
for token in range(5):
    dump_data(token, 1, torch.zeros(10_000), sys.executable, sys.argv[1])
    if len(sys.argv) > 2: flush()
print("went on")
"""


@pytest.mark.parametrize("flushed", [False, True])
def test_a_folder_that_cannot_be_written_is_one_warning_and_the_script_goes_on(tmp_path, flushed):
    (tmp_path / "file").write_text("in the way")
    process = run_python(FAILING, tmp_path / "file", *(["flush"] if flushed else []))
    assert process.returncode == 0
    assert process.stdout == "went on\n"
    first, *others = process.stderr.splitlines()
    assert first.startswith(f"dump_data: {tmp_path}/file/") and "Not a directory" in first
    assert others in ([], ["dump_data: 5 of 5 tensors could not be saved"])


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_whole_files_and_true_entries(small_disk):
    process = run_python(FAILING.replace("range(5)", "range(50)"), small_disk)
    assert process.returncode == 0
    assert process.stdout == "went on\n"
    assert "No space left on device" in process.stderr
    assert len(process.stderr.splitlines()) <= 2
    (folder,) = small_disk.glob("ait_dump/*/golden_tensor")
    files = list(folder.rglob("*_tensor.pth"))
    assert 0 < len(files) < 50
    for path in files:
        assert load(path).shape == (10_000,)
    if (folder / "metadata.json").exists():  # there may have been no room for it
        assert {Path(golden) for golden, _ in entries(folder).values()} <= set(files)


NO_ROOM_FOR_THE_MAPPING = """
import resource, sys, torch
from ait_llm.dump.manual_dump import dump_data, flush
for token in range(51):
    dump_data(token, 1, torch.zeros(4), sys.executable, sys.argv[1])
    if token == 0:
        flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))  # a tensor's file is smaller
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def test_entries_that_cannot_be_written_are_counted(tmp_path):
    process = run_python(NO_ROOM_FOR_THE_MAPPING, tmp_path)
    assert process.returncode == 0, process.stderr
    (folder,) = tmp_path.glob("ait_dump/*/golden_tensor")
    assert len(list(folder.rglob("*_tensor.pth"))) == 51
    missing = 51 - len(entries(folder))
    assert missing > 0
    assert "File too large" in process.stderr
    assert f"{missing} of 51 tensors that were saved are not in metadata.json" in process.stderr.splitlines()[-1]


def test_entries_that_can_be_written_in_the_end_are_not_counted(tmp_path):
    process = run_python(NO_ROOM_FOR_THE_MAPPING, tmp_path, "room")
    (folder,) = tmp_path.glob("ait_dump/*/golden_tensor")
    assert len(entries(folder)) == 51
    assert "are not in metadata.json" not in process.stderr


def test_two_processes_share_an_output_path(tmp_path, my_path):
    script = """
import os, sys, torch
from ait_llm.dump.manual_dump import dump_data
for token in range(20):
    for data in range(10):
        dump_data(token, data, torch.tensor([os.getpid(), token, data]), sys.argv[2], sys.argv[1])
print(os.getpid())
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path), my_path], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    pids = [int(process.communicate(timeout=120)[0]) for process in processes]
    assert len(set(pids)) == 2
    for pid in pids:
        found = entries(golden_tensor(tmp_path, pid))
        assert len(found) == 200
        for (data, token), (golden, _) in found.items():
            assert load(golden).tolist() == [pid, int(token), int(data)]


def test_two_processes_share_one_metadata_file(tmp_path):
    script = """
import sys
from ait_llm import _native
for i in range(60):
    _native.add_to_metadata(sys.argv[1].encode(), [(b"%d" % (i % 7), b"%s-%d" % (sys.argv[2].encode(), i), b"g", b"m")])
"""
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), name]) for name in "abc"]
    for process in processes:
        assert process.wait(timeout=120) == 0
    assert set(entries(tmp_path)) == {(str(i % 7), f"{name}-{i}") for i in range(60) for name in "abc"}


def test_threads_dump_at_once(tmp_path, my_path):
    def work(token):
        for data in range(50):
            dump_data(token, data, torch.tensor([token, data]), my_path, tmp_path)

    threads = [threading.Thread(target=work, args=(token,)) for token in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flush()
    found = entries(golden_tensor(tmp_path))
    assert len(found) == 300
    for (data, token), (golden, _) in found.items():
        assert load(golden).tolist() == [int(token), int(data)]


def dump_in_child(output, my_path):
    for token in range(20):
        dump_data(token, 1, torch.tensor(token), my_path, output)


def test_processes_that_multiprocessing_forks_write_everything(tmp_path, my_path):
    dump_data("parent", 1, torch.tensor(1), my_path, tmp_path)  # so that there is something to inherit
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=dump_in_child, args=(tmp_path, my_path)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
        assert set(entries(golden_tensor(tmp_path, child.pid))) == {("1", str(token)) for token in range(20)}
    flush()
    assert set(entries(golden_tensor(tmp_path))) == {("1", "parent")}


def test_everything_is_written_when_the_script_ends_with_an_exception(tmp_path, my_path):
    script = """
import os, sys, torch
from ait_llm.dump.manual_dump import dump_data
for token in range(100):
    dump_data(token, 1, torch.zeros(10_000), sys.argv[2], sys.argv[1])
raise SystemExit(3)
"""
    assert run_python(script, tmp_path, my_path).returncode == 3
    (folder,) = tmp_path.glob("ait_dump/*/golden_tensor")
    assert len(entries(folder)) == 100
    assert not list(folder.rglob("*.tmp"))


KILLED = """
import os, random, signal, sys, time, torch
from ait_llm.dump.manual_dump import dump_data
random.seed(int(sys.argv[3]))
for _ in range(20):
    child = os.fork()
    if child == 0:
        token = 0
        while True:
            dump_data(token, token % 5, torch.full((1000,), token), sys.argv[2], sys.argv[1])
            token += 1
            if token % 10 == 0: time.sleep(random.choice([0, 0.003]))
    time.sleep(random.uniform(0.005, 0.25))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_a_killed_process_leaves_no_torn_file_and_no_entry_without_its_file(tmp_path, my_path):
    process = run_python(KILLED, tmp_path, my_path, 1)
    assert process.returncode == 0, process.stderr
    total = 0
    for folder in tmp_path.glob("ait_dump/*/golden_tensor"):
        for path in folder.rglob("*_tensor.pth"):
            assert load(path).tolist() == [int(path.parent.name)] * 1000
        if not (folder / "metadata.json").exists():
            continue
        found = entries(folder)
        total += len(found)
        assert all(Path(golden).is_file() for golden, _ in found.values())
        # And the next one to write there can.
        _native.add_to_metadata(os.fsencode(folder), [(b"next", b"0", b"g", b"m")])
        assert set(entries(folder)) == set(found) | {("next", "0")}
    assert total > 50  # or nothing was tested


def test_the_mapping_follows_while_the_process_lives(tmp_path, my_path):
    script = """
import sys, torch
from ait_llm.dump.manual_dump import dump_data
for token in range(100):
    dump_data(token, 1, torch.zeros(10), sys.argv[2], sys.argv[1])
print("dumped", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), my_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "dumped\n"
        folder = golden_tensor(tmp_path, process.pid)
        for _ in range(600):
            if (folder / "metadata.json").exists() and len(entries(folder)) == 100:
                break
            threading.Event().wait(0.1)
        else:
            pytest.fail("metadata.json was not completed within a minute")
        process.stdin.close()
        assert process.wait(60) == 0


def test_importing_dump_data_does_not_import_torch():
    code = "import sys; from ait_llm.dump.manual_dump import dump_data; print('torch' in sys.modules)"
    assert run_python(code).stdout == "False\n"


def test_the_recorder_counts(tmp_path):
    recorder, account = _native.Recorder(1 << 20), _native.Account()
    operand = ait_llm._tensor.operand_of(torch.zeros(4, dtype=torch.bfloat16))
    for name in ("x.bin", "x.pth", "x.npy"):  # numpy has no bfloat16
        recorder.submit(account, os.fsencode(tmp_path / name), operand)
    recorder.flush()
    assert (account.submitted, account.written, account.failed) == (3, 2, 1)
    assert (account.submitted_bytes, account.written_bytes) == (24, 16)
    assert account.first_failure.startswith(str(tmp_path / "x.npy"))
    assert recorder.first_mapping_failure is None
    assert recorder.missing_mappings == 0
    with pytest.raises(ait_llm.AitError):
        recorder.submit(account, b"x.safetensors", operand)
    same(ait_llm.load(tmp_path / "x.bin").torch(), torch.zeros(4, dtype=torch.bfloat16))
