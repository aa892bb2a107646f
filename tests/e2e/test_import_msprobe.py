"""Dumps of msprobe. tests/data/msprobe was recorded by msprobe itself (tests/data/make_msprobe.py); what cannot be made
here, MindSpore's dumps and those of several ranks, is written as msprobe documents it."""

import json
import pathlib
import re
import zlib

import msprobe_model
import numpy as np
import pytest
import torch
from ait_llm import DumpConfig, register_hook

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "msprobe"


def record(folder, change=None, **options):
    """The model of the fixtures, recorded by our hooks."""
    model = msprobe_model.make_model()
    if change is not None:
        change(model)
    with register_hook(model, DumpConfig(str(folder), token_range=[0, 1], **options)):
        msprobe_model.run(model)
    return folder / "ait_dump"


def plant(model):
    with torch.no_grad():
        model.blocks[1].fc.weight[2] *= 3


def counts(process):
    """(identical, differ, could not be compared)"""
    assert process.returncode in (0, 1), process.stderr
    found = re.search(r"pairs: (\d+) identical, (\d+) differ, (\d+) could not be compared", process.stdout)
    return tuple(map(int, found.groups()))


def bytes_of(tensor):
    return tuple(tensor.shape), tensor.contiguous().view(
        torch.uint8
    ).numpy().tobytes() if tensor.dim() else tensor.item()


def tensors_below(folder, pattern):
    return {str(path.relative_to(folder)): torch.load(path) for path in folder.glob(pattern)}


@pytest.mark.parametrize("turned", [False, True])
def test_a_model_recorded_by_msprobe_and_by_us_is_the_same(tmp_path, compare, turned):
    ours = record(tmp_path / "ours")
    sides = (DATA / "tensor", ours) if turned else (ours, DATA / "tensor")
    process = compare("-o", "out", golden=sides[0], my=sides[1])
    identical, differ, failed = counts(process)
    assert (differ, failed) == (0, 0) and identical > 20, process.stdout
    # The root is not among what msprobe records.
    assert re.search(r"(my side|golden): 10 of 10 operations paired", process.stdout), process.stdout
    assert "paired by the names of modules" in process.stdout
    alone = re.search(r"without a partner: (\d+) only in golden, (\d+) only in my side", process.stdout)
    assert alone is None or "0" in alone.groups()


def test_every_tensor_is_what_torch_loads(tmp_path, ait):
    process = ait("llm", "convert", DATA / "tensor", tmp_path / "new", "--to", "dump")
    assert process.returncode == 0, process.stderr
    data = DATA / "tensor" / "step0" / "proc4711" / "dump_tensor_data"
    theirs = {path.name: torch.load(path) for path in data.iterdir() if ".parameters." not in path.name}
    new = tensors_below(tmp_path / "new" / "ait_dump" / "torch_tensors" / "0_4711", "*/*/*.pth")
    assert len(new) == len(theirs)
    assert sorted(map(bytes_of, new.values())) == sorted(map(bytes_of, theirs.values()))
    # The second call of a round, and the second round.
    for name, key in {
        "0/root.blocks.0.fc#1/output.pth": "Module.blocks.0.fc.Linear.forward.1.output.0.pt",
        "1/root.blocks.0.fc/input_0.pth": "Module.blocks.0.fc.Linear.forward.2.input.0.pt",
        "1/root.blocks.1/input_shift.pth": "Module.blocks.1.Block.forward.1.kwargs.shift.pt",
        "0/root.blocks.0/output_1_act.pth": "Module.blocks.0.Block.forward.0.output.1.act.pt",
        "0/root.out/output.pth": "Module.out.Linear.forward.0.output.0.pt",
    }.items():
        assert torch.equal(new[name], theirs[key]), name


def test_a_converted_dump_is_the_same_run(tmp_path, ait, compare):
    ait("llm", "convert", DATA / "tensor", tmp_path / "new", "--to", "dump")
    process = compare("-o", "out", golden=tmp_path / "new" / "ait_dump", my=DATA / "tensor")
    assert counts(process)[1:] == (0, 0) and "without a partner" not in process.stdout, process.stdout


