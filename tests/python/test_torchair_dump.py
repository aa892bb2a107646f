"""Dump settings for TorchAir, on stand-ins for its configuration of today and of older versions."""

import logging
import os
import sys

import pytest
import torchair_stand_in
from ait_llm.dump import torchair_dump


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def torchair(monkeypatch):
    return torchair_stand_in.install(monkeypatch)


def settings(option):
    return dict(option._values)


def test_a_new_config_records_everything(torchair, tmp_path):
    config = torchair_dump.get_ge_dump_config(dump_path="dump")
    folder = str(tmp_path / "dump/msit_ge_dump")
    assert isinstance(config, torchair.CompilerConfig)
    assert settings(config.debug.graph_dump) == {"type": "txt", "_path": folder}
    assert settings(config.dump_config) == {"enable_dump": True, "dump_mode": "all", "dump_path": folder}
    assert settings(config.fusion_config) == {} and settings(config.debug.data_dump) == {}
    assert os.stat(folder).st_mode & 0o777 == 0o750


def test_a_config_of_the_users_is_changed_and_returned(torchair):
    config = torchair.CompilerConfig()
    config.debug.data_dump.type = "npy"
    assert torchair_dump.get_ge_dump_config("dump", compiler_config=config) is config
    assert config.dump_config.enable_dump is True and config.debug.data_dump.type == "npy"


def test_every_parameter_arrives_where_torchair_looks_for_it(torchair, tmp_path):
    (tmp_path / "fusion_switch.json").write_text('{"Switch": {"GraphFusion": {"ALL": "off"}}}')
    config = torchair_dump.get_ge_dump_config(
        dump_path="./",
        dump_mode="output",
        fusion_switch_file="fusion_switch.json",
        dump_token=[1, 2, 5],
        dump_layer=["Add", "Conv_1"],
    )
    assert config.fusion_config.fusion_switch_file == str(tmp_path / "fusion_switch.json")
    assert settings(config.dump_config) == {
        "enable_dump": True,
        "dump_mode": "output",
        "dump_path": str(tmp_path / "msit_ge_dump"),
        "dump_step": "1|2|5",
        "dump_layer": "Add Conv_1",
    }
    assert torchair_dump.get_ge_dump_config("b", dump_token=["2-5", 7]).dump_config.dump_step == "2-5|7"
    assert torchair_dump.get_ge_dump_config("c", dump_token=[]).dump_config.dump_step == ""


def test_older_torchair_has_another_name_for_the_graphs_path(monkeypatch, tmp_path):
    torchair_stand_in.install(monkeypatch, graph_path="path")
    config = torchair_dump.get_ge_dump_config()
    assert config.debug.graph_dump.path == str(tmp_path / "msit_ge_dump")


def test_fx_is_recorded_node_by_node(torchair, tmp_path):
    config = torchair_dump.get_fx_dump_config(dump_path="dump")
    assert settings(config.debug.data_dump) == {"type": "npy", "path": str(tmp_path / "dump/msit_fx_dump")}
    assert settings(config.dump_config) == {} and settings(config.debug.graph_dump) == {}
    given = torchair.CompilerConfig()
    assert torchair_dump.get_fx_dump_config("other", given) is given


def test_older_torchair_ignores_the_path_of_fx_and_that_is_said(monkeypatch, tmp_path, caplog):
    torchair_stand_in.install(monkeypatch, fx_path=False)
    config = torchair_dump.get_fx_dump_config(dump_path="dump")
    assert settings(config.debug.data_dump) == {"type": "npy"}
    assert (tmp_path / "dump/msit_fx_dump").is_dir()
    assert str(tmp_path / "data_dump") in caplog.text


def test_a_path_that_was_used_before_is_warned_of(torchair, tmp_path, caplog):
    torchair_dump.get_ge_dump_config("dump")
    assert caplog.text == ""
    (tmp_path / "dump/msit_ge_dump/dynamo_original_graph_1.txt").touch()
    torchair_dump.get_ge_dump_config("dump")
    assert "is not empty: data of two dumps would be mixed" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"dump_path": 3}, TypeError, "dump_path must be a str, not int"),
        ({"dump_path": "a b"}, ValueError, "letters, digits"),
        ({"dump_path": "x" * 300}, ValueError, "too long"),
        ({"dump_mode": "both"}, ValueError, '"input", "output" or "all"'),
        ({"dump_token": "12"}, TypeError, "must be a list"),
        ({"dump_token": 3}, TypeError, "must be a list"),
        ({"dump_token": [-1]}, ValueError, "-1 does not belong"),
        ({"dump_token": [True]}, TypeError, "True does not belong"),
        ({"dump_token": ["1|2"]}, ValueError, "does not belong"),
        ({"dump_layer": "Add"}, TypeError, "must be a list"),
        ({"dump_layer": [1]}, TypeError, "1 does not belong"),
        ({"dump_layer": ["a;b"]}, ValueError, "does not belong"),
        ({"fusion_switch_file": "nowhere.json"}, FileNotFoundError, "nowhere.json"),
        ({"fusion_switch_file": 3}, TypeError, "must be a path"),
        ({"compiler_config": object()}, TypeError, "must be a torchair.CompilerConfig, not object"),
    ],
    ids=repr,
)
def test_a_wrong_call_says_what_is_wrong_and_changes_nothing(torchair, tmp_path, wrong, error, words):
    config = torchair.CompilerConfig()
    with pytest.raises(error, match=words):
        torchair_dump.get_ge_dump_config(**{"dump_path": "dump", "compiler_config": config, **wrong})
    assert not list(tmp_path.iterdir())
    assert settings(config.dump_config) == {} and settings(config.debug.graph_dump) == {}


def test_where_torchair_is_missing_that_is_said(monkeypatch, tmp_path, caplog):
    monkeypatch.setitem(sys.modules, "torch_npu", None)
    for call in (torchair_dump.get_ge_dump_config, torchair_dump.get_fx_dump_config):
        with pytest.raises(ModuleNotFoundError):
            call("dump")
    assert "install torch_npu and torchair" in caplog.text and "fx_backend" in caplog.text
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(torchair, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(PermissionError, match="cannot be read and written"):
        torchair_dump.get_ge_dump_config("closed")


def test_a_folder_that_everybody_may_write_is_refused(torchair, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError, match="written by everybody"):
        torchair_dump.get_ge_dump_config("open")
