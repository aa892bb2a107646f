"""The modules of a model by name, and the tree that model_tree.json shows."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

ROOT = "root"

Named = list[tuple[str, torch.nn.Module]]


def walk(model: torch.nn.Module) -> tuple[Named, dict[str, Any]]:
    """All modules under their first name, in the order of registration, and the tree of them.

    A module that is reached by two ways has one name; the other is a node with the key `alias_of`.
    """
    named: Named = []
    return named, _node_of(model, ROOT, named, {})


def _node_of(module: torch.nn.Module, name: str, named: Named, names: dict[int, str]) -> dict[str, Any]:
    # No function inside another: one that calls itself would hold the modules until the next garbage collection.
    inner = uncompiled(module)
    node: dict[str, Any] = {"name": name, "type": type(inner).__name__, "children": []}
    first = names.setdefault(id(inner), name)
    if first != name:
        node["alias_of"] = first
        return node
    named.append((name, module))
    for key, child in parts_of(inner, "_modules").items():
        if child is not None:
            node["children"].append(_node_of(child, f"{name}.{key}", named, names))
    return node


def parts_of(module: torch.nn.Module, kind: str) -> Mapping[str, Any]:
    """`_modules`, `_parameters` or `_buffers` of a module itself. Code of the model's author, such as a __getattr__ or
    parameters() of his own, is not called: it could do anything."""
    found: Any = object.__getattribute__(module, "__dict__").get(kind)
    if isinstance(found, dict):
        return found
    return {} if found is None else dict(found.items())  # scripted modules have something of their own there


def all_modules(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """Each once, also those that torch.compile has put around others."""
    seen = set()
    waiting = [model]
    while waiting:
        module = waiting.pop()
        if module is not None and id(module) not in seen:
            seen.add(id(module))
            yield module
            waiting.extend(parts_of(module, "_modules").values())


def named_parameters(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """As the method of this name, with names that begin with that of the root."""
    seen = set()
    for name, module in walk(model)[0]:
        for key, parameter in parts_of(uncompiled(module), "_parameters").items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield f"{name}.{key}", parameter


def uncompiled(module: torch.nn.Module) -> torch.nn.Module:
    """The module itself where `module` is what torch.compile has put around it."""
    inner = parts_of(module, "_modules").get("_orig_mod")
    return inner if isinstance(inner, torch.nn.Module) else module


def has_forward(module: torch.nn.Module) -> bool:
    """Lists and dicts of modules are never called."""
    return inspect.getattr_static(module, "forward") is not torch.nn.Module.forward


def has_own_call(module: torch.nn.Module) -> bool:
    """Calls of such a module need not lead to torch's own methods, the only ones that can be listened to."""
    names = ("__call__", "_call_impl")
    return any(inspect.getattr_static(type(module), name) is not vars(torch.nn.Module)[name] for name in names)


def add_order(tree: dict[str, Any], calls: Mapping[str, Sequence[int]]) -> None:
    """Notes in the tree which module was called as the how-manieth; where some were called again, also when each of
    the calls was, counted over all modules."""
    order = {name: place for place, name in enumerate(sorted(calls, key=lambda name: calls[name][0]))}
    some_again = any(len(each) > 1 for each in calls.values())
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node["name"] in calls:
            node["order"] = order[node["name"]]
            if some_again:
                node["calls"] = list(calls[node["name"]])
        waiting.extend(node["children"])
