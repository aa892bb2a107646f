"""The Python blocks of the documents on TorchAir, as they are written there, against a stand-in for torchair.

`model = ...` is given a model, and the model is called after each block; every other line is the document's.
"""

import inspect
import json
import logging
import pathlib
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("msit_llm.dump")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import torchair_stand_in
from ait_llm.dump import torchair_dump

FUSION_SWITCH = {"Switch": {"GraphFusion": {"ALL": "off"}, "UBFusion": {"ALL": "off"}}}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fusion_switch.json").write_text(json.dumps(FUSION_SWITCH, indent=2))
    return tmp_path


@pytest.fixture
def run(monkeypatch):
    """Runs a block and the model that it compiles; gives the configuration."""

    def run_block(block, **variant):
        torchair_stand_in.install(monkeypatch, **variant)
        backends = []
        compile_ = torch.compile
        monkeypatch.setattr(torch, "compile", lambda *a, **k: backends.append(k["backend"]) or compile_(*a, **k))
        block = textwrap.dedent(block)
        assert block.count("model = ...") == 1
        names = {}
        exec(block.replace("model = ...", "model = torch.nn.Linear(4, 4)"), names)
        assert backends == [names["npu_backend"]]
        x = torch.ones(2, 4)
        assert torch.equal(names["model"](x), names["model"]._orig_mod(x))
        return names["config"]

    return run_block


def settings(option):
    return dict(option._values)


def check_ge(config, folder, fusion_switch_file=None):
    assert folder.is_dir()
    assert settings(config.dump_config) == {"enable_dump": True, "dump_mode": "all", "dump_path": str(folder)}
    assert config.debug.graph_dump.type == "txt"
    assert config.fusion_config.fusion_switch_file == fusion_switch_file


def parameters(function):
    return [(each.name, each.default, each.kind) for each in inspect.signature(function).parameters.values()]


class TestInterfaces:
    """003, 1.1.1 and 1.2.1"""

    def test_ge(self):
        assert parameters(torchair_dump.get_ge_dump_config) == parameters(self.ge)

    def test_fx(self):
        assert parameters(torchair_dump.get_fx_dump_config) == parameters(self.fx)

    @staticmethod
    def ge(
        dump_path='', dump_mode='all', fusion_switch_file=None, dump_token=None, dump_layer=None, compiler_config=None
    ):  # fmt: skip
        """As the document has it."""

    @staticmethod
    def fx(dump_path='', compiler_config=None):  # fmt: skip
        """As the document has it."""


class TestGeDump:
    """003, 1.1.2"""

    def test_existing_config(self, run, folder):
        config = run("""
          # 若用户已创建 CompilerConfig 对象

          import torch, torch_npu, torchair
          from msit_llm.dump import torchair_dump  # 添加导入
          ...
          model = ...
          config = torchair.CompilerConfig()
          # 在已有 config 上增加 dump 配置
          torchair_dump.get_ge_dump_config(dump_path="dump", compiler_config=config)
          ...
          npu_backend = torchair.get_npu_backend(compiler_config=config)
          model = torch.compile(model, backend=npu_backend)
          ...
        """)
        check_ge(config, folder / "dump/msit_ge_dump")

    def test_new_config(self, run, folder):
        config = run("""
          # 若用户未创建 CompilerConfig 对象

          import torch, torch_npu, torchair
          from msit_llm.dump import torchair_dump  # 添加导入
          ...
          model = ...
          # 添加获取 config
          config = torchair_dump.get_ge_dump_config(dump_path="dump")
          ...
          npu_backend = torchair.get_npu_backend(compiler_config=config)
          model = torch.compile(model, backend=npu_backend)
          ...
        """)
        check_ge(config, folder / "dump/msit_ge_dump")