def test_a_planted_fault_is_found_as_between_two_recordings_of_ours(tmp_path, compare):
    healthy, faulty = record(tmp_path / "healthy"), record(tmp_path / "faulty", plant)
    lines = []
    for golden in (healthy, DATA / "tensor"):
        process = compare("-o", "out", golden=golden, my=faulty)
        lines.append(process.stdout.splitlines()[:2])
    assert "root.blocks.1.fc" in lines[0][0] and lines[0] == lines[1]


@pytest.mark.parametrize("kind", ["tensor", "statistics", "md5"])
@pytest.mark.parametrize("mode", [0, 1])
def test_statistics_agree_with_tensors_and_with_statistics(tmp_path, compare, kind, mode):
    ours = record(tmp_path / "ours", dump_statistics_mode=mode)
    process = compare("-o", "out", golden=ours, my=DATA / kind)
    assert process.returncode == 0 and "Fault" not in process.stdout, process.stdout
    assert counts(process)[1:] == (0, 0)


def test_statistics_show_a_planted_fault(tmp_path, compare):
    process = compare("-o", "out", golden=DATA / "statistics", my=record(tmp_path / "faulty", plant))
    assert re.match(r"Fault: token 0, root\.blocks\.1\.fc\b", process.stdout), process.stdout
    assert "at least" in process.stdout


def rows_of(folder):
    (report,) = folder.glob("*.csv")
    return report.read_text().splitlines()[1:]


def test_checksums_say_identical_or_not(tmp_path, compare):
    process = compare("-o", "same", golden=DATA / "md5", my=DATA / "md5")
    identical, _, _ = counts(process)
    assert identical == len(rows_of(tmp_path / "same"))
    process = compare("-o", "ours", golden=DATA / "md5", my=record(tmp_path / "ours"))
    assert counts(process)[0] > 20, process.stdout
    compare("-o", "faulty", golden=DATA / "md5", my=record(tmp_path / "faulty", plant))
    rows = rows_of(tmp_path / "faulty")
    assert any("the checksums of the data differ" in row and "root.out/output" in row for row in rows)
    assert all("are equal" in row for row in rows if "root.blocks.0" in row and "checksums" in row)


@pytest.mark.parametrize("widened", [False, True])
def test_checksums_of_bfloat16_are_of_two_kinds(tmp_path, compare, widened):
    """Some versions take them of the values as float32."""
    value = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3) / 3
    raw = (value.float() if widened else value.view(torch.int16)).numpy().tobytes()
    kept = write(tmp_path / "kept", {"Module.fc.Linear.forward.0": value}, md5=f"{zlib.crc32(raw):08x}")
    whole = write(tmp_path / "whole", {"Module.fc.Linear.forward.0": value}, save=torch.save)
    assert counts(compare("-o", "out", golden=kept, my=whole)) == (1, 0, 0)


def write(root, calls, save=None, step=0, rank="rank0", parents=(), framework="torch", **more):
    """A dump with one output a call."""
    folder = root / f"step{step}" / rank
    (folder / "dump_tensor_data").mkdir(parents=True)
    data = {}
    for key, value in calls.items():
        as_torch = torch.as_tensor(value)
        dtype = str(as_torch.dtype) if framework == "torch" else value.dtype.name.capitalize()
        entry = {"type": f"{framework}.Tensor", "dtype": dtype, "shape": list(value.shape)}
        wide = as_torch.double()
        entry |= {
            "Max": wide.max().item(),
            "Min": wide.min().item(),
            "Mean": wide.mean().item(),
            "Norm": wide.norm().item(),
        }
        entry |= more
        if save is not None:
            extension = "pt" if framework == "torch" else "npy"
            entry["data_name"] = f"{key}.output.0.{extension}"
            path = folder / "dump_tensor_data" / entry["data_name"]
            save(value, path) if framework == "torch" else save(path, value)
        data[key] = {"input_args": [], "input_kwargs": {}, "output": [entry]}
    document = {"task": "tensor", "level": "L0", "dump_data_dir": "/gone", "data": data}
    (folder / "dump.json").write_text(json.dumps(document, indent=1))
    (folder / "construct.json").write_text(json.dumps({key: dict(parents).get(key) for key in calls}))
    return root


