"""What the tests of the package share."""

import ast
import functools
import importlib.util
import pathlib
import sys

import ait_llm
import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent


@functools.cache
def needs(path, package):
    """Whether a file of this folder imports a package when it is imported, itself or through others of this folder."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        for name in names:
            local = HERE / f"{name}.py"
            if name.split(".")[0] == package or (local.exists() and needs(local, package)):
                return True
    return False


# Not every Python has a torch; what needs none is tested there all the same.
HAS_TORCH = importlib.util.find_spec("torch") is not None
collect_ignore = [path.name for path in HERE.glob("test_*.py") if not HAS_TORCH and needs(path, "torch")]
if HAS_TORCH:
    import torch
    from tensor_bytes import bytes_of

if importlib.util.find_spec("hypothesis") is not None:
    from hypothesis import HealthCheck, settings

    # How long it takes to draw an input, the first one above all, says something about the machine, nothing about ait.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")


def pytest_report_header():
    return f"no torch here: {len(collect_ignore)} files are left out" if collect_ignore else None


@pytest.fixture
def random():
    return np.random.default_rng(20240229)


@pytest.fixture(autouse=True)
def graphs_of_other_tests_do_not_count():
    """A manifest takes whatever torch.compile has compiled in a process for a reason why modules were not heard of."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.utils.counters.clear()
        compiled = sys.modules.get("ait_llm.dump.torch_dump.compiled")
        if compiled is not None:
            compiled._state.graphs = 0


def in_native_order(array):
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False)


class Same:
    """Bit for bit the same tensor: type, shape and every element, NaN and the sign of zero included."""

    def numpy(self, tensor, array):
        assert isinstance(tensor, ait_llm.Tensor)
        assert tensor.dtype == array.dtype.name
        assert tensor.shape == array.shape
        loaded = tensor.numpy()
        assert loaded.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
        assert in_native_order(loaded).tobytes() == in_native_order(array).tobytes()

    def torch(self, tensor, expected):
        assert isinstance(tensor, ait_llm.Tensor)
        assert tensor.dtype == str(expected.dtype).replace("torch.", "")
        assert tensor.shape == tuple(expected.shape)
        expected = expected.detach().resolve_conj().resolve_neg()
        for copy in (True, False):
            loaded = tensor.torch(copy=copy)
            assert loaded.dtype == expected.dtype
            assert loaded.shape == expected.shape
            assert torch.equal(bytes_of(loaded), bytes_of(expected))


@pytest.fixture
def same():
    return Same()
