"""Has tensors on the CPU measured as if they were on a CUDA device, by the kernel's own text (fused_on_host.cpp).

To be imported by a process of its own, before anything is recorded: fake_cuda.install(library).
"""

import ctypes

import torch
from ait_llm import _native
from ait_llm.dump.torch_dump import measuring, nvrtc
from ait_llm.dump.torch_dump.store import dtype_names

STREAM = [0]
"""The current one."""


class Graph:
    """In place of torch.cuda.CUDAGraph, whose functions are Python's, too."""

    def capture_begin(self):
        self.number = Graph.fake.fake_begin_capture()

    def capture_end(self):
        Graph.fake.fake_end_capture()

    def replay(self):
        Graph.fake.fake_replay(ctypes.c_uint64(self.number))


def pretend_graphs(fake):
    """Graphs are captured and replayed from now on; tensors stay where they are, if somebody keeps them."""
    from types import SimpleNamespace

    fake.fake_begin_capture.restype = ctypes.c_uint64
    Graph.fake = fake
    torch.cuda.CUDAGraph = Graph
    torch.cuda.is_initialized = lambda: True
    torch.cuda.is_current_stream_capturing = lambda: _native.capture_on(0) != 0
    torch.cuda.current_stream = lambda: SimpleNamespace(cuda_stream=0)


def install(library):
    """The library, loaded."""
    base = torch._C.TensorBase
    pretending = {name: getattr(base, name) for name in "data_ptr stride is_contiguous is_neg is_conj".split()}
    # Those of torch are all of one kind, too.
    pretending.update({name: property(getattr(base, name).__get__) for name in ("dtype", "shape", "_version")})
    pretending.update(
        is_cuda=property(lambda tensor: True), is_cpu=property(lambda tensor: False), get_device=lambda tensor: 0
    )
    fake = type("Pretending", (torch.Tensor,), pretending)
    inference = torch.is_inference_mode_enabled
    _native.set_torch(dtype_names, (torch.Tensor, torch.nn.Parameter), fake, lambda device: STREAM[0], inference)
    nvrtc.image_for = lambda capability: b"its own text"
    torch.cuda.get_device_capability = lambda device: (9, 0)
    measuring.LIBRARY = library
    assert measuring.load_kernel(0) is None
    return ctypes.CDLL(library)
