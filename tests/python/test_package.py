"""The package itself: what it takes, what it gives, what it raises."""

import enum
import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import ait_llm
import ml_dtypes
import numpy as np
import pytest
import torch
from tensor_bytes import bytes_of


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_needs_neither_torch_nor_numpy():
    assert run_python("import ait_llm, sys; print('torch' in sys.modules, 'numpy' in sys.modules)") == "False False"


def test_comparing_paths_needs_neither_torch_nor_numpy(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3.0))
    code = f"import ait_llm, sys; p = {str(tmp_path / 'x.npy')!r}; r = ait_llm.compare(p, p)"
    assert (
        run_python(code + "; print(r.identical, 'torch' in sys.modules, 'numpy' in sys.modules)") == "True False False"
    )


def test_the_installed_program_is_native_and_of_the_same_version():
    program = Path(sys.executable).with_name("ait")
    assert program.read_bytes()[:4] == b"\x7fELF"
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert ait_llm.__version__ in output


def test_the_package_is_typed():
    folder = Path(ait_llm.__file__).parent
    assert (folder / "py.typed").is_file()
    assert (folder / "_native.pyi").is_file()


def test_the_stub_names_everything_that_the_extension_has():
    stub = (Path(ait_llm.__file__).parent / "_native.pyi").read_text()
    for name in dir(ait_llm._native):
        if not name.startswith("__"):
            assert name in stub, name
    for kind in vars(ait_llm._native).values():
        for name in dir(kind) if isinstance(kind, type) and not issubclass(kind, enum.Enum) else ():
            if not name.startswith("__"):
                assert f"def {name}(" in stub or f"    {name}: ClassVar[" in stub, name


ARRAY = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)


def as_path(tmp_path):
    np.save(tmp_path / "x.npy", ARRAY)
    return tmp_path / "x.npy"


INPUTS = {
    "str": lambda tmp: str(as_path(tmp)),
    "bytes": lambda tmp: os.fsencode(as_path(tmp)),
    "Path": as_path,
    "Tensor": lambda tmp: ait_llm.load(as_path(tmp)),
    "numpy": lambda tmp: ARRAY,
    "numpy fortran": lambda tmp: np.asfortranarray(ARRAY),
    "numpy big endian": lambda tmp: ARRAY.astype(">f4"),
    "numpy negative strides": lambda tmp: np.flip(np.flip(ARRAY).copy()),
    "numpy broadcast": lambda tmp: np.broadcast_to(ARRAY, (1, 4, 6)),
    "numpy field": lambda tmp: np.rec.fromarrays([np.zeros((4, 6), "i1"), ARRAY], dtype=[("a", "i1"), ("b", "f4")])[
        "b"
    ],
    "numpy unaligned": lambda tmp: np.frombuffer(b"x" + ARRAY.tobytes(), np.float32, offset=1).reshape(4, 6),
    "torch": lambda tmp: torch.from_numpy(ARRAY.copy()),
    "torch transposed": lambda tmp: torch.from_numpy(ARRAY.T.copy()).t(),
    "torch with grad": lambda tmp: torch.from_numpy(ARRAY.copy()).requires_grad_(),
    "torch parameter": lambda tmp: torch.nn.Parameter(torch.from_numpy(ARRAY.copy())),
    "list": lambda tmp: ARRAY.tolist(),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_every_kind_of_input_is_compared(tmp_path, kind):
    value = INPUTS[kind](tmp_path)
    for result in (ait_llm.compare(value, ARRAY), ait_llm.compare(ARRAY, value)):
        assert result.elements == 24
        assert result.differing == 0
    assert ait_llm.statistics(value).maximum == 2.0


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
)
def test_narrow_types_of_torch_and_ml_dtypes_mean_the_same(name):
    bits = np.arange(256, dtype=np.uint16 if name == "bfloat16" else np.uint8)
    ours = bits.view(getattr(ml_dtypes, name))
    theirs = torch.from_numpy(bits.astype(np.int16) if name == "bfloat16" else bits).view(getattr(torch, name))
    result = ait_llm.compare(ours, theirs)
    assert result.identical
    values = ours.astype(np.float32)
    wide = ait_llm.compare(theirs, values)
    assert wide.differing == 0
    assert wide.golden.nan == np.isnan(values).sum()


@pytest.mark.parametrize("name", ["int4", "uint4", "float8_e4m3", "float8_e3m4", "float4_e2m1fn", "float6_e2m3fn"])
def test_other_types_of_ml_dtypes_are_taken_by_value(name):
    array = np.array([0, 1, 2, 3, 4, 6]).astype(getattr(ml_dtypes, name))
    assert ait_llm.compare(array, array.astype(np.float32)).differing == 0


def test_complex_conjugates_of_torch_are_resolved():
    numbers = torch.randn(5, dtype=torch.complex64)
    assert ait_llm.compare(numbers.conj(), numbers.conj().resolve_conj()).differing == 0
    assert ait_llm.compare(numbers.conj().imag, -numbers.imag).differing == 0


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a"]),
        np.array([None]),
        np.zeros(2, "M8[s]"),
        np.zeros(2, np.longdouble),
        torch.eye(3).to_sparse(),
        torch.zeros(2, device="meta"),
        torch.empty(2, dtype=torch.bits8),
    ],
    ids=lambda value: str(value.dtype),
)
def test_what_cannot_be_compared_is_unsupported(value):
    with pytest.raises(ait_llm.UnsupportedError):
        ait_llm.statistics(value)


