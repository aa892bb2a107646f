"""The embedded acceleration library from Python: single operations and whole models, in this process.

    import ait_engine, torch

    linear = ait_engine.Operation("LinearOperation", hasBias=False)
    y = linear(x, weight)                          # torch tensors in, torch tensors out; numpy likewise

    model = ait_engine.Model("folder", dtype="fp16")
    logits = model.prefill([[1, 15, 7], [2, 9]], more_tokens=8)       # numpy, batch x vocabulary
    logits = model.decode(logits.argmax(-1))

The library is found through AIT_ENGINE_LIB (the file itself) or ATB_HOME_PATH (`lib/libatb.so` in it), in the build
folder of the source tree, or where the wheel has put it. A probe that was preloaded into this process sees every
operation.
"""

import ctypes
import json
import os
import pathlib
import sys

import numpy as np

__all__ = ["EngineError", "Model", "Operation", "library_path", "operation_types"]

_MAX_RANK = 8
_MAX_OUTPUTS = 8
_CODES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "int64": 9, "uint64": 10, "bool": 12, "bfloat16": 27}
_NAMES = {code: name for name, code in _CODES.items()}


class EngineError(RuntimeError):
    """What the library refused or could not do, in its own words."""


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int64 * _MAX_RANK),
        ("data", ctypes.c_void_p),
    ]


def library_path():
    """The file that will be loaded."""
    if os.environ.get("AIT_ENGINE_LIB"):
        return pathlib.Path(os.environ["AIT_ENGINE_LIB"])
    if os.environ.get("ATB_HOME_PATH"):
        return pathlib.Path(os.environ["ATB_HOME_PATH"]) / "lib" / "libatb.so"
    installed = pathlib.Path(sys.prefix) / "lib/ait/engine/lib/libatb.so"
    built = pathlib.Path(__file__).resolve().parents[3] / "build/engine/lib/libatb.so"
    return built if built.exists() else installed


_library = None


