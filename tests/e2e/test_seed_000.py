"""Seed 000: labels set in a script that runs torch and the acceleration library in one process, several dialogues typed
at its prompt, and the csv that comes out of it."""

import csv
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from conftest import error_line
from torch_run import make_model

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("AIT_ENGINE_LIB", str(REPOSITORY / "build" / "engine" / "lib" / "libatb.so"))
COLUMNS = (
    "data_id,pta_data_path,pta_dtype,pta_shape,acl_data_path,acl_dtype,acl_shape,cmp_flag,cosine_similarity,"
    "max_relative_error,mean_relative_error,relative_euclidean_distance,cmp_fail_reason"
)
RUNNER = (
    "0_LlamaPrefillModel/2_Prefill_layerGraphRunner/1_AttentionGraphRunner/5_SelfAttentionRunner/after/outTensor0.bin"
)

# The steps of the seed on a model that fits here: the loop of main_performance.py, and the labels of its script.
CHAT = """
import sys
import ait_engine, torch, transformers
from msquickcmp.pta_acl_cmp.compare import set_label, gen_id, set_task_id

torch.set_num_threads(1)
folder, runner = sys.argv[1:]
pta_model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
acl_model = ait_engine.Model(folder, dtype="fp16")
attention_output = None

def remember(module, args):
    global attention_output
    attention_output = args[0]

pta_model.model.layers[0].self_attn.o_proj.register_forward_pre_hook(remember)
while True:
    set_task_id()
    query = input("\\nuser: ")
    if query.strip() == "stop":
        break
    tokens = [int(word) for word in query.split()]
    with torch.no_grad():
        logits = pta_model(torch.tensor([tokens])).logits[:, -1]
    data_id = gen_id()
    set_label("pta", data_id, data_val=attention_output)
    set_label("acl", data_id, tensor_path=runner)
    acl_model_out = torch.from_numpy(acl_model.prefill([tokens]))
    data_id = gen_id()
    set_label("pta", data_id, logits)
    set_label("acl", data_id, acl_model_out)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    make_model("llama", 2).save_pretrained(folder)
    return folder


@pytest.fixture
def chat(ait, model, tmp_path):
    (tmp_path / "chat.py").write_text(CHAT)
    (tmp_path / "run.sh").write_text(f'exec {sys.executable} chat.py {model} "$@"\n')

    def run(*options, dialogues="1 15 7\n2 9 33 5\nstop\n", **environment):
        environment = {"AIT_ENGINE_LIB": LIBRARY, "ACLTRANSFORMER_HOME_PATH": str(tmp_path / "home"), **environment}
        return ait(
            "debug",
            "compare",
            "aclcmp",
            "--exec",
            f"bash run.sh {RUNNER}",
            *options,
            input=dialogues,
            env={**os.environ, **environment},
            timeout=120,
        )

    return run


def reports(folder):
    found = sorted(folder.glob("*/*_cmp_result.csv"), key=lambda path: int(path.stem.split("_")[1]))
    for path in found:
        assert path.read_text().splitlines()[0] == COLUMNS
    return [list(csv.DictReader(path.open(newline=""))) for path in found], found


SAVE = dict(
    ACLTRANSFORMER_SAVE_TENSOR="1",
    ACLTRANSFORMER_SAVE_TENSOR_MAX="2",
    ACLTRANSFORMER_SAVE_TENSOR_RUNNER="SelfAttentionRunner",
)


def test_each_dialogue_has_its_report_with_both_kinds_of_labels(chat, tmp_path):
    done = chat(**SAVE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("user: ") == 3  # the prompt stays visible
    rows, paths = reports(tmp_path)
    assert [len(each) for each in rows] == [2, 2]
    for low, high in rows:
        assert low["data_id"].startswith("data_") and low["data_id"] != high["data_id"]
        assert low["acl_data_path"].endswith(RUNNER)
        assert low["acl_dtype"] == "float16" and low["pta_dtype"] == "float32"
        assert high["pta_shape"] == "(1, 97)"
        for row in (low, high):
            assert row["cmp_flag"] == "True" and row["cmp_fail_reason"] in ("", "shape differs, compared flattened.")
            assert float(row["cosine_similarity"]) > 0.9999
            assert 0 < float(row["relative_euclidean_distance"]) < 0.01
    assert rows[0][0]["pta_shape"] == "(1, 3, 64)" and rows[1][0]["pta_shape"] == "(1, 4, 64)"
    for path in paths:
        assert str(path) in done.stdout


# The labels as the seed has them: in the forward of the model, which runs once for each token, so the library saves
# the same file again and again.
FORWARD = """
import sys
import ait_engine, torch, transformers
from ait_llm.dump.labels import set_label, gen_id, set_task_id

