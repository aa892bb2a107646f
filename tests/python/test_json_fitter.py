"""What onnx says about the files that topologies become; what must be in them is computed here from the JSON alone."""

import importlib.util
import json
import logging
import pathlib
import re
import shutil

import ait_llm
import numpy as np
import onnx
import pytest
from ait_llm.common.json_fitter import atb_json_to_onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BLOOM = REPOSITORY / "tests/data/topology/Bloom7BFlashAttentionModel.json"
HEADER = (
    "CaseNum|CaseName|OpName|OpParam|InNum|InDType|InFormat|InShape|OutNum|OutDType|OutFormat|OutShape|DataGenType|"
    "DataGenRange|InTensorFile|OutTensorFile|TestType|TestLevel|FromModel|SocVersion|ExpectedError\n"
)


def convert(path, topology, level=-1):
    path.write_text(topology if isinstance(topology, str) else json.dumps(topology), encoding="utf-8")
    return checked(atb_json_to_onnx(path, level))


def checked(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def flattened(node, level, depth=0):
    if not node.get("nodes") or depth == level:
        return [node]
    return [each for child in node["nodes"] for each in flattened(child, level, depth + 1)]


def depth_of(node):
    return max((depth_of(child) + 1 for child in node.get("nodes", [])), default=0)


def assert_edges(model, nodes):
    """Each reader is connected to the node that wrote the tensor last before it, or to the outside."""
    last_writer, writer_of = {}, {}
    outside = {value.name for value in model.graph.input}
    assert len(model.graph.node) == len(nodes)
    for index, (made, node) in enumerate(zip(model.graph.node, nodes)):
        reads, writes = node.get("inTensors", []), node.get("outTensors", [])
        assert len(made.input) == len(reads)
        for name, tensor in zip(made.input, reads):
            if tensor in last_writer:
                assert writer_of[name] == last_writer[tensor], (made.name, tensor)
            elif tensor:
                assert name == tensor and name in outside
        assert len(made.output) == max(len(writes), 0 if reads else 1)
        for position, (name, tensor) in enumerate(zip(made.output, writes)):
            assert name == tensor or re.fullmatch(rf"{re.escape(tensor)}#\d+", name)
            if tensor:
                assert name not in writer_of and name not in outside
                writer_of[name] = last_writer[tensor] = (index, position)
    return last_writer, writer_of


def expected_attributes(param):
    """The rules of the documentation, once more in Python."""
    found = {}

    def add(name, value):
        if value is None:
            return
        scalars = value if isinstance(value, list) else [value]
        if all(isinstance(each, str) for each in scalars) and scalars:
            found[name] = [each.encode() for each in scalars]
        elif all(isinstance(each, (bool, int, float)) for each in scalars):
            found[name] = [float(np.float32(each)) for each in scalars]
        else:
            found[name] = [json.dumps(value, separators=(",", ":")).encode()]

    for key, value in param.items() if isinstance(param, dict) else ():
        if isinstance(value, dict):
            for sub, inner in value.items():
                add(f"{key}.{sub}", inner)
        else:
            add(key, value)
    return found


def attributes(node):
    kinds = {onnx.AttributeProto.FLOATS: "floats", onnx.AttributeProto.STRINGS: "strings"}
    return {each.name: list(getattr(each, kinds[each.type])) for each in node.attribute}


@pytest.mark.parametrize("level", [-1, 0, 1, 2, 3, 4, 5])
def test_the_real_model_converts_at_every_level(tmp_path, level):
    shutil.copy(BLOOM, tmp_path / "bloom.json")
    model = checked(atb_json_to_onnx(str(tmp_path / "bloom.json"), level))
    topology = json.loads(BLOOM.read_text())
    assert depth_of(topology) == 4
    nodes = flattened(topology, level)
    assert [node.name for node in model.graph.node] == [node.get("opName", node.get("modelName")) for node in nodes]
    assert [node.op_type for node in model.graph.node] == [node.get("opType", node.get("modelName")) for node in nodes]
    for made, node in zip(model.graph.node, nodes):
        assert attributes(made) == expected_attributes(node.get("param"))
    if level != 0:
        assert_edges(model, nodes)
        assert [value.name for value in model.graph.output] == [
            "Bloom7BFlashAttentionModel_internal_3",
            "Bloom7BFlashAttentionModel_output_2",
            "Bloom7BFlashAttentionModel_output_3",
        ]
    else:
        layer = topology["nodes"][0]
        assert list(model.graph.node[0].input) == layer["inTensors"]
        assert list(model.graph.node[0].output) == layer["outTensors"]


def test_the_model_says_who_made_it_and_where_its_operations_belong(tmp_path):
    model = convert(tmp_path / "x.json", {"opName": "X_0", "opType": "X", "inTensors": ["a"], "outTensors": ["b"]})
    assert model.producer_name == "ait"
    assert model.graph.name == "X_0"
    assert model.graph.node[0].domain == "ait.atb"
    assert [(each.domain, each.version) for each in model.opset_import] == [("ait.atb", 1)]
    assert model.ir_version == 10


def test_the_path_of_the_result_is_returned_and_replaced(tmp_path, monkeypatch):
    path = tmp_path / "L_0.json"
    path.write_text(json.dumps({"opName": "L_0", "inTensors": ["a"], "outTensors": ["b"]}))
    (tmp_path / "L_0.onnx").write_text("old")
    assert atb_json_to_onnx(str(path)) == str(tmp_path / "L_0.onnx")
    checked(tmp_path / "L_0.onnx")
    monkeypatch.chdir(tmp_path)
    assert atb_json_to_onnx("L_0.json", 0) == "L_0.onnx"
    assert not list(tmp_path.glob(".*"))


def test_in_place_tensors_get_versions(tmp_path):
    topology = {
        "opName": "L_0",
        "inTensors": ["x", "cache"],
        "outTensors": ["x", "cache"],
        "nodes": [
            {"opName": "A_0_0", "opType": "A", "inTensors": ["x"], "outTensors": ["x"]},
            {"opName": "A_0_0", "opType": "A", "inTensors": ["x", "cache"], "outTensors": ["cache", "x", "x"]},
            {"opName": "B_0_1", "opType": "B", "inTensors": ["x", "cache"], "outTensors": []},
        ],
    }
    model = convert(tmp_path / "x.json", topology)
    assert_edges(model, topology["nodes"])
    assert [value.name for value in model.graph.output] == ["x#3", "cache#1"]
    assert list(model.graph.node[2].input) == ["x#3", "cache#1"]


def test_weights_are_inputs(tmp_path):
    topology = {
        "modelName": "M",
        "inTensors": ["M_input_0"],
        "outTensors": ["M_output_0"],
        "weightTensors": ["M_weight_0", "M_weight_1"],
        "nodes": [{"opName": "A_0", "inTensors": ["M_input_0", "M_weight_1", "other"], "outTensors": ["M_output_0"]}],
    }
    for level in (-1, 0, 1):
        model = convert(tmp_path / "x.json", topology, level)
        names = [value.name for value in model.graph.input]
        assert names == ["M_input_0", "M_weight_0", "M_weight_1"] + ([] if level == 0 else ["other"])


def row(name, inputs, outputs, param="{}"):
    def cells(tensors):
        dtypes = ";".join(dtype for dtype, _ in tensors)
        shapes = ";".join(",".join(map(str, shape)) for _, shape in tensors)
        return f"{len(tensors)}|{dtypes}|{';'.join('nd' for _ in tensors)}|{shapes}"

    return f"1|{name}1|{name}|{param}|{cells(inputs)}|{cells(outputs)}|customize| |/i|/o| | | | |NO_ERROR\n"


LAYER = {
    "opName": "L_4",
    "opType": "L",
    "param": "",
    "inTensors": ["i", "w"],
    "outTensors": ["o"],
    "internalTensors": ["x"],
    "nodes": [
        {
            "opName": "G_4_0",
            "opType": "G",
            "inTensors": ["i", "w"],
            "outTensors": ["x"],
            "internalTensors": ["y"],
            "nodes": [
                {"opName": "A_4_0_0", "opType": "A", "inTensors": ["i", "w"], "outTensors": ["y"]},
                {"opName": "B_4_0_1", "opType": "B", "inTensors": ["y"], "outTensors": ["x"]},
            ],
        },
        {"opName": "C_4_1", "opType": "C", "inTensors": ["x"], "outTensors": ["x"]},
        {"opName": "D_4_2", "opType": "D", "inTensors": ["x"], "outTensors": ["o"]},
    ],
}
TABLE = (
    HEADER
    + row("A_4_0_0", [("float16", (2, 3)), ("ACL_BF16", (3, 5))], [("float", (2, 5))], '{"a":"p|q"}')
    + row("B_4_0_1", [("float", (2, 5))], [("int64", ())])
    + row("C_4_1", [("int64", ())], [("hifloat8", (7,))])
)


def dump_with_table(tmp_path, table=TABLE, topology=LAYER):
    (tmp_path / "layer/77").mkdir(parents=True)
    (tmp_path / "operation_io_tensors/77").mkdir(parents=True)
    (tmp_path / "operation_io_tensors/77/operation_tensors_2.csv").write_text(table)
    (tmp_path / "operation_io_tensors/77/operation_tensors_10.csv").write_text(HEADER)
    path = tmp_path / "layer/77/L_4.json"
    path.write_text(json.dumps(topology))
    return path


def described(values):
    return {
        value.name: (value.type.tensor_type.elem_type, [dim.dim_value for dim in value.type.tensor_type.shape.dim])
        for value in values
        if value.type.HasField("tensor_type")
    }


@pytest.mark.parametrize("level", [-1, 0, 1, 2])
def test_shapes_come_from_the_table_of_operations(tmp_path, level):
    model = checked(atb_json_to_onnx(dump_with_table(tmp_path), level))
    types = onnx.TensorProto
    assert described(model.graph.input) == {"i": (types.FLOAT16, [2, 3]), "w": (types.BFLOAT16, [3, 5])}
    [output] = model.graph.output
    assert output.type.WhichOneof("value") == "opaque_type"
    assert not output.type.tensor_type.HasField("shape")
    expected = {"x": (types.INT64, []), "x#1": (types.UNDEFINED, [7])} if level != 0 else {}
    if level in (-1, 2):
        expected["y"] = (types.FLOAT, [2, 5])
    assert described(model.graph.value_info) == expected


def test_a_shape_that_changes_inside_a_closed_node_is_not_claimed(tmp_path):
    table = HEADER + row("A_4_0_0", [("float", (2,)), ("float", (3,))], [("float", (4,))])
    inner = {**LAYER["nodes"][0]["nodes"][0], "outTensors": ["i"]}
    topology = {**LAYER, "nodes": [{**LAYER["nodes"][0], "outTensors": ["i"], "nodes": [inner]}]}
    model = checked(atb_json_to_onnx(dump_with_table(tmp_path, table, topology), 1))
    assert described(model.graph.input) == {"w": (onnx.TensorProto.FLOAT, [3])}


def test_a_bad_table_is_a_warning_and_the_conversion_goes_on(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "ait_llm"):
        model = checked(atb_json_to_onnx(dump_with_table(tmp_path, "nonsense\n")))
    assert "operation_tensors_2.csv" in caplog.text
    assert len(model.graph.node) == 4


def test_without_a_table_nothing_is_claimed(tmp_path, caplog):
    model = convert(tmp_path / "x.json", LAYER)
    assert {value.type.WhichOneof("value") for value in [*model.graph.input, *model.graph.output]} == {"opaque_type"}
    assert not model.graph.value_info
    assert not caplog.text


def test_attributes_of_every_kind(tmp_path):
    param = {
        "type": "ELEWISE_ADD",
        "scale": 0.0883883461356163,
        "zero": 0,
        "no": False,
        "yes": True,
        "none": None,
        "dims": [0, 1, -2.5],
        "nothing": [],
        "names": ["a", "é"],
        "mixed": ["a", 1],
        "inner": {"x": 1, "y": "t", "deep": {"z": [1, 2]}, "none": None},
    }
    topology = {"opName": "X_0", "inTensors": ["a"], "outTensors": ["b"], "param": param}
    node = convert(tmp_path / "x.json", topology).graph.node[0]
    found = attributes(node)
    assert found == expected_attributes(param)
    assert found["zero"] == [0.0] and found["no"] == [0.0] and "none" not in found
    assert found["inner.deep"] == [b'{"z":[1,2]}']


@pytest.mark.parametrize("level", [-2, -100, -(2**70)])
def test_negative_levels_are_refused(tmp_path, level):
    with pytest.raises(ait_llm.AitError, match="makes no sense"):
        convert(tmp_path / "x.json", LAYER, level)


@pytest.mark.parametrize("level", [1.0, "1", True, [1]])
def test_a_level_that_is_no_integer_is_refused(tmp_path, level):
    with pytest.raises(ait_llm.AitError, match="whole number"):
        convert(tmp_path / "x.json", LAYER, level)


def test_none_huge_and_numpy_levels_are_taken(tmp_path):
    for level in (None, 2**70, np.int32(2)):
        assert len(convert(tmp_path / "x.json", LAYER, level).graph.node) == 4


def test_errors_are_of_the_package(tmp_path):
    with pytest.raises(ait_llm.NotFoundError):
        atb_json_to_onnx(tmp_path / "none.json")
    with pytest.raises(ait_llm.CorruptError, match="x.json"):
        convert(tmp_path / "x.json", '{"opName":"X", "nodes":')
    with pytest.raises(ait_llm.AitError, match=r"\.json"):
        convert(tmp_path / "x.txt", LAYER)
    assert not (tmp_path / "x.onnx").exists()


def test_a_thousand_levels_convert(tmp_path):
    text = '{"opName":"n","inTensors":["a"],"outTensors":["b"],"nodes":[' * 1000 + '{"opName":"leaf"}' + "]}" * 1000
    for level in (-1, 0, 999, 1000):
        assert len(convert(tmp_path / "x.json", text, level).graph.node) == 1


def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch):
    page = (REPOSITORY / "docs/topology.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (path,) = re.findall(r'"([^"]*\.json)"', code)
    monkeypatch.chdir(tmp_path)
    pathlib.Path(path).parent.mkdir(parents=True)
    shutil.copy(BLOOM, path)
    exec(compile(code, "topology.md", "exec"), {})
    assert len(checked(path[:-5] + ".onnx").graph.node) == 1


@pytest.mark.skipif(importlib.util.find_spec("msit_llm") is None, reason="ait-compat is not installed")
def test_the_old_names_are_the_same_function():
    llm = pytest.importorskip("llm.common.json_fitter")
    msit_llm = pytest.importorskip("msit_llm.common.json_fitter")
    assert llm.atb_json_to_onnx is msit_llm.atb_json_to_onnx is atb_json_to_onnx


# Few names, so that tensors are written again and again, some that look like versions, and none at all.
tensors = st.lists(st.sampled_from(["a", "b", "c", "a#1", "b#2", "", "é", "x y"]), max_size=4)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
nodes = st.recursive(
    st.fixed_dictionaries(
        {"opName": names},
        optional={"opType": names, "param": values, "inTensors": tensors, "outTensors": tensors},
    ),
    lambda inner: st.fixed_dictionaries(
        {"opName": names, "nodes": st.lists(inner, max_size=3)},
        optional={
            "opType": names,
            "inTensors": tensors,
            "outTensors": tensors,
            "internalTensors": tensors,
            "weightTensors": tensors,
        },
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(root=nodes, is_model=st.booleans(), escape=st.booleans())
def test_onnx_accepts_any_topology_at_any_level(tmp_path, root, is_model, escape):
    if is_model:
        root = {"modelName": root["opName"], **{key: value for key, value in root.items() if key != "opName"}}
    text = json.dumps(root, ensure_ascii=escape)
    for level in range(-1, depth_of(root) + 2):
        model = convert(tmp_path / "x.json", text, level)
        shown = flattened(root, level)
        assert [node.name for node in model.graph.node] == [node.get("opName", node.get("modelName")) for node in shown]
        inputs = [value.name for value in model.graph.input]
        for tensor in root.get("inTensors", []) + root.get("weightTensors", []):
            assert not tensor or tensor in inputs
        if shown == [root]:
            continue
        last_writer, writer_of = assert_edges(model, shown)
        wanted = [tensor for tensor in dict.fromkeys(root.get("outTensors", [])) if tensor]
        if wanted:
            outputs = [value.name for value in model.graph.output]
            assert len(outputs) == len(wanted)
            for tensor, name in zip(wanted, outputs):
                assert writer_of.get(name) == last_writer.get(tensor)
