"""Our kernel, compiled at its first use by the compiler that torch's packages for CUDA bring along, kept on disk."""

from __future__ import annotations

import ctypes
import glob
import hashlib
import os
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import torch

_SOURCES = ("statistics.h", "statistics.cu")
_OPTIONS = ("--std=c++17", "--fmad=true")


class NoCompiler(Exception):
    """Says why in one sentence."""


def image_for(capability: tuple[int, int]) -> bytes:
    """The machine code for devices of this kind."""
    architecture = f"sm_{capability[0]}{capability[1]}"
    source = source_text()
    kept = _kept(architecture, source)
    try:
        return kept.read_bytes()
    except OSError:
        image = _compile(source, architecture)
        _keep(kept, image)
        return image


def source_text() -> str:
    folder = Path(__file__).parent / "kernel"
    texts = [(folder / name).read_text(encoding="utf-8") for name in _SOURCES]
    return "\n".join(texts).replace("#pragma once\n", "", 1)


def _kept(architecture: str, source: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    digest = hashlib.sha256("\0".join((source, architecture, str(torch.version.cuda), *_OPTIONS)).encode()).hexdigest()
    return Path(base) / "ait_llm" / f"statistics-{architecture}-{digest[:16]}.cubin"


def _keep(path: Path, image: bytes) -> None:
    """Whoever cannot write there compiles again the next time."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(image)
        os.replace(temporary, path)
    except OSError:
        pass


def _library() -> Any:
    """The one that torch itself would load is of the right version; it may have been loaded already."""
    major = str(torch.version.cuda or "").split(".")[0]
    name = f"libnvrtc.so.{major}"
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(Path(torch.__file__).parents[1])}
    patterns = [f"{package}/{place}/{name}*" for package in packages for place in ("nvidia/*/lib", "torch/lib")]
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    patterns += [f"{home}/lib64/{name}*" for home in homes if home]
    for candidate in (name, *(path for pattern in patterns for path in sorted(glob.glob(pattern)))):
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise NoCompiler(f"{name}, which compiles the kernel, is not to be found")


def _compile(source: str, architecture: str) -> bytes:
    nvrtc = _library()
    program = ctypes.c_void_p()
    text, name = source.encode(), b"statistics.cu"
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None) != 0:
        raise NoCompiler("NVRTC takes no program")
    try:
        options = [f"--gpu-architecture={architecture}".encode(), *(each.encode() for each in _OPTIONS)]
        given = (ctypes.c_char_p * len(options))(*options)
        if nvrtc.nvrtcCompileProgram(program, len(options), given) != 0:
            words = _output(nvrtc, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog").rstrip(b"\0\n")
            raise NoCompiler(
                f"NVRTC cannot compile the kernel for {architecture}: {words.decode(errors='replace')[:500]}"
            )
        return _output(nvrtc, program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _output(nvrtc: Any, program: ctypes.c_void_p, size_of: str, get: str) -> bytes:
    size = ctypes.c_size_t()
    if getattr(nvrtc, size_of)(program, ctypes.byref(size)) != 0:
        raise NoCompiler(f"{size_of} of NVRTC failed")
    buffer = ctypes.create_string_buffer(size.value)
    if getattr(nvrtc, get)(program, buffer) != 0:
        raise NoCompiler(f"{get} of NVRTC failed")
    return buffer.raw
