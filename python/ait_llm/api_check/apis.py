"""The functions of torch that are recorded and run again, and their names: Functional*linear, Tensor*add_, Torch*cat.

The table is what torch itself lets others override, found where it stands. So it has what a version of torch has, and
a name from a file can lead to nothing else.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import torch

FUNCTIONAL, TENSOR, TORCH = "Functional", "Tensor", "Torch"
GROUPS = (FUNCTIONAL, TENSOR, TORCH)

MAX_DIGITS = 18
"""Of the number of a call."""

Function = Callable[..., Any]


class Api(NamedTuple):
    """One function."""

    group: str
    name: str

    def __str__(self) -> str:
        return f"{self.group}*{self.name}"


class Call(NamedTuple):
    """Which call of which function: "Torch*cat*3"."""

    api: Api
    number: int

    def __str__(self) -> str:
        return f"{self.api}*{self.number}"


def parse_key(key: str) -> Call | None:
    """Of both styles: Tensor*add_*3 and Tensor_add__3_forward. None for what is no key."""
    sign = "*" if "*" in key else "_"
    parts = key.removesuffix(f"{sign}forward").removesuffix(f"{sign}backward").split(sign)
    group, name, index = parts[0], parts[1:-1], parts[-1]
    has_name = any(name) if sign == "_" else len(name) == 1 and bool(name[0])
    if not has_name or not (index.isascii() and index.isdigit() and len(index) <= MAX_DIGITS):
        return None
    return Call(Api(group, sign.join(name)), int(index))


def find(api: Api) -> Function | None:
    """The public function; None where this version of torch has none of that name."""
    return _by_name.get(api)


def name_of(function: Any) -> Api | None:
    """None for what is no API: the accessors of properties, operators of torch.ops, compiled functions."""
    try:
        return _by_function.get(function)
    except TypeError:  # cannot be hashed
        return None


# Not to be run at the word of a file: they read files, share memory or take functions.
_REFUSED = frozenset(
    "from_file save load set_ set_data share_memory_ storage _typed_storage untyped_storage numpy __array__ "
    "__array_wrap__ apply_ map_ map2_ register_hook register_post_accumulate_grad_hook backward module_load reinforce "
    "__reduce__ __reduce_ex__ __setstate__ __getstate__ __class__ __init__ __new__ __getattribute__ __setattr__ "
    "__delattr__ __init_subclass__ __subclasshook__ __torch_function__ __torch_dispatch__ __dir__ __sizeof__ "
    "__dlpack__ __dlpack_device__ as_subclass _make_subclass _make_wrapper_subclass _make_dtensor __deepcopy__ new "
    "from_numpy frombuffer from_dlpack to_dlpack".split()
)


def is_refused(api: Api) -> bool:
    """Such a call is recorded and never run again."""
    return api.name in _REFUSED


# Names that lead to the same function: the first found is the one that is recorded.
def _all() -> Iterator[tuple[Api, Any]]:
    functional = torch.nn.functional
    for name, value in vars(functional).items():
        if isinstance(value, types.BuiltinFunctionType) or _is_of(value, "torch.nn.functional"):
            yield Api(FUNCTIONAL, name), value
    for name in dir(torch._C._VariableFunctions):
        if not name.startswith("__"):
            yield Api(TORCH, name), getattr(torch, name, getattr(torch._C._VariableFunctions, name))
    for name, value in vars(torch).items():
        if any(_is_of(value, place) for place in ("torch.functional", "torch._lowrank", "torch._lobpcg")):
            yield Api(TORCH, name), value
    for place in ("linalg", "fft", "special", "nn.init"):
        module: Any = torch
        for part in place.split("."):
            module = getattr(module, part)
        for name, value in vars(module).items():
            if isinstance(value, types.BuiltinFunctionType) or _is_of(value, f"torch.{place}"):
                yield Api(TORCH, f"{place}.{name}"), value
    # a + b is the method add: for a function of two names the one without underscores comes first.
    for name in sorted(dir(torch.Tensor), key=lambda name: (name.startswith("__"), name)):
        yield Api(TENSOR, name), getattr(torch.Tensor, name)


def _is_of(value: Any, module: str) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__ == module


# In torch.nn.functional for its own needs.
_NO_APIS = frozenset("_add_docstr boolean_dispatch handle_torch_function has_torch_function".split())

_by_name: dict[Api, Function] = {}
_by_function: dict[Any, Api] = {}
for _api, _value in _all():
    if not callable(_value) or isinstance(_value, type) or _api.name in _NO_APIS or "has_torch_function" in _api.name:
        continue
    _by_name.setdefault(_api, _value)
    _by_function.setdefault(_value, _api)


def every() -> Iterator[Api]:
    return iter(_by_name)
