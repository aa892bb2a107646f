"""The document on the pre-check of torch APIs: its commands and its code, as they are written there, by section."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("api_accuracy_checker", reason="ait-compat is not installed")

TRAINING = """
import torch
{imports}
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 40), torch.nn.Dropout(0.25), torch.nn.Linear(40, 2)).to({dtype})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.arange(20.0).reshape(5, 4)
for step, batch in enumerate({batches}):
{inside}
    loss = torch.tanh(model(batch.reshape(-1, 4).to({dtype}))).sum() * (step + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOADER, PLAIN = "torch.utils.data.DataLoader(data, batch_size=1)", "data"
IMPORT = "import api_accuracy_checker.dump"
IMPORT_AS = "import api_accuracy_checker.dump as DP"
SWITCH_ON = 'DP.dump.set_dump_switch("ON")'
CONFIG = """\
from api_accuracy_checker.dump import msCheckerConfig
msCheckerConfig.update_config(dump_path="my/dump/path", real_data=True, enable_dataloader=True, target_iter=1)
"""
RESULT_HEADER = (
    "API name,Forward Test Success,Backward Test Success,Message,Forward Within Rounding,Backward Within Rounding"
)
EXIT = "\nException: Model pretest: exit after iteration 1.\n"

# The lines of the document's shell blocks.
EXPORT = "export PYTHONPATH=$PYTHONPATH:$ATT_HOME/debug/accuracy_tools/"
GO_THERE = "cd $ATT_HOME/debug/accuracy_tools/api_accuracy_checker/run_ut"
RUN = "python run_ut.py -forward ./forward_info_0.json -backward ./backward_info_0.json"
RUN_AND_SAVE = f"{RUN} -save_error_data"
OVERFLOW = "python run_overflow_check.py -forward ./forward_info_0.json"


class Machine:
    """A folder for the training and an $ATT_HOME of its own: a copy, since results go to the scripts' folder."""

    def __init__(self, folder):
        self.folder = folder
        code = "import ait_compat.att_home as home; print(home.FOLDER)"
        shipped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        self.home = folder / "att"
        shutil.copytree(shipped.strip(), self.home, ignore=shutil.ignore_patterns("__pycache__"))
        self.scripts = self.home / "debug" / "accuracy_tools" / "api_accuracy_checker" / "run_ut"

    def shell(self, *lines):
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        text = "\n".join(("set -e", f"export ATT_HOME={self.home}", EXPORT, *lines))
        environment = {**os.environ, "PATH": path}
        return subprocess.run(
            ["bash", "-c", text], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600
        )

    def train(self, imports, batches=LOADER, inside="pass", dtype="torch.float32"):
        inside = f"    {inside}"
        text = TRAINING.format(imports=imports, batches=batches, inside=inside, dtype=dtype)
        (self.folder / "main.py").write_text(text)
        return self.shell("python main.py")

    def bring_records(self, folder=None):
        """To where the document's commands look for them. Also what is remembered beside them."""
        for kind in ("forward", "backward", "stack", "rank"):
            for path in (folder or self.folder).glob(f"{kind}_info_*.json"):
                shutil.copy(path, self.scripts / f"{kind}_info_0.json")

    def calls(self, kind, folder=None):
        (path,) = (folder or self.folder).glob(f"{kind}_info_*.json")
        return json.loads(path.read_text())

    def rows(self, name):
        with open(self.scripts / name, newline="") as file:
            return list(csv.DictReader(file))

    def result(self):
        return {row["API name"]: row for row in self.rows("accuracy_checking_result.csv")}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


class TestRecording:
    """使用方式, 2"""

    def test_an_import_is_enough(self, machine):
        done = machine.train(IMPORT)
        assert done.returncode == 1 and EXIT in done.stderr
        forward, backward, stack = (machine.calls(kind) for kind in ("forward", "backward", "stack"))
        assert list(forward) == list(stack) and set(backward) < set(forward)
        # The second iteration, whose number stands in the loss.
        (product,) = (call for key, call in forward.items() if key.startswith("Tensor*mul*"))
        assert product["args"][1]["value"] == 2
        assert any("main.py" in line for line in stack["Functional*linear*0"])
        names = {re.sub(r"\d+", "{pid}", path.name) for path in machine.folder.glob("*_info_*.json")}
        assert names == {f"{kind}_info_{{pid}}.json" for kind in ("forward", "backward", "stack", "rank")}

    @pytest.mark.parametrize("line", [SWITCH_ON, SWITCH_ON.replace(".dump", "", 1)])
    def test_the_switch_for_scripts_without_a_loader(self, line, machine):
        done = machine.train(IMPORT_AS, PLAIN, line)
        assert done.returncode == 0, done.stderr
        assert sum(key.startswith("Functional*linear*") for key in machine.calls("forward")) == 2 * 5

    def test_the_configuration(self, machine):
        folder = machine.folder / "my" / "dump" / "path"
        folder.mkdir(parents=True)
        done = machine.train(CONFIG)
        assert done.returncode == 1 and EXIT in done.stderr
        assert not list(machine.folder.glob("*.json"))
        for kind in ("forward", "backward"):
            files = {str(path) for path in (folder / f"{kind}_real_data").iterdir()}
            text = json.dumps(machine.calls(kind, folder))
            assert files == set(re.findall(r'"datapath": "([^"]*)"', text)) and len(files) > 3

    def test_a_dump_path_that_is_not_there(self, machine):
        done = machine.train(CONFIG)
        assert done.returncode == 1 and "The path my/dump/path is not exist" in done.stderr

    def test_another_iteration(self, machine):
        line = CONFIG.replace("target_iter=1", "target_iter=3").replace('"my/dump/path", real_data=True', '"."')
        done = machine.train(line)
        assert EXIT.replace("1", "3") in done.stderr
        (product,) = (call for key, call in machine.calls("forward").items() if key.startswith("Tensor*mul*"))
        assert product["args"][1]["value"] == 4


class TestRunUt:
    """使用方式, 3 and 4"""

    def test_the_command(self, machine):
        machine.train(IMPORT)
        machine.bring_records()
        done = machine.shell(GO_THERE, RUN)
        assert done.returncode == 0, done.stderr
        text = (machine.scripts / "accuracy_checking_result.csv").read_bytes().decode()
        assert text.startswith(RESULT_HEADER + "\r\n") and text.count("\r\n") == text.count("\n")
        assert list(machine.result()) == list(machine.calls("forward"))
        linear = machine.result()["Functional*linear*1"]
        assert (linear["Forward Within Rounding"], linear["Backward Within Rounding"]) == ("True", "True")
        details = {row["Npu Name"] for row in machine.rows("accuracy_checking_details.csv")}
        assert {"Functional*linear*1.forward.output.0", "Functional*linear*1.backward.output.2"} <= details
        assert "-[INFO]start UT test" in done.stderr and "-[INFO]UT task completed." in done.stderr
        assert "the CPU in the recorded precision" in done.stdout and "Total Pass" in done.stdout
        assert not (machine.scripts / "ut_error_data").exists()

    def test_another_place_for_the_results(self, machine):
        machine.train(IMPORT)
        machine.bring_records()
        (machine.folder / "results").mkdir()
        done = machine.shell(GO_THERE, f"{RUN} --out_path {machine.folder}/results")
        assert done.returncode == 0, done.stderr
        names = {path.name for path in (machine.folder / "results").iterdir()}
        assert names == {"accuracy_checking_result.csv", "accuracy_checking_details.csv"}
        assert not list(machine.scripts.glob("*.csv"))
        # The same from any other folder.
        files = f"-forward {machine.scripts}/forward_info_0.json -backward {machine.scripts}/backward_info_0.json"
        done = machine.shell(f"python -m api_accuracy_checker.run_ut.run_ut {files} --out_path again")
        assert done.returncode == 0, done.stderr
        for name in names:
            assert (machine.folder / "again" / name).read_bytes() == (machine.folder / "results" / name).read_bytes()

    def test_error_data(self, machine):
        machine.train(IMPORT)
        machine.bring_records()
        self.break_one(machine)
        done = machine.shell(GO_THERE, RUN_AND_SAVE)
        assert done.returncode == 0, done.stderr
        assert machine.result()["Torch*matmul*99"]["Forward Test Success"] == "False"
        saved = {path.name for path in (machine.scripts / "ut_error_data").iterdir()}
        assert {
            "Torch.matmul.99.json",
            "Torch.matmul.99.forward.input.0.pt",
            "Torch.matmul.99.forward.output.bench.0.pt",
        } <= saved

    def test_error_data_where_the_training_script_said(self, machine):
        line = CONFIG.replace("dump_path=", 'error_data_path="kept", dump_path=').replace(
            "real_data=True", "real_data=False"
        )
        (machine.folder / "my" / "dump" / "path").mkdir(parents=True)
        (machine.folder / "kept").mkdir()
        machine.train(line)
        machine.bring_records(machine.folder / "my" / "dump" / "path")
        self.break_one(machine)
        done = machine.shell(GO_THERE, RUN_AND_SAVE)
        assert done.returncode == 0, done.stderr
        assert (machine.folder / "kept" / "ut_error_data" / "Torch.matmul.99.json").exists()
        assert not (machine.scripts / "ut_error_data").exists()

    def break_one(self, machine):
        """Adds a product that healthy kernels fail by the rule: what is left of sums is smaller than their parts."""
        path = machine.scripts / "forward_info_0.json"
        records = json.loads(path.read_text())
        tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "Max": 1.0, "Min": -1.0, "requires_grad": False}
        args = [{**tensor, "shape": [64, 4096]}, {**tensor, "shape": [4096, 64]}]
        records["Torch*matmul*99"] = {"args": args, "kwargs": {}}
        path.write_text(json.dumps(records))


