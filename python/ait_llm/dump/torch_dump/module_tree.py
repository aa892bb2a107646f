"""The modules of a model by name, and the tree that model_tree.json shows."""

from __future__ import annotations

import inspect
from typing import Any

import torch

ROOT = "root"

Named = list[tuple[str, torch.nn.Module]]


def walk(model: torch.nn.Module) -> tuple[Named, dict[str, Any]]:
    """All modules under their first name, in the order of registration, and the tree of them.

    A module that is reached by two ways has one name; the other is a node with the key `alias_of`.
    """
    named: Named = []
    names: dict[int, str] = {}

    def node_of(module: torch.nn.Module, name: str) -> dict[str, Any]:
        inner = uncompiled(module)
        node: dict[str, Any] = {"name": name, "type": type(inner).__name__, "children": []}
        first = names.setdefault(id(inner), name)
        if first != name:
            node["alias_of"] = first
            return node
        named.append((name, module))
        children = getattr(inner, "_modules", None) or {}
        node["children"] = [node_of(child, f"{name}.{key}") for key, child in children.items() if child is not None]
        return node

    return named, node_of(model, ROOT)


def uncompiled(module: torch.nn.Module) -> torch.nn.Module:
    """The module itself where `module` is what torch.compile has put around it."""
    inner = getattr(module, "_orig_mod", None)
    return inner if isinstance(inner, torch.nn.Module) else module


def has_forward(module: torch.nn.Module) -> bool:
    """Lists and dicts of modules are never called."""
    return inspect.getattr_static(module, "forward") is not torch.nn.Module.forward


def add_order(node: dict[str, Any], order: dict[str, int]) -> None:
    """Notes in the tree at which position each module was called."""
    if node["name"] in order:
        node["order"] = order[node["name"]]
    for child in node["children"]:
        add_order(child, order)