def test_big_arrays_are_not_copied():
    size = 64 << 20
    array = np.zeros(size, np.uint8)  # reading pages that were never written costs no memory
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    before = peak_bytes()
    ait_llm.compare(array, array, kl=False)
    ait_llm.statistics(torch.from_numpy(array))
    assert peak_bytes() - before < size / 2


def peak_bytes():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_the_interpreter_is_free_while_ait_measures():
    array = np.random.default_rng(0).standard_normal(4_000_000)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    watcher = threading.Thread(target=tick)
    watcher.start()
    started = time.perf_counter()
    for _ in range(5):
        ait_llm.compare(array, array[::-1], threads=1)
    ended = time.perf_counter()
    done.set()
    watcher.join()
    during = [at for at in ticks if started < at < ended]
    # Held all the time, the lock would be free only between the five calls.
    assert len(during) > 10


def test_arrays_keep_the_file_mapped_after_everything_else_is_gone(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(100_000))
    array = ait_llm.load(tmp_path / "x.npy").numpy()
    shared = ait_llm.load(tmp_path / "x.npy").torch(copy=False)
    (tmp_path / "x.npy").unlink()
    gc.collect()
    assert array[99_999] == 99_999
    assert int(shared[99_999]) == 99_999


def test_arrays_of_files_are_read_only_and_copies_are_not(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    tensor = ait_llm.load(tmp_path / "x.npy")
    with pytest.raises(ValueError):
        tensor.numpy()[0] = 7
    copy = tensor.torch()
    copy[0] = 7
    assert int(tensor.numpy()[0]) == 0
    np.array(tensor, copy=True)[0] = 7


def test_a_tensor_says_what_it_is(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float16))
    tensor = ait_llm.load(tmp_path / "x.npy")
    assert (tensor.dtype, tensor.shape, tensor.strides) == ("float16", (2, 3), (3, 1))
    assert (tensor.ndim, tensor.size, tensor.nbytes, len(tensor)) == (2, 6, 12, 2)
    assert repr(tensor) == "ait_llm.Tensor(dtype=float16, shape=[2, 3])"
    assert np.asarray(tensor).shape == (2, 3)
    assert np.asarray(tensor, dtype=np.float64).dtype == np.float64


@pytest.mark.parametrize(
    "dtype",
    [
        torch.bfloat16,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
        torch.float8_e4m3fnuz,
        torch.float8_e5m2fnuz,
        torch.float8_e8m0fnu,
        torch.complex32,
    ],
    ids=str,
)
def test_types_unknown_to_numpy_are_widened_exactly(tmp_path, dtype):
    bits = torch.arange(256, dtype=torch.uint8)
    tensor = torch.cat([bits, bits.flip(0)]).view(dtype)[1:].reshape(-1)
    tensor = torch.stack([tensor, tensor]).t()  # strided
    torch.save(tensor, tmp_path / "x.pt")
    loaded = ait_llm.load(tmp_path / "x.pt")
    wide = tensor.to(torch.complex64 if dtype == torch.complex32 else torch.float32)
    np.testing.assert_array_equal(loaded.numpy(), wide.numpy())
    width = 2 if dtype in (torch.bfloat16, torch.complex32) else 1
    assert loaded.bits().dtype == np.dtype(f"u{width}")
    assert loaded.bits().tobytes() == bytes(bytes_of(tensor).tolist())


def test_errors_are_also_the_built_in_ones(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        ait_llm.load(tmp_path / "nowhere.npy")
    assert isinstance(missing.value, ait_llm.NotFoundError)
    assert isinstance(missing.value, ait_llm.AitError)
    assert missing.value.path == str(tmp_path / "nowhere.npy")
    assert "nowhere.npy" in str(missing.value)
    np.save(tmp_path / "x.npy", np.arange(10))
    (tmp_path / "short.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-8])
    with pytest.raises(ValueError) as corrupt:
        ait_llm.load(tmp_path / "short.npy")
    assert isinstance(corrupt.value, ait_llm.CorruptError)
    assert isinstance(corrupt.value.offset, int)
    with pytest.raises(TypeError):
        ait_llm.compare(np.array(["a"]), np.array(["a"]))
    with pytest.raises(OSError):
        ait_llm.save(tmp_path / "x.npy" / "y.npy", np.arange(3))
    with pytest.raises(ait_llm.AitError, match="folder"):
        ait_llm.load(tmp_path)


@pytest.mark.parametrize(
    "request_", [{"relative": "odd"}, {"non_finite": "odd"}, {"thresholds": [1, 2, 3, 4, 5]}], ids=str
)
def test_requests_that_make_no_sense_are_errors(request_):
    with pytest.raises(ait_llm.AitError):
        ait_llm.compare(np.zeros(1), np.zeros(1), **request_)


def test_a_dict_is_not_a_tensor(tmp_path):
    with pytest.raises(ait_llm.AitError):
        ait_llm.compare({"a": np.zeros(1)}, np.zeros(1))
    np.savez(tmp_path / "x.npz", a=np.zeros(1), b=np.zeros(1))
    with pytest.raises(ait_llm.AitError, match="b"):
        ait_llm.compare(tmp_path / "x.npz", np.zeros(1))


def test_paths_that_are_no_utf8_work(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.npy"
    try:
        with open(path, "wb") as file:
            np.save(file, np.arange(3))
    except OSError:
        pytest.skip("this file system wants UTF-8")
    np.testing.assert_array_equal(ait_llm.load(path).numpy(), np.arange(3))
    assert ait_llm.compare(path, np.arange(3)).identical
    with pytest.raises(ait_llm.NotFoundError) as missing:
        ait_llm.load(os.fsencode(tmp_path) + b"/\xfe.npy")
    assert os.fsencode(missing.value.path).endswith(b"\xfe.npy")
