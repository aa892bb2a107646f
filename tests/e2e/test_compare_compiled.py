"""`ait llm compare` on a torch run of which parts went through `torch.compile`."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from ait_llm import DumpConfig, register_hook
from pairing import read_rows
from pairing_data import COMPILED, DataCase
from torch_run import make_model

LAYERS = 3
SIDES = ("golden", "mine")
# The last projection in a compiled block made what the block puts out.
BLOCKS = {0: "mlp", 1: "self_attn", 2: "mlp"}


def record(folder, ids, is_compiled):
    model = make_model("llama", LAYERS, seed=5)
    for number, block in BLOCKS.items() if is_compiled else ():
        layer = model.model.layers[number]
        # Dynamo takes the block over; what would compile its graphs to machine code changes no call.
        setattr(layer, block, torch.compile(getattr(layer, block), backend="eager"))
    handle = register_hook(model, DumpConfig(str(folder)))
    with torch.no_grad():
        model(input_ids=ids, use_cache=False)
    handle.remove()


def is_inside(module):
    """Whether a module lies in a compiled block."""
    return any(f"layers.{number}.{block}." in module for number, block in BLOCKS.items())


def compare(ait, golden, mine, folder):
    done = ait("llm", "compare", "-gp", golden, "-mp", mine, "-o", folder, "--extended")
    assert done.returncode == 0, done.stderr
    return [row for row in read_rows(folder) if row["golden_data_path"] and row["my_data_path"]]


def test_compiled_parts_are_paired_by_names(ait, tmp_path):
    ids = torch.arange(1, 8)[None]
    record(tmp_path / "golden", ids, is_compiled=False)
    record(tmp_path / "mine", ids, is_compiled=True)
    rows = compare(ait, tmp_path / "golden", tmp_path / "mine", tmp_path / "out")
    recorded, heard = ({path.parent.name for path in (tmp_path / side).rglob("output*.pth")} for side in SIDES)
    assert heard == recorded and any(map(is_inside, heard))
    assert {row["my_operation"] for row in rows} == heard
    for row in rows:
        assert row["golden_operation"] == row["my_operation"]
        assert float(row["relative_euclidean_distance"]) < 1e-5, row


def test_compiled_parts_are_paired_by_data(ait, tmp_path):
    case = DataCase(tmp_path / "plain", seed=5, layers=LAYERS, lengths=[7], steps=0, dtype="float32")
    record(tmp_path / "golden", case.recorder.tensors[0, "root.model.embed_tokens", "input_0"], is_compiled=True)
    rows = compare(ait, tmp_path / "golden", case.mine, tmp_path / "out")
    heard = {path.parent.name for path in (tmp_path / "golden").rglob("output*.pth")}

    def and_around(module):
        """The module, and the one around it that puts out what it made."""
        if module == "root.lm_head":
            return {module, "root"}
        blocks = [
            module.removesuffix(inner) + block for inner, (block, _) in COMPILED.items() if module.endswith(inner)
        ]
        return {module, *blocks}

    partners = {}  # (operation, output): modules that put the same out
    for (_, operation, output), expected in case.truth.of.items():
        modules = [and_around(module) for module, stem, _ in expected or [] if stem.startswith("output")]
        partners[operation, output] = set().union(*modules) & heard
    found = set()
    for row in rows:
        assert float(row["relative_euclidean_distance"]) < 1e-4, row
        if "output" not in pathlib.Path(row["golden_data_path"]).stem:
            continue
        key = (row["my_operation"], int(re.search(r"outtensor(\d+)", row["data_id"])[1]))
        assert row["golden_operation"] in partners[key], row
        found.add(key)
    wanted = {key for key, modules in partners.items() if modules}
    assert len(wanted) > 20
    assert found >= wanted, sorted(wanted - found)