def test_cells_of_mindspore_are_modules(tmp_path, compare):
    """As msprobe writes them for MindSpore: npy files, types as Float32, "" for no parent."""
    value = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    keys = ["backbone.norm.RMSNorm.forward.0", "backbone.fc.Dense.forward.0", "backbone.fc.Dense.forward.1"]
    cells = {f"Cell.{key}": value + number for number, key in enumerate(keys)}
    cells["Cell.backbone.Model.forward.0"], cells["Cell.backbone.Model.forward.1"] = value * 2, value * 3
    parents = {f"Cell.{key}": f"Cell.backbone.Model.forward.{key[-1]}" for key in keys}
    mine = write(tmp_path / "mine", cells, np.save, parents=parents, framework="mindspore")
    modules = {key.replace("Cell.", "Module."): torch.from_numpy(each) for key, each in cells.items()}
    parents = {key.replace("Cell.", "Module."): each.replace("Cell.", "Module.") for key, each in parents.items()}
    golden = write(tmp_path / "golden", modules, torch.save, parents=parents)
    process = compare("-o", "out", golden=golden, my=mine)
    assert counts(process) == (5, 0, 0), process.stdout
    # The second call of fc was made in the second call of the outermost cell.
    assert any(row.startswith("1,root.backbone.fc/output,") for row in rows_of(tmp_path / "out"))
    kept = write(tmp_path / "kept", cells, framework="mindspore")
    assert "Fault" not in compare("-o", "kept_out", golden=golden, my=kept).stdout


def test_ranks_are_compared_with_their_equals_and_steps_are_rounds(tmp_path, compare):
    for name, save in (("golden", torch.save), ("mine", torch.save)):
        for step in (0, 5):
            for rank in (0, 1):
                value = {"Module.fc.Linear.forward.0": torch.arange(4.0).reshape(1, 4) + 10 * step + rank}
                write(tmp_path / name, value, save, step, f"rank{rank}")
    process = compare("-o", "out", golden=tmp_path / "golden", my=tmp_path / "mine")
    assert counts(process) == (4, 0, 0), process.stdout
    assert sorted({row.split(",")[0] for row in rows_of(tmp_path / "out")}) == ["0", "5"]


def test_a_dump_of_backward_passes_holds_gradients(tmp_path, ait):
    gradient = torch.ones(2, 2)
    calls = {"Module.fc.Linear.forward.0": gradient, "Module.fc.Linear.backward.0": gradient * 2}
    root = write(tmp_path / "dump", calls, torch.save)
    path = root / "step0" / "rank0" / "dump.json"
    document = json.loads(path.read_text())
    entry = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "data_name": "g.pt"}
    torch.save(gradient * 3, path.parent / "dump_tensor_data" / "g.pt")
    document["data"]["Module.fc.Linear.parameters_grad.0"] = {"weight": [entry]}
    path.write_text(json.dumps(document))
    assert ait("llm", "convert", root, tmp_path / "new", "--to", "dump").returncode == 0
    new = tensors_below(tmp_path / "new" / "ait_dump" / "torch_tensors" / "0_0", "*/*/*.pth")
    assert new["0/backward.fc/output.pth"][0, 0] == 2
    assert new["0/backward.fc/output_grad_weight.pth"][0, 0] == 3


def test_values_that_are_not_json_are_read(tmp_path, compare, ait):
    value = torch.tensor([[1.0, float("nan"), float("inf")]])
    root = write(tmp_path / "dump", {"Module.fc.Linear.forward.0": value}, Norm=float("-inf"))
    shown = ait("show", root / "step0" / "rank0" / "dump.json")
    assert shown.returncode == 0 and re.search(r"^max +nan", shown.stdout, re.M), shown.stdout
    process = compare("-o", "out", golden=root, my=root)
    assert "NAN or inf" in rows_of(tmp_path / "out")[0], process.stdout


def test_show_lists_what_a_dump_json_holds(ait):
    shown = ait("show", DATA / "md5" / "step0" / "proc4711" / "dump.json")
    assert shown.returncode == 0 and "msprobe dump.json, 56 tensors" in shown.stdout, shown.stdout
    assert re.search(
        r"^Module\.embed\.Embedding\.forward\.0\.parameters\.weight +torch.float32 +\[8, 4\]", shown.stdout, re.M
    )


def test_a_dump_that_was_cut_short_says_so(tmp_path, compare):
    root = write(tmp_path / "dump", {"Module.fc.Linear.forward.0": torch.ones(2)}, torch.save)
    path = root / "step0" / "rank0" / "dump.json"
    path.write_text(path.read_text()[:-20])
    process = compare("-o", "out", golden=root, my=root)
    assert process.returncode == 2 and "was the run cut short?" in process.stderr and str(path) in process.stderr


