"""Dump settings for models that torch.compile runs through TorchAir, in its graph mode (GE) or node by node (FX).

    from ait_llm.dump import torchair_dump

    config = torchair_dump.get_ge_dump_config(dump_path="dump")          # or on a config of your own:
    torchair_dump.get_ge_dump_config(dump_path="dump", compiler_config=config)
    model = torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config))

TorchAir writes the data when the model runs; `ait llm compare` reads them. TorchAir needs an NPU, this module does not.
Without one, `fx_backend` records the FX graph of a compiled model on any device. See docs/torchair.md.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterable
from typing import Any

from ait_llm._folders import make_folders
from ait_llm.dump.fx_dump import FOLDER as FX_FOLDER
from ait_llm.dump.fx_dump import fx_backend

__all__ = ["fx_backend", "get_fx_dump_config", "get_ge_dump_config"]

GE_FOLDER = "msit_ge_dump"
MAX_PATH, MAX_NAME = 4096, 255

_logger = logging.getLogger("ait_llm")

_MODES = ("input", "output", "all")
_PATH = re.compile(r"[A-Za-z0-9_./-]*")
_TOKENS = re.compile(r"\d+(-\d+)?")
_LAYER = re.compile(r'[0-9a-zA-Z_" /\\.]*')


def get_ge_dump_config(
    dump_path: str = "",
    dump_mode: str = "all",
    fusion_switch_file: str | None = None,
    dump_token: Iterable[int | str] | None = None,
    dump_layer: Iterable[str] | None = None,
    compiler_config: Any = None,
) -> Any:
    """A CompilerConfig with which TorchAir records the operations of its GE graphs in {dump_path}/msit_ge_dump.

    `dump_mode` is "input", "output" or "all". `fusion_switch_file` is a file that says which fusions are off.
    `dump_token` are tokens such as [1, 2, 5] or ["2-5", 7], `dump_layer` names of operations such as ["Add", "Conv_1"];
    without them everything is recorded. `compiler_config` is changed and returned; without it a new one is made.
    """
    # All that can be wrong is found before anything is changed.
    if dump_mode not in _MODES:
        raise ValueError(f'dump_mode must be "input", "output" or "all", not {dump_mode!r}')
    tokens = None if dump_token is None else "|".join(_words("dump_token", dump_token, _TOKENS))
    layers = None if dump_layer is None else " ".join(_words("dump_layer", dump_layer, _LAYER))
    switch = None if fusion_switch_file is None else _readable(fusion_switch_file)
    config_class = _config_class()
    _check_config(compiler_config, config_class)
    folder = _make_folder(dump_path, GE_FOLDER)

    config = config_class() if compiler_config is None else compiler_config
    graphs = config.debug.graph_dump
    graphs.type = "txt"
    setattr(graphs, "_path" if hasattr(graphs, "_path") else "path", folder)  # its older name
    if switch is not None:
        config.fusion_config.fusion_switch_file = switch
    config.dump_config.enable_dump = True
    config.dump_config.dump_mode = dump_mode
    config.dump_config.dump_path = folder
    if tokens is not None:
        config.dump_config.dump_step = tokens
    if layers is not None:
        config.dump_config.dump_layer = layers
    return config


def get_fx_dump_config(dump_path: str = "", compiler_config: Any = None) -> Any:
    """A CompilerConfig with which TorchAir runs its FX graphs node by node and records them in
    {dump_path}/msit_fx_dump. Older versions of TorchAir write to data_dump in the current folder instead."""
    config_class = _config_class()
    _check_config(compiler_config, config_class)
    folder = _make_folder(dump_path, FX_FOLDER)
    config = config_class() if compiler_config is None else compiler_config
    data = config.debug.data_dump
    data.type = "npy"
    if hasattr(data, "path"):
        data.path = folder
    else:
        _logger.warning(
            "this version of TorchAir does not take dump_path: it writes to %s", os.path.abspath("data_dump")
        )
    return config


def _config_class() -> Any:
    try:
        import torch_npu  # noqa: F401  # it has to be there before TorchAir
        from torchair.configs.compiler_config import CompilerConfig
    except ModuleNotFoundError as error:
        _logger.error(
            "%s is not installed, so TorchAir cannot be set up to record: install torch_npu and torchair for "
            "your torch, or record the FX graph without an NPU with "
            "torch.compile(model, backend=ait_llm.dump.fx_backend(dump_path=...))",
            error.name,
        )
        raise
    return CompilerConfig


def _check_config(config: Any, config_class: Any) -> None:
    if config is not None and not isinstance(config, config_class):
        raise TypeError(f"compiler_config must be a torchair.CompilerConfig, not {type(config).__name__}")


def _words(name: str, given: Any, form: re.Pattern[str]) -> list[str]:
    """The items as text. A plain text would be taken letter by letter."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list such as [{_EXAMPLES[name]}], not {given!r}")
    words = []
    for item in given:
        right = isinstance(item, str) or (name == "dump_token" and isinstance(item, int) and not isinstance(item, bool))
        if not right:
            raise TypeError(f"{name} must be a list such as [{_EXAMPLES[name]}]; {item!r} does not belong there")
        if not form.fullmatch(str(item)):
            raise ValueError(f"{name} must be a list such as [{_EXAMPLES[name]}]; {item!r} does not belong there")
        words.append(str(item))
    return words


_EXAMPLES = {"dump_token": '1, 2, "5-7"', "dump_layer": '"Add", "Conv_1"'}


def _readable(path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"fusion_switch_file must be a path, not {type(path).__name__}")
    real = os.path.realpath(os.path.expanduser(path))
    if not os.path.isfile(real) or not os.access(real, os.R_OK):
        raise FileNotFoundError(f"fusion_switch_file is not a file that can be read: {os.fspath(path)}")
    return real


def _make_folder(dump_path: Any, name: str) -> str:
    """{dump_path}/{name}, made where it is missing; TorchAir and GE refuse names with other letters."""
    if not isinstance(dump_path, str):
        raise TypeError(f"dump_path must be a str, not {type(dump_path).__name__}")
    folder = os.path.realpath(os.path.expanduser(os.path.join(dump_path, name)))
    if not _PATH.fullmatch(folder):
        raise ValueError(f"dump_path may hold letters, digits and _ . / - only: {folder!r}")
    if len(folder) > MAX_PATH or any(len(part) > MAX_NAME for part in folder.split("/")):
        raise ValueError(f"dump_path is too long: {folder[:80]}…")
    _check_safe(folder)
    make_folders(folder)
    if os.listdir(folder):
        _logger.warning(
            "%s is not empty: data of two dumps would be mixed, give each dump a dump_path of its own", folder
        )
    return folder


def _check_safe(folder: str) -> None:
    """Nobody else may change what is written there."""
    existing = folder
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    status = os.stat(existing)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{existing} is not a folder")
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(f"{existing} cannot be read and written")
    if os.geteuid() != 0 and status.st_uid != os.geteuid():
        raise PermissionError(f"{existing} belongs to another user; give a dump_path of your own")
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise PermissionError(
            f"{existing} can be written by everybody; take that right away, or give another dump_path"
        )
