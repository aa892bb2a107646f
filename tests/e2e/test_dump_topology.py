"""Topologies, ONNX, tables and statistics of a dump."""

import json
import re

import onnx
import pytest
from atb_host import TABLE_HEADER, Asked, Host, Recording
from dump_run import assert_recorded, record

# The documentation's own example of a layer file.
TINY_LAYER = (
    '{"opName":"TinyLayer_4","opType":"TinyLayer","param":"",'
    '"inTensors":["TinyLayer_4_input_0","TinyLayer_4_input_1","TinyLayer_4_input_2"],'
    '"outTensors":["TinyLayer_4_output_0"],"internalTensors":["TinyLayer_4_internal_0"],'
    '"nodes":[{"opName":"LinearOperation_4_0","opType":"LinearOperation","param":{"hasBias":false,"transposeB":true},'
    '"inTensors":["TinyLayer_4_input_0","TinyLayer_4_input_1"],"outTensors":["TinyLayer_4_internal_0"]},'
    '{"opName":"ElewiseOperation_4_1","opType":"ElewiseOperation","param":{"elewiseType":"ELEWISE_ADD"},'
    '"inTensors":["TinyLayer_4_internal_0","TinyLayer_4_input_2"],"outTensors":["TinyLayer_4_output_0"]}]}\n'
)


def split_models(run):
    """Files without those of models; models as {name: document}, each one line of compact JSON."""
    files = run.files()
    models = {}
    for path in [path for path in files if path.startswith("model/") and path.endswith(".json")]:
        text = files.pop(path).decode()
        assert text.endswith("}\n") and text.count("\n") == 1
        document = json.loads(text)
        assert text == json.dumps(document, separators=(",", ":")) + "\n"
        folder, name = path.removeprefix("model/").removesuffix(".json").split("/")
        assert folder == str(run.pid)
        models[name] = document
    return files, models


@pytest.mark.parametrize("abi", [0, 1])
def test_the_documented_layer(tmp_path, abi):
    run = record(tmp_path, "--type", "layer", host=Host(model="spec", first_id=4), abi=abi)
    assert run.files() == {f"layer/{run.pid}/TinyLayer_4.json": TINY_LAYER.encode()}


@pytest.mark.parametrize(
    "host",
    [
        Host(layers=2, rounds=3),
        Host(layers=1, rounds=2),
        Host(model="spec"),
        Host(layers=2, warm=3),  # the models' nodes do not start at number 0
    ],
    ids=lambda host: " ".join(host.words()),
)
def test_models_hold_their_layers(tmp_path, host):
    run = record(tmp_path, "--type", "model", host=host)
    files, models = split_models(run)
    expected = Recording(host, Asked(types=("model",)), run.pid)
    assert files == expected.files(), "a model brings its layers"
    assert models == expected.models


def test_a_round_that_was_not_reached_has_no_model(tmp_path):
    run = record(tmp_path, "--type", "model", host=Host(rounds=1))
    _, models = split_models(run)
    assert set(models) == {"TinyPrefillModel"}


TYPES_WITH_ONNX = [("layer", "onnx"), ("model", "onnx"), ("model", "layer", "onnx", "op")]


@pytest.mark.parametrize("types", TYPES_WITH_ONNX, ids="+".join)
def test_onnx_lies_beside_each_topology(tmp_path, types):
    host = Host(layers=2)
    run = record(tmp_path, "--type", *types, host=host)
    files, _models = split_models(run)
    onnx_files = {path for path in files if path.endswith(".onnx")}
    expected = Recording(host, Asked(types=types), run.pid)
    layers = {f"layer/{run.pid}/{name}.onnx" for name in expected.layers}
    wanted = {f"model/{run.pid}/{name}.onnx" for name in expected.models} if "model" in types else set()
    assert onnx_files == layers | wanted
    for path in onnx_files:
        onnx.checker.check_model(onnx.load(run.root / path))
    graph = onnx.load(run.root / f"layer/{run.pid}/PrefillLayer_2.onnx").graph
    leaves = ["RmsNorm", "SelfAttention", "Linear", "Activation", "Elewise"]
    assert [node.op_type for node in graph.node] == [f"{leaf}Operation" for leaf in leaves]
    assert [node.name for node in graph.node][:2] == ["RmsNormOperation_2_0", "SelfAttentionOperation_2_1"]
    for path in onnx_files:
        del files[path]
    assert files == expected.files()


def test_onnx_alone_makes_nothing_and_says_so(tmp_path):
    run = record(tmp_path, "--type", "onnx", "tensor")
    assert_recorded(run)
    assert "onnx" in run.process.stderr