def test_a_large_dump_json_is_read_in_linear_time(tmp_path, ait, compare):
    calls = {f"Module.layers.{i % 200}.fc.Linear.forward.{i // 200}": torch.ones(1, 2) * i for i in range(20000)}
    root = write(tmp_path / "dump", calls)
    process = compare("-o", "out", golden=root, my=root)
    assert counts(process)[2] == 0 and len(rows_of(tmp_path / "out")) == 20000


def converted(ait, root):
    """Every tensor of a run by its round, operation and name."""
    process = ait("llm", "convert", root, root.with_name("new"), "--to", "dump")
    assert process.returncode == 0, process.stderr
    return tensors_below(root.with_name("new") / "ait_dump" / "torch_tensors" / "0_0", "*/*/*.pth"), process.stderr


VALUE = torch.arange(4.0).reshape(1, 4)


def test_functions_belong_to_the_module_that_called_them(tmp_path, ait):
    """msprobe writes a function before its module, and with Megatron each parent with the number of its batch."""
    block, layer = "Module.x.Block.forward.0", "Module.x.softmax.Softmax.forward.0"
    parents = {
        "Torch.softmax.0.forward": [block, 0],
        block: [None, 0],
        "Functional.softmax.0.forward": [layer, 0],
        layer: [block, 0],
    }
    calls = {key: VALUE + number for number, key in enumerate(parents)}
    root = write(tmp_path / "dump", calls, torch.save, parents=parents)
    new, _ = converted(ait, root)
    # The module keeps its name, also where a function of the same name ran before it.
    names = ["root.x.softmax.1", "root.x", "root.x.softmax.softmax", "root.x.softmax"]
    assert {f"0/{name}/output.pth": value[0, 0].item() for name, value in zip(names, calls.values())} == {
        name: value[0, 0].item() for name, value in new.items()
    }


def test_gradients_of_parameters_count_rounds(tmp_path, ait):
    """Each module was called twice in each of two rounds."""
    calls, parents = {}, {}
    for number in range(4):
        for word in ("forward", "backward"):
            calls[f"Module.m.fc.Linear.{word}.{number}"] = VALUE
            parents[f"Module.m.fc.Linear.{word}.{number}"] = f"Module.m.M.{word}.{number // 2}"
    for number in range(2):
        calls[f"Module.m.fc.Linear.parameters_grad.{number}"] = VALUE + 10 * (number + 1)
    root = write(tmp_path / "dump", calls, torch.save, parents=parents)
    path = root / "step0" / "rank0" / "dump.json"
    document = json.loads(path.read_text())
    for key, entry in document["data"].items():
        if "parameters_grad" in key:
            document["data"][key] = {"weight": entry["output"]}
    path.write_text(json.dumps(document))
    new, _ = converted(ait, root)
    for number in range(2):
        assert new[f"{number}/backward.m.fc/output_grad_weight.pth"][0, 0] == 10 * (number + 1)


def test_processes_beside_ranks_are_not_used(tmp_path, compare):
    for name in ("golden", "my"):
        for rank in (0, 1):
            write(tmp_path / name, {"Module.fc.Linear.forward.0": VALUE + rank}, torch.save, rank=f"rank{rank}")
    write(tmp_path / "my", {"Module.fc.Linear.forward.0": VALUE + 9}, torch.save, rank="proc12")
    process = compare("-o", "out", golden="golden", my="my")
    assert counts(process) == (2, 0, 0) and "without a partner" not in process.stdout, process.stdout
    assert "processes that have no rank; they are not used" in process.stderr


def test_a_rank_without_its_dump_json_is_told(tmp_path, compare):
    for rank in (0, 1):
        write(tmp_path / "dump", {"Module.fc.Linear.forward.0": VALUE}, torch.save, rank=f"rank{rank}")
    (tmp_path / "dump" / "step0" / "rank1" / "dump.json").write_text("")
    process = compare("-o", "out", golden="dump", my="dump")
    assert counts(process) == (1, 0, 0) and "rank1/dump.json" in process.stderr


