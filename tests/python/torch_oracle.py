"""What a model's modules really get and give, seen another way than by hooks, and what of it should be in files."""

import collections
import dataclasses
from pathlib import Path

import torch
from tensor_bytes import bytes_of


def expected_files(value, stem):
    """The names of the documents for the tensors in `value`."""
    if isinstance(value, torch.Tensor):
        return {f"{stem}.pth": value}
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (tuple, list)):
        items = enumerate(value)
    elif dataclasses.is_dataclass(value):
        items = vars(value).items()
    else:
        return {}
    found = {}
    for key, each in items:
        found.update(expected_files(each, f"{stem}_{key}"))
    return found


def cloned(files):
    return {name: tensor.detach().clone() for name, tensor in files.items()}


class Watcher:
    """Replaces the call of every module while it is entered, and clones what goes in and out.

    calls[round][folder] = {file: tensor}
    """

    def __init__(self, model):
        self.names = {}
        for name, module in model.named_modules():
            self.names.setdefault(id(module), f"root.{name}" if name else "root")
        self.model = model
        self.calls = collections.defaultdict(dict)
        self.round = 0
        self.root_calls = 0

    def __enter__(self):
        original = self.original = torch.nn.Module.__call__

        def call(module, *args, **kwargs):
            name = self.names.get(id(module))
            if name is None:
                return original(module, *args, **kwargs)
            if module is self.model:
                self.round = self.root_calls
                self.root_calls += 1
            number, folders = self.round, self.calls[self.round]
            repeats = sum(folder.split("#")[0] == name for folder in folders)
            folder = f"{name}#{repeats}" if repeats else name
            files = folders[folder] = {}
            files.update(cloned(expected_files(args, "input")))
            files.update(cloned(expected_files(kwargs, "input")))
            output = original(module, *args, **kwargs)
            files.update(cloned(expected_files(output, "output")))
            assert self.calls[number][folder] is files
            return output

        torch.nn.Module.__call__ = call
        return self

    def __exit__(self, *_):
        torch.nn.Module.__call__ = self.original


def recorded(folder):
    """{round: {folder: {file: tensor}}} of a process folder."""
    found = {}
    for path in Path(folder).glob("*/*/*.pth"):
        if path.parts[-3].isdigit():
            calls = found.setdefault(int(path.parts[-3]), {})
            calls.setdefault(path.parts[-2], {})[path.name] = torch.load(path, weights_only=True)
    return found


def assert_same_tensor(loaded, expected):
    assert type(loaded) is torch.Tensor
    assert loaded.dtype == expected.dtype
    assert loaded.shape == expected.shape
    assert loaded.device.type == "cpu"
    expected = expected.detach().cpu().resolve_conj().resolve_neg()
    assert torch.equal(bytes_of(loaded), bytes_of(expected))


def assert_recorded(folder, calls, rounds):
    """Exactly the rounds asked for, each with exactly the tensors that were seen, bit for bit."""
    found = recorded(folder)
    wanted = {number: {name: files for name, files in calls[number].items() if files} for number in rounds}
    assert set(found) == set(wanted)
    for number in rounds:
        assert set(found[number]) == set(wanted[number])
        for name, files in wanted[number].items():
            assert set(found[number][name]) == set(files), name
            for file, tensor in files.items():
                assert_same_tensor(found[number][name][file], tensor)