torch.set_num_threads(1)
folder, runner, order, with_task, labelled = sys.argv[1:]
pta_model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
acl_model = ait_engine.Model(folder, dtype="fp16")

def remember(module, args):
    global attention_output
    attention_output = args[0]

pta_model.model.layers[0].self_attn.o_proj.register_forward_pre_hook(remember)

def label():
    data_id = gen_id()
    set_label("pta", data_id, data_val=attention_output)
    set_label("acl", data_id, tensor_path=runner)

for dialogue in ([3, 14, 15, 92], [27, 18, 28]):
    if with_task == "task":
        set_task_id()
    for token in range(3):
        dialogue.append(token + 30)
        with torch.no_grad():
            pta_model(torch.tensor([dialogue]))
        wanted = labelled == "all" or token == 0
        if wanted and order == "before":
            label()
        acl_model.prefill([dialogue])
        if wanted and order == "after":
            label()
"""


@pytest.fixture
def forward(ait, model, tmp_path):
    (tmp_path / "forward.py").write_text(FORWARD)

    def run(order, task="task", labelled="all", **environment):
        done = ait(
            "debug",
            "compare",
            "aclcmp",
            "--exec",
            f"{sys.executable} forward.py {model} {RUNNER} {order} {task} {labelled}",
            env={
                **os.environ,
                "AIT_ENGINE_LIB": LIBRARY,
                "ACLTRANSFORMER_HOME_PATH": str(tmp_path / "home"),
                **SAVE,
                "ACLTRANSFORMER_SAVE_TENSOR_MAX": "10",
                **environment,
            },
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return reports(tmp_path)[0]

    return run


def assert_right(row):
    assert row["cmp_fail_reason"] in ("", "shape differs, compared flattened.")
    assert float(row["cosine_similarity"]) > 0.9999
    assert row["acl_data_path"].endswith(RUNNER)


@pytest.mark.parametrize("order", ["before", "after"])
def test_every_label_meets_the_data_of_its_own_call(forward, order):
    rows = forward(order)
    assert [len(each) for each in rows] == [3, 3]
    for row in [row for each in rows for row in each]:
        assert_right(row)
    assert len({row["acl_data_path"] for row in rows[0]}) == 3


def test_without_a_task_labels_before_the_library_meet_their_own_call(forward):
    ((*rows,),) = forward("before", task="none")
    assert len(rows) == 6
    for row in rows:
        assert_right(row)


def test_without_a_task_labels_after_the_library_say_what_to_do(forward):
    ((*rows,),) = forward("after", task="none")
    assert len(rows) == 6
    for row in rows:
        assert row["cosine_similarity"] == "" and "call set_task_id before the library runs" in row["cmp_fail_reason"]


def test_a_file_that_later_calls_overwrote_is_not_held_against_the_label(forward):
    for (row,) in forward("before", labelled="first"):
        assert row["cosine_similarity"] == "" and "saved this file 3 times after this label" in row["cmp_fail_reason"]


def test_a_label_after_the_first_of_several_calls_has_its_own_data(forward):
    for (row,) in forward("after", labelled="first"):
        assert_right(row)


@pytest.mark.parametrize("order", ["before", "after"])
def test_calls_beyond_the_rounds_that_are_saved_are_reasons(forward, order):
    for first, second, third in forward(order, ACLTRANSFORMER_SAVE_TENSOR_MAX="2"):
        assert_right(first)
        assert_right(second)
        assert third["cosine_similarity"] == "" and "ACLTRANSFORMER_SAVE_TENSOR_MAX" in third["cmp_fail_reason"]


def test_a_file_that_the_library_never_wrote_is_a_reason(chat, tmp_path):
    done = chat(dialogues="1 15 7\nstop\n")
    assert done.returncode == 0, done.stderr
    ((low, high),) = reports(tmp_path)[0]
    assert low["cmp_fail_reason"].startswith("acl_data_path is not exist. the library did not save this file")
    assert "ACLTRANSFORMER_SAVE_TENSOR=1" in low["cmp_fail_reason"] and low["cmp_flag"] == "True"
    assert low["cosine_similarity"] == "" and low["pta_dtype"] == "float32"
    assert high["cmp_fail_reason"] == ""


def test_the_numbers_are_those_of_the_definitions(chat, tmp_path):
    chat("--extended", dialogues="1 15 7\nstop\n")
    (path,) = tmp_path.glob("*/*_cmp_result.csv")
    row = list(csv.DictReader(path.open(newline="")))[1]
    load = lambda name: np.frombuffer(pathlib.Path(row[name]).read_bytes().split(b"$End=1\n", 1)[1], np.float32).astype(
        float
    )
    golden, mine = load("pta_data_path"), load("acl_data_path")
    assert float(row["relative_euclidean_distance"]) == pytest.approx(
        np.linalg.norm(mine - golden) / np.linalg.norm(golden), rel=1e-6
    )
    assert float(row["max_relative_error"]) == pytest.approx(np.abs(mine / golden - 1).max(), rel=1e-5)
    assert float(row["pta_max_value"]) == pytest.approx(golden.max())


def test_the_commands_status_is_ours_and_what_was_labelled_is_compared(ait, tmp_path):
    script = tmp_path / "crash.py"
    script.write_text(
        "import os, torch\nfrom msquickcmp.pta_acl_cmp.compare import gen_id, set_label\n"
        "data_id = gen_id()\nset_label('pta', data_id, torch.ones(3))\nset_label('acl', data_id, torch.ones(3) * 2)\n"
        "set_label('acl', 'alone', torch.ones(2))\nset_label('other', 'x', torch.ones(1))\nset_label('pta', 'x')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = ait("debug", "compare", "aclcmp", "--exec", f"{sys.executable} {script}", "--json")
    assert done.returncode == 128 + 9
    document = json.loads(done.stdout)
    (task,) = document["tasks"]
    assert (task["pairs"], task["not_compared"], document["exit_status"]) == (2, 1, 137)
    first, alone = list(csv.DictReader(open(task["report"], newline="")))
    assert first["pta_shape"] == "(3,)" and float(first["relative_euclidean_distance"]) == 1
    assert alone["cmp_fail_reason"] == "pta_data_path is not exist."


def test_labels_of_a_script_that_ran_by_itself_are_compared_later(ait, tmp_path):
    script = (
        "import torch\nfrom ait_llm.dump.labels import gen_id, set_label\n"
        "data_id = gen_id()\nset_label('pta', data_id, torch.ones(3))\nset_label('acl', data_id, torch.ones(3))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert f"ait debug compare aclcmp --labels {tmp_path}" in ran.stderr
    done = ait("debug", "compare", "aclcmp", "--labels", tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*_cmp_result.csv")
    (row,) = csv.DictReader(path.open(newline=""))
    assert row["cosine_similarity"] == "1.0"


def test_a_killed_process_leaves_no_label_of_an_older_call(ait, tmp_path):
    script = f"""