def _lib():
    global _library
    if _library is None:
        path = library_path()
        try:
            lib = ctypes.CDLL(str(path))
        except OSError as error:
            raise EngineError(f"cannot load {path} ({error}); build it, or set AIT_ENGINE_LIB") from None
        tensors, sizes = ctypes.POINTER(_Tensor), ctypes.POINTER(ctypes.c_size_t)
        tokens, floats = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_float)
        pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
        signatures = {
            "error": (text, []),
            "operation_types": (text, []),
            "operation_new": (pointer, [text, text]),
            "operation_free": (None, [pointer]),
            "operation_param": (text, [pointer]),
            "operation_infer": (ctypes.c_int, [pointer, tensors, size, tensors, size]),
            "operation_run": (ctypes.c_int, [pointer, tensors, size, tensors, size]),
            "model_load": (pointer, [text, text, ctypes.c_int, text]),
            "model_free": (None, [pointer]),
            "model_vocabulary": (ctypes.c_int64, [pointer]),
            "model_prefill": (ctypes.c_int, [pointer, tokens, sizes, size, size, floats]),
            "model_decode": (ctypes.c_int, [pointer, tokens, size, floats]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(lib, f"ait_engine_{name}")
            function.restype, function.argtypes = result, arguments
        _library = lib
    return _library


def _fail():
    raise EngineError(_lib().ait_engine_error().decode(errors="replace"))


def operation_types():
    """The names that Operation takes."""
    return _lib().ait_engine_operation_types().decode().split(",")


def _is_torch(tensor):
    return type(tensor).__module__.split(".")[0] == "torch"


def _own(tensor):
    """The tensor without gaps in this machine's memory."""
    if _is_torch(tensor):
        return tensor.detach().cpu().contiguous()
    return np.ascontiguousarray(tensor) if np.ndim(tensor) else np.asarray(tensor)


def _describe(tensor):
    if _is_torch(tensor):
        name, address = str(tensor.dtype).replace("torch.", ""), tensor.data_ptr()
    else:
        name, address = tensor.dtype.name, tensor.ctypes.data
    if name not in _CODES:
        raise EngineError(f"the library has no type {name}")
    if len(tensor.shape) > _MAX_RANK:
        raise EngineError(f"a tensor has {len(tensor.shape)} dimensions, more than {_MAX_RANK}")
    described = _Tensor(_CODES[name], len(tensor.shape), (ctypes.c_int64 * _MAX_RANK)(*tensor.shape), address)
    return described


def _empty(described, like_torch):
    name, shape = _NAMES[described.dtype], tuple(described.dims[: described.rank])
    if like_torch:
        import torch

        return torch.empty(shape, dtype=getattr(torch, name))
    if name == "bfloat16":
        import ml_dtypes

        return np.empty(shape, ml_dtypes.bfloat16)
    return np.empty(shape, name)


class Operation:
    """One operation of the library; parameters are ATB's, absent ones take their defaults."""

    def __init__(self, type_name, **param):
        self._handle = None
        self._handle = _lib().ait_engine_operation_new(type_name.encode(), json.dumps(param).encode())
        if not self._handle:
            _fail()

    def __del__(self):
        if getattr(self, "_handle", None) and _library is not None:
            _library.ait_engine_operation_free(self._handle)

    @property
    def param(self):
        """All parameters, as the library understood them."""
        return json.loads(_lib().ait_engine_operation_param(self._handle).decode() or "{}")

    def __call__(self, *inputs, out=None):
        """Runs it. Returns the output, or a tuple where there are several; torch where the first input is torch.

        `out` gives tensors to write to, one for each output; an operation that works in place gets its input there.
        """
        lib = _lib()
        kept = [_own(tensor) for tensor in inputs]
        described = (_Tensor * max(1, len(kept)))(*map(_describe, kept))
        outputs = (_Tensor * _MAX_OUTPUTS)()
        count = lib.ait_engine_operation_infer(self._handle, described, len(kept), outputs, _MAX_OUTPUTS)
        if count < 0:
            _fail()
        like_torch = bool(kept) and _is_torch(kept[0])
        if out is None:
            results = [_empty(outputs[i], like_torch) for i in range(count)]
        else:
            results = list(out) if isinstance(out, (tuple, list)) else [out]
            if any(
                _own(tensor) is not tensor and _describe(_own(tensor)).data != _describe(tensor).data
                for tensor in results
            ):
                raise EngineError("an output tensor has gaps or lies on another device")
        given = (_Tensor * max(1, len(results)))(*map(_describe, results))
        if lib.ait_engine_operation_run(self._handle, described, len(kept), given, len(results)) != 0:
            _fail()
        return results[0] if len(results) == 1 else tuple(results)


class Model:
    """A llama-family model from a Hugging Face folder.

    dtype is fp32, fp16, bf16 or w8a8; padding "none" or "left"; faults as for ait-llama --fault.
    """

    def __init__(self, folder, dtype="fp32", padding="none", faults=()):
        self._handle = None
        if padding not in ("none", "left"):
            raise EngineError(f"padding is none or left, not {padding}")
        self._handle = _lib().ait_engine_model_load(
            os.fsencode(folder), dtype.encode(), int(padding == "left"), "\n".join(faults).encode()
        )
        if not self._handle:
            _fail()
        self.vocabulary = _lib().ait_engine_model_vocabulary(self._handle)
        self._batch = 0

    def __del__(self):
        if getattr(self, "_handle", None) and _library is not None:
            _library.ait_engine_model_free(self._handle)

    def prefill(self, prompts, more_tokens=0):
        """Starts anew with lists of token ids; logits of each last token as batch x vocabulary, float32."""
        prompts = [[int(token) for token in prompt] for prompt in prompts]
        lengths = (ctypes.c_size_t * max(1, len(prompts)))(*map(len, prompts))
        flat = [token for prompt in prompts for token in prompt]
        tokens = (ctypes.c_int64 * max(1, len(flat)))(*flat)
        logits = np.empty((len(prompts), self.vocabulary), np.float32)
        status = _lib().ait_engine_model_prefill(
            self._handle,
            tokens,
            lengths,
            len(prompts),
            more_tokens,
            logits.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
        )
        if status != 0:
            _fail()
        self._batch = len(prompts)
        return logits

    def decode(self, next_tokens):
        """One more token for each sequence; logits as above."""
        next_tokens = [int(token) for token in next_tokens]
        tokens = (ctypes.c_int64 * max(1, len(next_tokens)))(*next_tokens)
        logits = np.empty((len(next_tokens), self.vocabulary), np.float32)
        status = _lib().ait_engine_model_decode(
            self._handle, tokens, len(next_tokens), logits.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        )
        if status != 0:
            _fail()
        return logits

    def generate(self, prompts, steps):
        """Greedy: (tokens as batch x steps, logits as steps x batch x vocabulary)."""
        logits = [self.prefill(prompts, steps - 1)]
        tokens = [logits[0].argmax(-1)]
        for _ in range(steps - 1):
            logits.append(self.decode(tokens[-1]))
            tokens.append(logits[-1].argmax(-1))
        return np.stack(tokens, 1), np.stack(logits)
