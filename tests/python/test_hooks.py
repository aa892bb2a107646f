"""DumpConfig and register_hook: what they take, where they write, and what they leave alone."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import ait_llm
import pytest
import torch
from ait_llm import DumpConfig, register_hook
from hook_models import Model, X, load, manifest_of, nodes_of, record, tree_of
from torch_oracle import Watcher, assert_recorded, assert_same_tensor, recorded

# DumpConfig


def test_the_parameters_of_the_document_are_in_its_order_with_its_defaults(tmp_path):
    config = DumpConfig()
    assert (config.dump_path, config.token_range, config.module_list, config.tensor_part, config.device_id) == (
        ".",
        [0],
        [],
        2,
        None,
    )
    config = DumpConfig(str(tmp_path), [1, 2], [torch.nn.Linear], 1, 3)
    assert (config.dump_path, config.token_range, config.module_list, config.tensor_part, config.device_id) == (
        str(tmp_path),
        [1, 2],
        [torch.nn.Linear],
        1,
        3,
    )
    with pytest.raises(TypeError):
        DumpConfig(str(tmp_path), [1], [], 1, 3, "module")


def test_an_empty_token_range_is_the_first_round():
    assert DumpConfig(token_range=[]).token_range == DumpConfig(token_range=None).token_range == [0]


BAD = [
    ("dump_path", 7),
    ("dump_path", "a\0b"),
    ("dump_path", "/dev/null"),
    ("token_range", 0),
    ("token_range", (0, 1)),
    ("token_range", [-1]),
    ("token_range", ["0"]),
    ("token_range", [True]),
    ("module_list", torch.nn.Linear),
    ("module_list", ["Linear"]),
    ("module_list", [torch.nn.Linear(1, 1)]),
    ("tensor_part", 3),
    ("tensor_part", "2"),
    ("tensor_part", True),
    ("device_id", "0"),
    ("store_as", "fp16"),
    ("store_as", 16),
    ("device_id", -1),
    ("api_list", torch.add),
    ("api_list", ["add"]),
    ("mode", "modules"),
    ("mode", []),
    ("mode", 1),
    ("dump_statistics_mode", 3),
    ("dump_statistics_mode", None),
    ("layer_name", ""),
    ("layer_name", 3),
    ("dump_weight", 1),
    ("seed", -1),
    ("seed", 1.5),
]


@pytest.mark.parametrize("name, value", BAD, ids=lambda value: repr(value)[:30])
def test_an_argument_that_makes_no_sense_is_named(name, value, caplog):
    with pytest.raises(ValueError, match=f"^Invalid args of DumpConfig. {name} must be ") as error:
        DumpConfig(**{name: value})
    assert repr(value)[:20] in str(error.value)
    assert caplog.messages[0].startswith(f"DumpConfig: {name} must be ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_said_at_once(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="can be written to"):
        DumpConfig(str(tmp_path / "below"))


def test_importing_needs_no_torch():
    code = "import sys; from ait_llm import DumpConfig, register_hook; DumpConfig(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


# register_hook


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((object(), DumpConfig()), "model must be a torch.nn.Module, not object"),
        ((Model(), {}), "config must be a DumpConfig, not dict"),
        ((Model(), DumpConfig(), "profile"), "the only hook is"),
    ],
)
def test_a_wrong_argument_is_an_error_in_the_log_and_nothing_is_done(arguments, words, caplog, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    handle = register_hook(*arguments)
    if isinstance(arguments[0], torch.nn.Module):
        arguments[0](X)
    handle.remove()
    assert handle.folder is None
    assert len(caplog.records) == 1 and caplog.records[0].levelno == logging.ERROR and words in caplog.messages[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [{"hook_name": "dump_data"}, {"hook_type": "dump_data"}])
def test_both_spellings_of_the_third_parameter_are_taken(arguments, tmp_path):
    register_hook(Model(), DumpConfig(str(tmp_path)), **arguments).remove()
    register_hook(Model(), DumpConfig(str(tmp_path)), "dump_data").remove()
    assert len(list(tmp_path.glob("ait_dump/torch_tensors/*/model_tree.json"))) == 2


def test_the_path_is_that_of_the_document_taken_literally_and_printed(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    handle = record(Model(), tmp_path, X, config=DumpConfig(dump_path="./ait_dump"))
    assert handle.folder == str(tmp_path / "ait_dump" / "ait_dump" / "torch_tensors" / f"cpu_{os.getpid()}")
    assert f"ait_llm: recording Model in {handle.folder}" in capfd.readouterr().err
    assert capfd.readouterr().out == ""
    assert sorted(path.name for path in Path(handle.folder).iterdir()) == ["0", "manifest.json", "model_tree.json"]


def test_rounds_inputs_outputs_and_keyword_arguments_are_where_the_document_says(tmp_path):
    model = Model()
    handle = record(model, tmp_path, X)
    files = {str(path.relative_to(handle.folder)) for path in Path(handle.folder).rglob("*.pth")}
    blocks = {f"0/root.blocks.{i}/{name}.pth" for i in range(2) for name in ("input_0", "input_scale", "output")}
    inner = {
        f"0/root.{module}/{name}.pth"
        for name in ("input_0", "output")
        for module in ["head", *(f"blocks.{i}.{part}" for i in range(2) for part in ("fc", "act"))]
    }
    assert files == {"0/root/input_0.pth", "0/root/output.pth", *blocks, *inner}
    assert torch.equal(load(handle, "0/root/input_0.pth"), X)
    assert torch.equal(load(handle, "0/root/output.pth"), model(X))


@pytest.mark.parametrize("part, names", [(0, {"input_0"}), (1, {"output"}), (2, {"input_0", "output"})])
def test_tensor_part_chooses_inputs_or_outputs(part, names, tmp_path):
    handle = record(torch.nn.Linear(4, 4), tmp_path, X, config=DumpConfig(str(tmp_path), tensor_part=part))
    assert {path.stem for path in Path(handle.folder, "0/root").glob("*.pth")} == names


def test_only_the_rounds_asked_for_are_recorded(tmp_path):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path), [1, 3])) as handle, Watcher(model) as watcher:
        for step in range(5):
            model(X + step)
    assert_recorded(handle.folder, watcher.calls, rounds=[1, 3])
    assert set(manifest_of(handle)["rounds"]) == {"1", "3"}
    assert manifest_of(handle)["root_calls"] == 5


def test_a_model_on_the_cpu_is_recorded_whatever_device_is_asked_for(tmp_path):
    handle = record(Model(), tmp_path, X, config=DumpConfig(str(tmp_path), device_id=1))
    assert Path(handle.folder).name == f"cpu_{os.getpid()}" and set(recorded(handle.folder)) == {0}


def test_module_list_takes_subclasses_too(tmp_path):
    class Special(torch.nn.Linear):
        pass

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), Special(4, 4), torch.nn.ReLU())
    handle = record(model, tmp_path, X, config=DumpConfig(str(tmp_path), module_list=[torch.nn.Linear]))
    assert {path.name for path in Path(handle.folder, "0").iterdir()} == {"root.0", "root.1"}
    assert manifest_of(handle)["rounds"]["0"]["expected"] == 2


@pytest.mark.parametrize(
    "pattern, names",
    [
        ("root.blocks.0.*", {"root.blocks.0.fc", "root.blocks.0.act"}),
        ("*fc", {"root.blocks.0.fc", "root.blocks.1.fc"}),
        ("root", {"root"}),
        ("root.*.1", {"root.blocks.1"}),
        ("blocks", set()),
        ("root.blocks.0.f.", set()),
    ],
)
def test_layer_name_is_a_pattern_on_the_whole_name(pattern, names, tmp_path):
    config = DumpConfig(str(tmp_path), layer_name=pattern, dump_weight=True)
    handle = record(Model(), tmp_path, X, config=config)
    found = {path.name for path in Path(handle.folder).glob("0/*")}
    assert found == names


def test_weights_are_saved_once_under_their_names(tmp_path):
    model = Model()
    handle = record(model, tmp_path, X, config=DumpConfig(str(tmp_path), dump_weight=True))
    expected = {f"root.{name}.pth": value for name, value in model.named_parameters()}
    assert {path.name for path in Path(handle.folder, "weights").iterdir()} == set(expected)
    for name, value in expected.items():
        assert_same_tensor(load(handle, "weights", name), value)
    handle = record(
        model, tmp_path, X, config=DumpConfig(str(tmp_path), dump_weight=True, layer_name="root.blocks.0.*")
    )
    assert {path.name for path in Path(handle.folder, "weights").iterdir()} == {
        "root.blocks.0.fc.weight.pth",
        "root.blocks.0.fc.bias.pth",
    }


def test_a_seed_makes_computing_deterministic(tmp_path):
    def sample():
        register_hook(Model(), DumpConfig(str(tmp_path), seed=11)).remove()
        return torch.rand(3)

    before = dict(os.environ)
    try:
        assert torch.equal(sample(), sample())
        assert torch.are_deterministic_algorithms_enabled()
        assert os.environ["HCCL_DETERMINISTIC"] == "true" and os.environ["PYTHONHASHSEED"] == "11"
    finally:
        torch.use_deterministic_algorithms(False)
        os.environ.clear()
        os.environ.update(before)


# The tree


def test_the_tree_is_there_from_the_start_and_has_the_known_keys(tmp_path):
    model = Model()
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        handle.flush()
        tree = tree_of(handle)
        assert set(tree) == {"name", "type", "children"}
        model(X)
    nodes = list(nodes_of(tree))
    assert [(node["name"], node["type"]) for node in nodes] == [
        (f"root.{name}" if name else "root", type(module).__name__) for name, module in model.named_modules()
    ]
    order = {node["name"]: node["order"] for node in nodes_of(tree_of(handle)) if "order" in node}
    ran = ["root", *(f"root.blocks.{i}{part}" for i in range(2) for part in ("", ".fc", ".act")), "root.head"]
    assert order == {name: index for index, name in enumerate(ran)}


def test_the_tree_says_when_each_call_was_where_modules_are_called_again(tmp_path):
    class Again(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.1)
            self.a = torch.nn.Linear(4, 4)
            self.b = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.drop(self.b(self.drop(self.a(x))))

    model = Again()
    with register_hook(model, DumpConfig(str(tmp_path))) as handle:
        model(X)
    nodes = {node["name"]: (node["order"], node["calls"]) for node in nodes_of(tree_of(handle))}
    assert nodes == {"root": (0, [0]), "root.a": (1, [1]), "root.drop": (2, [2, 4]), "root.b": (3, [3])}


def test_a_shared_module_has_its_first_name_and_is_recorded_once_for_each_call(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.nn.Linear(4, 4)
            self.other = self.one

        def forward(self, x):
            return self.other(self.one(x))

    model = Tied()
    with register_hook(model, DumpConfig(str(tmp_path))) as handle, Watcher(model) as watcher:
        model(X)
    assert_recorded(handle.folder, watcher.calls, rounds=[0])
    assert {path.name for path in Path(handle.folder, "0").iterdir()} == {"root", "root.one", "root.one#1"}
    alias = tree_of(handle)["children"][1]
    assert alias == {"name": "root.other", "type": "Linear", "children": [], "alias_of": "root.one"}


def test_modules_that_come_and_go_between_rounds_are_followed(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    with register_hook(model, DumpConfig(str(tmp_path), [0, 1])) as handle:
        model(X)
        model[0] = torch.nn.Linear(4, 2)
        model.append(torch.nn.Tanh())
        with Watcher(model) as watcher:
            model(X)
    found = recorded(handle.folder)
    assert set(found[0]) == {"root", "root.0", "root.1"}
    assert set(found[1]) == {"root", "root.0", "root.1", "root.2"}
    assert_same_tensor(found[1]["root.0"]["output.pth"], watcher.calls[0]["root.0"]["output.pth"])
    assert [node["type"] for node in tree_of(handle)["children"]] == ["Linear", "ReLU", "Tanh"]


@pytest.mark.parametrize("name", ["a/b", "..", "a#1", "a%2Fb", "zürich", "a b", "\n"])
def test_no_module_name_leads_out_of_the_folder(name, tmp_path):
    model = torch.nn.ModuleDict()
    if "." in name:
        model._modules[name] = torch.nn.Linear(4, 4)
    else:
        model.add_module(name, torch.nn.Linear(4, 4))
    model.forward = lambda x: model._modules[name](x)
    with register_hook(model, DumpConfig(str(tmp_path / "deep" / "er"))) as handle:
        model(X)
        model._modules[name](X)
    files = [path.relative_to(handle.folder) for path in Path(handle.folder).glob("0/*/*.pth")]
    assert len({path.parts[1] for path in files}) == 3  # root, the module, and its second call
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


def test_the_public_names_are_there():
    assert {"DumpConfig", "register_hook", "HookHandle"} <= set(ait_llm.__all__)
    assert re.match(r"DumpConfig\(dump_path='\.', token_range=\[0\]", repr(DumpConfig()))