OVERFLOWING = """
import torch
from ptdbg_ascend import *
model = torch.nn.Linear(2, 2)
register_hook(model, overflow_check, overflow_nums=2)
x = torch.tensor([1.0, 60000.0], dtype=torch.float16)
for _ in range(4):
    x.mul(2)
"""


class TestOverflow:
    """溢出API解析工具"""

    def test_the_command(self, machine):
        (machine.folder / "main.py").write_text(OVERFLOWING)
        trained = machine.shell("python main.py")
        assert trained.returncode == 1 and "ValueError: [overflow 2 times]: dump file is saved in" in trained.stderr
        assert set(machine.calls("forward")) == {"Tensor_mul_0_forward", "Tensor_mul_1_forward"}
        assert machine.calls("backward") == {}
        machine.bring_records()
        done = machine.shell(GO_THERE, OVERFLOW)
        assert done.returncode == 0, done.stderr
        for number in (0, 1):
            assert f"The Tensor_mul_{number}_forward overflow is a normal overflow." in done.stderr


class TestQuestions:
    """FAQ"""

    @pytest.fixture
    def checked(self, machine):
        """A training in bfloat16."""
        machine.train(IMPORT, dtype="torch.bfloat16")
        machine.bring_records()
        done = machine.shell(GO_THERE, RUN)
        assert done.returncode == 0, done.stderr
        return machine, done

    def test_all_three(self, checked):
        machine, done = checked
        # 1. bfloat16 is no error.
        assert "BFloat16" not in done.stderr + done.stdout
        skipped = [row for row in machine.result().values() if row["Forward Test Success"] == "SKIP"]
        assert all("computes nothing" in row["Message"] for row in skipped)
        details = {row["Npu Name"]: row for row in machine.rows("accuracy_checking_details.csv")}
        # 2. Dropout is judged by the share of its zeros.
        dropout = details["Functional*dropout*0.forward.output.0"]
        assert dropout["Pass"] == "True" and "dropout: a share of" in dropout["Message"]
        # 3. The benchmark has a higher precision.
        linear = details["Functional*linear*0.forward.output.0"]
        assert (linear["Bench Dtype"], linear["NPU Dtype"]) == ("torch.float32", "torch.bfloat16")