class TestFxDump:
    """003, 1.2.2; versions below 7.1.0 do not take the path (1.2.1)"""

    EXISTING = """
      # 若用户已创建 CompilerConfig 对象

      import torch, torch_npu, torchair
      from msit_llm.dump import torchair_dump  # 添加导入
      ...
      model = ...
      config = torchair.CompilerConfig()
      # 在已有 config 上增加 dump 配置
      torchair_dump.get_fx_dump_config(dump_path="dump", compiler_config=config)
      ...
      npu_backend = torchair.get_npu_backend(compiler_config=config)
      model = torch.compile(model, backend=npu_backend)
      ...
    """
    NEW = """
      # 若用户未创建 CompilerConfig 对象

      import torch, torch_npu, torchair
      from msit_llm.dump import torchair_dump  # 添加导入
      ...
      model = ...
      # 添加获取 config
      config = torchair_dump.get_fx_dump_config(dump_path="dump")
      ...
      npu_backend = torchair.get_npu_backend(compiler_config=config)
      model = torch.compile(model, backend=npu_backend)
      ...
    """

    @pytest.mark.parametrize("block", [EXISTING, NEW], ids=["existing config", "new config"])
    def test_block(self, run, folder, block):
        config = run(block)
        path = folder / "dump/msit_fx_dump"
        assert path.is_dir() and settings(config.debug.data_dump) == {"type": "npy", "path": str(path)}

    @pytest.mark.parametrize("block", [EXISTING, NEW], ids=["existing config", "new config"])
    def test_older_versions(self, run, caplog, block):
        with caplog.at_level(logging.WARNING):
            config = run(block, fx_path=False)
        assert settings(config.debug.data_dump) == {"type": "npy"}
        assert "data_dump" in caplog.text


class TestGeDumpWithoutFusion:
    """003, 2.2"""

    def test_existing_config(self, run, folder):
        config = run("""
          # 若用户已创建 CompilerConfig 对象

          import torch, torch_npu, torchair
          from msit_llm.dump import torchair_dump  # 添加导入
          ...
          model = ...
          config = torchair.CompilerConfig()
          # 在已有 config 上增加 dump 配置
          torchair_dump.get_ge_dump_config(dump_path="dump_fusion_off",
                                           fusion_switch_file="fusion_switch.json", compiler_config=config)
          ...
          npu_backend = torchair.get_npu_backend(compiler_config=config)
          model = torch.compile(model, backend=npu_backend)
          ...
        """)
        check_ge(config, folder / "dump_fusion_off/msit_ge_dump", str(folder / "fusion_switch.json"))

    def test_new_config(self, run, folder):
        config = run("""
          # 若用户未创建 CompilerConfig 对象

          import torch, torch_npu, torchair
          from msit_llm.dump import torchair_dump  # 添加导入
          ...
          model = ...
          # 添加获取 config
          config = torchair_dump.get_ge_dump_config(dump_path="dump_fusion_off", fusion_switch_file="fusion_switch.json")
          ...
          npu_backend = torchair.get_npu_backend(compiler_config=config)
          model = torch.compile(model, backend=npu_backend)
          ...
        """)  # noqa: E501
        check_ge(config, folder / "dump_fusion_off/msit_ge_dump", str(folder / "fusion_switch.json"))


class TestVersionOne:
    """001, 2.1 1) and 2.2 1); the folders are those of 003 (docs/deviations.md)"""

    GE = """
      import torch, torch_npu, torchair
      from ait_llm.dump import torchair_dump  # 添加导入
      ...
      model = ...
      config = torchair_dump.get_ge_dump_config(dump_path="dump")  # 添加获取 config
      ...
      npu_backend = torchair.get_npu_backend(compiler_config=config)
      model = torch.compile(model, backend=npu_backend, dynamic=True)
      ...
    """

    def test_ge(self, run, folder):
        check_ge(run(self.GE), folder / "dump/msit_ge_dump")

    def test_fx(self, run, folder):
        config = run("""
          import torch, torch_npu, torchair
          from ait_llm.dump import torchair_dump  # 添加导入
          ...
          model = ...
          config = torchair_dump.get_fx_dump_config()  # 添加获取 config
          ...
          npu_backend = torchair.get_npu_backend(compiler_config=config)
          model = torch.compile(model, backend=npu_backend, dynamic=True)
          ...
        """)
        assert settings(config.debug.data_dump) == {"type": "npy", "path": str(folder / "msit_fx_dump")}

    def test_ge_without_fusion_into_the_same_path(self, run, folder, caplog):
        run(self.GE)
        (folder / "dump/msit_ge_dump/20241114113410").mkdir()  # what GE would have left
        with caplog.at_level(logging.WARNING):
            config = run("""
              import torch, torch_npu, torchair
              from ait_llm.dump import torchair_dump  # 添加导入
              ...
              model = ...
              config = torchair_dump.get_ge_dump_config(dump_path="dump", fusion_switch_file="fusion_switch.json")  # 添加获取 config
              ...
              npu_backend = torchair.get_npu_backend(compiler_config=config)
              model = torch.compile(model, backend=npu_backend, dynamic=True)
              ...
            """)  # noqa: E501
        check_ge(config, folder / "dump/msit_ge_dump", str(folder / "fusion_switch.json"))
        assert "is not empty: data of two dumps would be mixed" in caplog.text
