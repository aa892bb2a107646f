"""A `torchair` and a `torch_npu` with the attributes and the checks of the real ones, and of their older versions.

What the real option objects accept and refuse is written down in TorchAir's documents; nothing here is ait's.
"""

import os
import re
import sys
import types


class Option:
    """A group of options: unknown names and wrong values are a ValueError."""

    def __init__(self, **rules):
        object.__setattr__(self, "_rules", rules)
        object.__setattr__(self, "_values", {})

    def __getattr__(self, name):
        if name.startswith("__") or name not in self._rules:
            raise AttributeError(name)
        return self._values.get(name)

    def __setattr__(self, name, value):
        if name not in self._rules:
            raise ValueError(f"unknown option {name}")
        rule = self._rules[name]
        if rule is not None:
            rule(value)
        self._values[name] = value


def one_of(*choices):
    def check(value):
        if value not in choices:
            raise ValueError(f"{value!r} is none of {choices}")

    return check


def matches(pattern):
    def check(value):
        if not re.match(pattern, value):
            raise ValueError(f"{value!r} does not match {pattern}")

    return check


def folder(value):
    if not os.path.isdir(value):
        raise FileNotFoundError(value)


def file(value):
    if not os.path.isfile(value):
        raise FileNotFoundError(value)


def config_class(graph_path="_path", fx_path=True):
    class CompilerConfig:
        def __init__(self):
            self.debug = types.SimpleNamespace(
                graph_dump=Option(type=one_of("txt", "pbtxt", "py"), **{graph_path: None}),
                data_dump=Option(type=one_of("npy"), **({"path": folder} if fx_path else {})),
            )
            self.fusion_config = Option(fusion_switch_file=file)
            self.dump_config = Option(
                enable_dump=one_of(True, False),
                dump_mode=one_of("input", "output", "all"),
                dump_path=folder,
                dump_step=matches(r"^(((\d+)|(\d+-{0,1}\d+))\|{0,1})*$"),
                dump_layer=matches(r'^[0-9a-zA-Z_" "/\\.]*$'),
            )

    return CompilerConfig


def install(monkeypatch, **variant):
    """Makes `import torch_npu, torchair` find them; gives torchair."""
    torchair = types.ModuleType("torchair")
    configs = types.ModuleType("torchair.configs")
    module = types.ModuleType("torchair.configs.compiler_config")
    module.CompilerConfig = torchair.CompilerConfig = config_class(**variant)
    torchair.configs, configs.compiler_config = configs, module
    torchair.get_npu_backend = lambda compiler_config=None: "aot_eager"  # runs the graph, and writes nothing
    for each in (torchair, configs, module, types.ModuleType("torch_npu")):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    return torchair
