"""What the tests of the package share."""

import sys

import ait_llm
import numpy as np
import pytest
import torch
from tensor_bytes import bytes_of


@pytest.fixture
def random():
    return np.random.default_rng(20240229)


@pytest.fixture(autouse=True)
def graphs_of_other_tests_do_not_count():
    """A manifest takes whatever torch.compile has compiled in a process for a reason why modules were not heard of."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.utils.counters.clear()


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
