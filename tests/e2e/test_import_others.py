"""Files and runs of other tools: GGUF, ONNX, Polygraphy, numpy inside torch files, transformers' debugger, SGLang's
dumper. The tools write them, but for SGLang's, which cannot be installed here: its files are written as its sources
name them."""

import json
import re

import gguf
import msprobe_model
import numpy as np
import onnx
import onnx.numpy_helper
import pytest
import torch
import transformers
from ait_llm import DumpConfig, register_hook
from conftest import error_line
from polygraphy.comparator import RunResults
from polygraphy.comparator.struct import IterationResult
from polygraphy.json import save_json
from safetensors.torch import load_file
from transformers.model_debugging_utils import model_addition_debugger_context

TYPES = gguf.GGMLQuantizationType


def converted(ait, path):
    """What ait reads of a file, by name."""
    process = ait("llm", "convert", path, path.with_suffix(".safetensors"))
    assert process.returncode == 0, process.stderr
    return load_file(path.with_suffix(".safetensors"))


def same_bits(tensor, array):
    assert tuple(tensor.shape) == array.shape
    assert tensor.numpy().tobytes() == np.ascontiguousarray(array).tobytes()


def write_gguf(path, tensors):
    """{name: (array, type)}; bytes of quantised blocks come as uint8."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.name", "x")
    writer.add_array("tokenizer.ggml.tokens", ["a", "bc"])
    for name, (array, kind) in tensors.items():
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_gguf_is_decoded_as_its_own_package_does(tmp_path, ait):
    random = np.random.default_rng(0)
    values = random.standard_normal((4, 256)).astype(np.float32)
    tensors = {"blk.0.ffn.weight": (values, None), "half": (values.astype(np.float16), None)}
    tensors |= {f"i{bits}": (random.integers(-9, 9, (2, 3)).astype(f"i{bits}"), None) for bits in (1, 2, 4, 8)}
    tensors["double"] = (values.astype(np.float64), None)
    for kind in (TYPES.Q8_0, TYPES.Q4_0, TYPES.BF16):
        tensors[kind.name] = (gguf.quants.quantize(values, kind), kind)
    # The package does not write these: any bytes are such blocks, but for scales that are not finite.
    for kind in (TYPES.Q4_K, TYPES.Q6_K):
        blocks = random.integers(0, 256, (4, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
        for at in (1, 3) if kind == TYPES.Q4_K else (209,):
            blocks[:, at] &= 0xBB
        tensors[kind.name] = (blocks, kind)
    path = write_gguf(tmp_path / "x.gguf", tensors)
    read = converted(ait, path)
    assert set(read) == set(tensors)
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.tensor_type == TYPES.BF16:
            same_bits(read["BF16"].float(), gguf.quants.dequantize(tensor.data, TYPES.BF16))
            continue
        quantised = tensor.tensor_type.name.startswith("Q")
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type) if quantised else tensor.data
        same_bits(read[tensor.name], expected)


def test_gguf_types_that_are_not_decoded_are_named(tmp_path, ait):
    values = np.ones((1, 256), np.float32)
    others = {"Q5_K", "IQ2_XXS", "MXFP4"}
    blocks = {
        n: (
            np.zeros((1, 256 // gguf.GGML_QUANT_SIZES[TYPES[n]][0] * gguf.GGML_QUANT_SIZES[TYPES[n]][1]), np.uint8),
            TYPES[n],
        )
        for n in others
    }
    shown = ait("show", write_gguf(tmp_path / "x.gguf", {"plain": (values, None), **blocks}))
    assert shown.returncode == 0 and re.search(r"^plain +torch.float32 +\[1, 256\]", shown.stdout, re.M), shown.stdout
    for name in others:
        assert re.search(rf"^{name} +unreadable", shown.stdout, re.M), shown.stdout
        assert f"is quantised as {name}, which ait does not decode" in shown.stderr


def test_a_gguf_file_is_compared_with_a_checkpoint(tmp_path, compare):
    weights = {"a": torch.arange(8.0).reshape(2, 4), "b": torch.ones(3)}
    write_gguf(tmp_path / "x.gguf", {name: (value.numpy(), None) for name, value in weights.items()})
    torch.save(weights, tmp_path / "x.pt")
    assert "2 pairs: 2 identical" in compare("-o", "out", golden="x.pt", my="x.gguf").stdout


@pytest.mark.parametrize("raw", [False, True])
def test_onnx_tensors_of_every_type(tmp_path, ait, raw):
    types = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    for name in [*types, "bool", "complex64", "complex128"]:
        array = (np.arange(6) - (0 if name.startswith("u") else 3)).astype(name).reshape(2, 3)
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        values = array.tobytes() if raw else array.flatten().tolist()
        proto = onnx.helper.make_tensor("x", kind, array.shape, values, raw=raw)
        path = tmp_path / f"{name}.pb"
        path.write_bytes(proto.SerializeToString())
        expected = onnx.numpy_helper.to_array(onnx.load_tensor(path))
        process = ait("llm", "convert", path, path.with_suffix(".npy"))
        assert process.returncode == 0, process.stderr
        read = np.load(path.with_suffix(".npy"))
        assert read.dtype == expected.dtype and np.array_equal(read, expected), name


def test_a_test_set_of_onnx_is_a_folder_of_tensors(tmp_path, compare):
    for name in ("golden", "my"):
        (tmp_path / name).mkdir()
        for file, shape in (("input_0", ()), ("output_0", (2, 0)), ("output_1", (3,))):
            array = onnx.numpy_helper.from_array(np.ones(shape, np.float32), file)
            (tmp_path / name / f"{file}.pb").write_bytes(array.SerializeToString())
    process = compare("-o", "out", golden="golden", my="my")
    assert (
        "3 pairs: 2 identical" in process.stdout
        and "data is empty" in next((tmp_path / "out").glob("*.csv")).read_text()
    )


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_numpy_arrays_inside_torch_files(tmp_path, ait, protocol):
    arrays = {
        "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        "swapped": np.arange(3, dtype=">f8"),
        "bytes": np.arange(256, dtype=np.uint8),
        "empty": np.zeros((0, 3), np.float16),
        "scalar": np.array(7.5),
    }
    torch.save({"arrays": arrays, "tensor": torch.ones(2)}, tmp_path / "x.pt", pickle_protocol=protocol)
    read = converted(ait, tmp_path / "x.pt")
    assert torch.equal(read["tensor"], torch.ones(2))
    for name, array in arrays.items():
        same_bits(read[f"arrays.{name}"], array.astype(array.dtype.newbyteorder("=")))


def test_numpy_scalars_inside_torch_files_are_named_as_left_out(tmp_path, ait):
    torch.save({"loss": np.float32(3.5), "steps": np.int64(7), "tensor": torch.ones(2)}, tmp_path / "x.pt")
    shown = ait("show", "x.pt")
    assert shown.returncode == 0 and "2 numpy scalars are left out" in shown.stdout + shown.stderr, shown.stderr


def test_arrays_of_objects_are_refused(tmp_path, ait):
    torch.save({"a": np.array([None, 1], object)}, tmp_path / "x.pt")
    assert "object" in error_line(ait("show", tmp_path / "x.pt"))


def polygraphy_results(path, change=0.0, runner="onnxrt"):
    results = RunResults()
    iterations = []
    for number in range(2):
        outputs = {
            "logits": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3) + number,
            "half": torch.ones(2, dtype=torch.bfloat16),
        }
        outputs["logits"][0, 1] += change * number
        iterations.append(IterationResult(outputs, runtime=0.1, runner_name=runner))
    results.append((runner, iterations))
    results.save(str(path))
    return results


def test_polygraphy_results_are_what_polygraphy_loads(tmp_path, ait):
    polygraphy_results(tmp_path / "x.json")
    read = converted(ait, tmp_path / "x.json")
    ((_, iterations),) = RunResults.load(str(tmp_path / "x.json"))
    for number, iteration in enumerate(iterations):
        same_bits(read[f"{number}/logits"], iteration["logits"])
        assert torch.equal(read[f"{number}/half"], iteration["half"])


def test_iterations_of_polygraphy_are_rounds(tmp_path, compare, ait):
    polygraphy_results(tmp_path / "golden.json")
    polygraphy_results(tmp_path / "my.json", 0.5, "trt")
    process = compare("-o", "out", golden="golden.json", my="my.json")
    assert "4 pairs: 3 identical, 1 differ" in process.stdout, process.stdout
    rows = next((tmp_path / "out").glob("*.csv")).read_text().splitlines()[1:]
    assert [row.split(",")[:2] for row in rows] == [[n, f"{n}/{name}"] for n in "01" for name in ("half", "logits")]
    assert ait("llm", "convert", "my.json", "new", "--to", "dump").returncode == 0
    new = torch.load(tmp_path / "new" / "ait_dump" / "torch_tensors" / "0_0" / "1" / "root.logits" / "output.pth")
    assert new[0, 1] == pytest.approx(0.2 + 1 + 0.5)


def test_runners_of_polygraphy_are_told_apart_but_not_when_they_ran(tmp_path, compare, ait):
    for file, time in (("golden", "06/24/26-12:34:56"), ("my", "07/25/26-01:02:03")):
        results = RunResults()
        for place, runner in enumerate(("onnxrt-runner-N0", "trt-runner-N0")):
            iterations = [IterationResult({"y": np.arange(3.0) + 10 * place + n}) for n in range(2)]
            results.append((f"{runner}-{time}", iterations))
        results.save(str(tmp_path / f"{file}.json"))
    process = compare("-o", "out", golden="golden.json", my="my.json")
    assert "4 pairs: 4 identical" in process.stdout, process.stdout
    rows = next((tmp_path / "out").glob("*.csv")).read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["0", "1", "0", "1"]
    assert ait("llm", "convert", "my.json", "new", "--to", "dump").returncode == 0
    new = tmp_path / "new" / "ait_dump" / "torch_tensors" / "0_0" / "1"
    assert torch.load(new / "root.onnxrt-runner-N0_y" / "output.pth")[0] == 1
    assert torch.load(new / "root.trt-runner-N0_y" / "output.pth")[0] == 11


@pytest.mark.parametrize("turned", [False, True])
def test_results_of_polygraphy_are_compared_with_a_recording(tmp_path, compare, turned):
    model = msprobe_model.make_model()
    with register_hook(model, DumpConfig(str(tmp_path / "ours"), token_range=[0, 1])):
        msprobe_model.run(model)
    outputs = []
    model.blocks[1].register_forward_hook(lambda *call: outputs.append({"/blocks.1/Add_output_0": call[2].numpy()}))
    model.out.register_forward_hook(lambda *call: outputs[-1].update(logits=call[2].numpy()))
    msprobe_model.run(model)
    results = RunResults()
    results.append(("onnxrt-runner-N0-06/24/26-12:34:56", [IterationResult(each) for each in outputs]))
    results.save(str(tmp_path / "theirs.json"))
    sides = [tmp_path / "ours" / "ait_dump", tmp_path / "theirs.json"]
    process = compare("-o", "out", golden=sides[turned], my=sides[not turned])
    assert ", 0 differ, 0 could not be compared" in process.stdout, process.stdout + process.stderr
    assert f"{'golden' if turned else 'my side'}: 2 of 2 operations paired" in process.stdout, process.stdout


def test_results_of_polygraphy_and_a_folder_of_files_are_refused_for_what_they_are(tmp_path, compare):
    results = RunResults()
    results.append(("runner", [IterationResult({"y": np.arange(3.0)})]))
    results.save(str(tmp_path / "theirs.json"))
    (tmp_path / "files").mkdir()
    np.save(tmp_path / "files" / "y.npy", np.arange(3.0))
    assert "holds tensors by their names" in error_line(compare("-o", "out", golden="files", my="theirs.json"))


def test_inputs_of_polygraphy(tmp_path, ait):
    save_json([{"ids": np.arange(3)}, {"ids": np.arange(4)}], str(tmp_path / "in.json"))
    read = converted(ait, tmp_path / "in.json")
    assert read["0/ids"].tolist() == [0, 1, 2] and read["1/ids"].tolist() == [0, 1, 2, 3]


def small_llama(layers=3):
    torch.manual_seed(0)
    sizes = dict(vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=layers, num_attention_heads=4)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).eval()


def test_transformers_debugger_is_what_our_hooks_record(tmp_path, compare):
    """Layers that it leaves out of its tree, too."""
    model = small_llama()
    ids = torch.tensor([[1, 15, 7]])
    with register_hook(model, DumpConfig(str(tmp_path / "ours"))), torch.no_grad():
        model(input_ids=ids)
    with model_addition_debugger_context(model, debug_path=str(tmp_path / "theirs"), use_repr=False):
        model(input_ids=ids)
    process = compare("-o", "out", golden="ours/ait_dump", my="theirs")
    assert "comparing a torch dump with a run of transformers' debugger" in process.stderr
    found = re.search(r"(\d+) pairs: (\d+) identical", process.stdout)
    assert found and found[1] == found[2] and int(found[1]) > 60, process.stdout
    assert "0 only in my side" in process.stdout
    rows = next((tmp_path / "out").glob("*.csv")).read_text()
    assert "root.model.layers.1.mlp.down_proj/output" in rows


def test_texts_of_tensors_are_no_tensors(tmp_path, compare):
    model = small_llama(1)
    with model_addition_debugger_context(model, debug_path=str(tmp_path / "theirs")):
        model(input_ids=torch.tensor([[1, 2]]))
    process = compare("-o", "out", golden="theirs", my="theirs")
    assert "record again with use_repr=False" in error_line(process)


def sglang_dump(folder, change=0.0, step_word="step"):
    """As sglang.srt.debug_utils.dumper names its files."""
    folder.mkdir()
    index = 0
    for step in range(2):
        for rank in range(2):
            for name, more in (
                ("input_ids", ""),
                ("non_intrusive__model.norm.inputs.0", ""),
                ("non_intrusive__model.norm.output", ""),
                ("non_intrusive__model.attention.output.dense.output.1", ""),
                ("hidden_states", "___layer_id=3"),
                ("hidden_states", "___layer_id=3"),
                ("param__model.norm.weight", ""),
            ):
                index += 1
                value = torch.arange(8.0).reshape(2, 4) + 100 * step + 10 * rank + index % 7
                if name.endswith("norm.output") and step == 1:
                    value[0, 1] += change
                tags = f"{step_word}={step}___rank={rank}___dump_index={index}___name={name}"
                tags += f"___recompute_status=disabled{more}"
                torch.save({"value": value, "meta": {"name": name, "world_size": 2}}, folder / f"{tags}.pt")


def test_sglang_dumps_are_runs(tmp_path, compare, ait):
    sglang_dump(tmp_path / "golden")
    sglang_dump(tmp_path / "my", 3.0, "forward_pass_id")
    process = compare("-o", "out", golden="golden", my="my")
    assert "comparing a dump of SGLang with a dump of SGLang" in process.stderr
    rows = next((tmp_path / "out").glob("*.csv")).read_text()
    for name in (
        "root.model.norm/output",
        "root.layers.3.hidden_states#1/output",
        "root.model.attention.output.dense/output_1",
    ):
        assert name in rows
    assert "param" not in rows
    assert re.search(r"^1,root\.model\.norm/output", rows, re.M)
    assert ait("llm", "convert", "my", "new", "--to", "dump").returncode == 0
    new = tmp_path / "new" / "ait_dump" / "torch_tensors" / "1_0" / "1" / "root.model.norm"
    assert torch.load(new / "output.pth")[0, 1] != torch.load(new / "input_0.pth")[0, 1]
    assert json.loads((new.parents[1] / "model_tree.json").read_text())["name"] == "root"


def test_values_of_sglang_may_be_lists_and_no_tensors(tmp_path, compare, ait):
    value = torch.arange(4.0).reshape(2, 2)
    (tmp_path / "dump").mkdir()
    for index, (name, each, meta) in enumerate(
        [("pair", [value, value + 1], {}), ("number", 5, {}), ("one", value, {"weight": torch.ones(2)})]
    ):
        path = tmp_path / "dump" / f"step=0___rank=0___dump_index={index}___name={name}.pt"
        torch.save({"value": each, "meta": meta}, path)
    process = compare("-o", "out", golden="dump", my="dump")
    assert "3 pairs: 3 identical" in process.stdout, process.stdout
    rows = next((tmp_path / "out").glob("*.csv")).read_text().splitlines()[1:]
    names = {"root.pair/output_0", "root.pair/output_1", "root.one/output"}
    assert {row.split(",")[1].split(":")[0] for row in rows} == names
    process = ait("llm", "convert", "dump", "new", "--to", "dump")
    assert process.returncode == 0 and "could not be converted" not in process.stdout, process.stdout
    new = tmp_path / "new" / "ait_dump" / "torch_tensors" / "0_0" / "0"
    assert {f"{path.parent.name}/{path.stem}" for path in new.glob("*/*.pth")} == names
    assert torch.equal(torch.load(new / "root.pair" / "output_1.pth"), value + 1)


def test_what_is_no_run_is_not_converted_to_a_dump(tmp_path, ait):
    torch.save(torch.ones(2), tmp_path / "x.pt")
    assert "holds no run that ait knows" in error_line(ait("llm", "convert", "x.pt", "new", "--to", "dump"))
    (tmp_path / "folder").mkdir()
    assert "holds no run that ait knows" in error_line(ait("llm", "convert", "folder", "new", "--to", "dump"))
    assert "DST is missing" in error_line(ait("llm", "convert", "folder", "--to", "dump"))