def test_the_only_rank_of_older_versions_has_no_number(tmp_path, compare):
    root = write(tmp_path / "dump", {"Module.fc.Linear.forward.0": VALUE}, torch.save, rank="rank")
    process = compare("-o", "out", golden=root, my=root)
    assert counts(process) == (1, 0, 0) and "comparing an msprobe dump" in process.stderr


@pytest.mark.parametrize("number", [4294967295, 4294967294, 7])
def test_numbers_of_calls_may_be_any(tmp_path, compare, number):
    root = write(tmp_path / "dump", {f"Module.fc.Linear.forward.{number}": VALUE}, torch.save)
    assert counts(compare("-o", "out", golden=root, my=root)) == (1, 0, 0)
    assert rows_of(tmp_path / "out")[0].startswith(f"{number},root.fc/output,")


def test_long_names_and_circles_do_not_stop_the_rest(tmp_path, compare, ait):
    circle = [f"Functional.f{i}.0.forward" for i in range(2000)] + ["Module.m.M.forward.0"]
    parents = dict(zip(circle, circle[1:] + circle[:1]))
    calls = {"Module.fc.Linear.forward.0": VALUE, "Module." + "a." * 30000 + "C.forward.0": VALUE}
    root = write(tmp_path / "dump", calls)
    (root / "step0" / "rank0" / "construct.json").write_text(json.dumps(parents))
    process = compare("-o", "out", golden=root, my=root)
    assert [row.split(",")[1] for row in rows_of(tmp_path / "out")] == ["root.fc/output"]
    assert "1 tensors of calls whose names ait does not understand" in process.stderr
    assert ait("llm", "convert", root, tmp_path / "new", "--to", "dump").returncode == 0


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("other", ["tensor", "ours"])
def test_functions_and_backward_passes_beside_the_modules(tmp_path, compare, other, turned):
    """At level mix a module that is called twice has the weight among what its function is given."""
    sides = [record(tmp_path / "ours") if other == "ours" else DATA / other, DATA / "mix"]
    process = compare("-o", "out", golden=sides[turned], my=sides[not turned])
    identical, differ, failed = counts(process)
    assert (differ, failed) == (0, 0) and identical > 20 and "Fault" not in process.stdout, process.stdout
    side = "my side" if turned else "golden"
    # The root, which only we record, may find a partner in what the last module puts out.
    assert re.search(rf"{side}: (10 of 10|1. of 11) operations paired", process.stdout), process.stdout


def test_functions_do_not_hide_a_planted_fault(tmp_path, compare):
    process = compare("-o", "out", golden=DATA / "mix", my=record(tmp_path / "faulty", plant))
    assert re.match(r"Fault: token 0, root\.blocks\.1\.fc\b", process.stdout), process.stdout


def test_backward_passes_are_those_of_torch(ait, tmp_path):
    process = ait("llm", "convert", DATA / "mix", tmp_path / "new", "--to", "dump")
    assert process.returncode == 0, process.stderr
    new = tensors_below(tmp_path / "new" / "ait_dump" / "torch_tensors" / "0_4711", "*/*/*.pth")
    model = msprobe_model.make_model()
    given = []
    model.blocks[1].fc.register_full_backward_hook(lambda _module, grads, _outputs: given.append(grads[0]))
    msprobe_model.run(model, backward=True)
    # The backward pass comes to the second call first.
    names = ["0/backward.blocks.1.fc", "0/backward.blocks.1.fc#1", "1/backward.blocks.1.fc", "1/backward.blocks.1.fc#1"]
    for name, gradient in zip(names, given):
        assert torch.equal(new[f"{name}/output.pth"], gradient), name
    assert torch.equal(new["1/backward.blocks.1.fc/output_grad_weight.pth"], model.blocks[1].fc.weight.grad)
    # A function is in the module that called it, in the call that it was called in.
    assert torch.equal(new["0/root.blocks.1.fc#1.linear/input_0.pth"], new["0/root.blocks.1.fc#1/input_0.pth"])


def test_an_empty_construct_json_says_nothing(tmp_path, compare):
    root = write(tmp_path / "dump", {"Module.fc.Linear.forward.0": VALUE}, torch.save)
    (root / "step0" / "rank0" / "construct.json").write_text("")
    process = compare("-o", "out", golden=root, my=root)
    assert counts(process) == (1, 0, 0) and "warning" not in process.stderr, process.stderr