def test_tables_of_each_round(tmp_path):
    host = Host(layers=1, rounds=3)
    run = record(tmp_path, "--type", "op", "kernel", host=host)
    expected = assert_recorded(run, host, Asked(types=("op", "kernel")))
    table = f"operation_io_tensors/{run.pid}/operation_tensors_0.csv"
    assert {table, table.replace("operation", "kernel").replace("_0.", "_1.")} < set(expected)
    lines = (run.root / table).read_text().splitlines()
    assert lines[0] == TABLE_HEADER
    # Two embeddings and five leaves in each of the prefill and the decode layer, all executed for the first time.
    assert len(lines) == 1 + 2 + 5 + 5
    rows = [dict(zip(lines[0].split("|"), line.split("|"))) for line in lines[1:]]
    assert [row["CaseNum"] for row in rows] == [str(i) for i in range(1, 13)]
    attention = rows[3]
    assert attention == {
        "CaseNum": "4", "CaseName": "SelfAttentionOperation_2_14", "OpName": "SelfAttentionOperation_2_1",
        "OpParam": '{"headNum":2,"maskType":"MASK_TYPE_NORM","qScale":0}',
        "InNum": "3", "InDType": "float16;float16;int32", "InFormat": "nd;nd;nd", "InShape": "2,3;0,3;4",
        "OutNum": "1", "OutDType": "float16", "OutFormat": "nd", "OutShape": "2,3",
        "DataGenType": "customize;customize;customize", "DataGenRange": " ",
        "InTensorFile": ";".join(
            f"tensors/0_{run.pid}/0/2_PrefillLayer/1_SelfAttentionOperation/after/intensor{i}.bin" for i in range(3)
        ),
        "OutTensorFile": f"tensors/0_{run.pid}/0/2_PrefillLayer/1_SelfAttentionOperation/after/outtensor0.bin",
        "TestType": " ", "TestLevel": " ", "FromModel": " ", "SocVersion": " ", "ExpectedError": "NO_ERROR",
    }  # fmt: skip


def test_files_named_by_the_tables_are_there(tmp_path):
    run = record(tmp_path, "--type", "op", "tensor", host=Host(layers=1, rounds=1))
    text = (run.root / f"operation_io_tensors/{run.pid}/operation_tensors_0.csv").read_text()
    paths = re.findall(r"tensors/[^;|]+\.bin", text)
    empty = [path for path in paths if path.endswith("1_SelfAttentionOperation/after/intensor1.bin")]
    assert len(paths) > 10 and len(empty) == 1
    assert [path for path in paths if not (run.root / path).exists()] == empty


@pytest.mark.parametrize("old", [False, True], ids=["8.5", "older"])
def test_cpu_profiling_is_grouped_by_operation(tmp_path, old):
    host = Host(layers=1, rounds=3, old_statistics=old)
    run = record(tmp_path, "--type", "cpu_profiling", host=host)
    expected = Recording(host, Asked(types=("cpu_profiling",)), run.pid).statistics_files()
    (folder,) = (run.root / "cpu_profiling").iterdir()
    assert re.fullmatch(r"\d{8}_\d{6}", folder.name)
    assert {path.name: path.read_text() for path in folder.iterdir()} == expected
    assert {path.split("/")[0] for path in run.files()} == {"cpu_profiling"}
    # Since 8.5 rounds are counted before they are reported.
    assert ("operation_statistic_0.txt" in expected) == old


def test_cpu_profiling_of_two_processes_is_not_mixed(tmp_path):
    host = Host(layers=1, rounds=2, old_statistics=True)
    run = record(tmp_path, "--type", "cpu_profiling", host=host, more=["--processes", "2"])
    folders = sorted((run.root / "cpu_profiling").iterdir())
    assert len(folders) == 2
    assert folders[1].name.removeprefix(folders[0].name + "_") in map(str, run.devices)
    expected = Recording(host, Asked(types=("cpu_profiling",)), run.pid).statistics_files()
    for folder in folders:
        assert {path.name: path.read_text() for path in folder.iterdir()} == expected


def test_several_types_at_once(tmp_path):
    host = Host(layers=1)
    types = ("model", "op", "kernel", "tensor", "cpu_profiling", "onnx")
    run = record(tmp_path, "--type", *types, host=host)
    kinds = {path.split("/")[0] for path in run.files()}
    assert kinds == {
        "tensors", "layer", "model", "operation_io_tensors", "kernel_io_tensors", "cpu_profiling"
    }  # fmt: skip