import os, torch, ait_llm
from ait_llm.dump.labels import set_label, set_task_id
os.environ.update(ACLTRANSFORMER_HOME_PATH={str(tmp_path)!r}, ACLTRANSFORMER_SAVE_TENSOR="1")
set_task_id()
def library(value):
    folder = os.path.join({str(tmp_path)!r}, "tensors", str(os.getpid()), os.environ["AIT_CMP_TASK_ID"])
    os.makedirs(folder, exist_ok=True)
    ait_llm.save(folder + "/x.bin", torch.full((2,), value))
for value in (1.0, 2.0):
    set_label("pta", str(value), torch.full((2,), value))
    set_label("acl", str(value), tensor_path="x.bin")
    if value == 1.0:
        library(value)
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, timeout=60)
    done = ait("debug", "compare", "aclcmp", "--labels", tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = next(tmp_path.glob("*_cmp_result.csv")).read_text().splitlines()[1:]
    assert ",1.0,0.0," in first
    assert "the process ended before the library saved this file" in second


def test_wrong_use_is_one_clear_line(ait, tmp_path):
    assert "give either --exec or --labels" in error_line(ait("debug", "compare", "aclcmp"))
    assert "write" in error_line(ait("debug", "compare", "aclcmp", "--exec", "python3 x.py > out"))
    assert "no such folder" in error_line(ait("debug", "compare", "aclcmp", "--labels", "nowhere"))
    assert "no labels were set" in error_line(ait("debug", "compare", "aclcmp", "--labels", tmp_path))
    done = ait("debug", "compare", "aclcmp", "--exec", "true")
    assert done.returncode == 0 and "no labels were set" in done.stderr
