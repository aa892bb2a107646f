"""Runs that kept statistics or descriptions in place of tensors, compared with full runs and with each other."""

import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from engine_bin import read_bin, statistics_bin
from pairing import read_rows as read_csv
from test_compare_auto_engine import LLAMA, counterparts
from test_rows_file import check as check_rows
from torch_run import make_model
from torch_script import dump as dump_torch
from torch_script import environment, write_script

LAYERS = 3
STEPS = 2
PROMPT = "1,15,7,33,5,60"
SCALE = 1.5
SCALED = "root.model.layers.1.mlp.down_proj"
FAULT = "scale@layer=1,op=SelfAttention"
FAULTY = "3_Prefill_layer/1_Attention/5_SelfAttentionOperation/outtensor0"

GENERATE = f"""
import sys, torch, transformers
torch.set_num_threads(1)
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], attn_implementation="eager").eval()
tokens = torch.tensor([[{PROMPT}]])

def generate():
    mask = torch.ones_like(tokens)
    model.generate(tokens, attention_mask=mask, max_new_tokens={STEPS}, do_sample=False, pad_token_id=0)
"""

# All recordings of torch in one process: importing it takes longer than they do.
RECORD = (
    GENERATE
    + f"""
from ait_llm import DumpConfig, register_hook
MODULES = dict(dump_statistics_mode=1, statistics_per_module=True)
for scale in (1.0, {SCALE}):
    with torch.no_grad():
        model.get_submodule('{SCALED.removeprefix("root.")}').weight.mul_(scale)
    for mode in (0, 1, 2, "modules"):
        folder = f"{{sys.argv[2]}}/torch_{{mode}}_{{scale}}"
        options = dict(dump_statistics_mode=mode) if mode != "modules" else dict(MODULES)
        with register_hook(model, DumpConfig(folder, token_range=list(range({STEPS})), **options)):
            generate()
with torch.no_grad():
    model.get_submodule('{SCALED.removeprefix("root.")}').weight.div_({SCALE})
for name in ("golden", "rolled"):
    folder = f"{{sys.argv[2]}}/sketches_{{name}}"
    with register_hook(model, DumpConfig(folder, dump_statistics_mode=1, dump_sketch=True)):
        generate()
    with torch.no_grad():
        weight = model.get_submodule('{SCALED.removeprefix("root.")}').weight
        weight.copy_(weight.roll(1, 0))
"""
)

STATISTICS_ONLY = "{}_data holds statistics only: max, min, mean and norm are given."
DESCRIPTION_ONLY = "{}_data holds type and shape only."
# What float16 makes of these models.
HALF_ROUNDING = 0.01


class Runs:
    """Recordings of one model; those of the engine are made when they are first asked for."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        make_model("llama", LAYERS).save_pretrained(folder / "model")
        subprocess.run(
            [sys.executable, "-c", RECORD, folder / "model", folder], check=True, timeout=600, capture_output=True
        )

    def ait(self, *arguments, status=0):
        process = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        assert process.returncode == status, process.stderr
        return process

    def torch(self, mode, scale=1.0):
        return self.folder / f"torch_{mode}_{scale}"

    def engine(self, *options, fault=None):
        if not LLAMA.exists():
            pytest.skip(f"{LLAMA} is not built")
        out = self.folder / "_".join(["engine", *options, fault or "clean"]).replace("@", "_")
        if not out.exists():
            command = f"{LLAMA} --model {self.folder / 'model'} --tokens {PROMPT} --steps {STEPS} --dtype fp16"
            command += f" --fault {fault}" if fault else ""
            self.ait(
                "llm",
                "dump",
                "--exec",
                command,
                "--type",
                "model",
                "tensor",
                "-er",
                "0,9",
                "-stp",
                "1",
                *options,
                "-o",
                out,
            )
        return out

    def engine_statistics(self):
        """The engine's run as newer probes would keep it: numbers in the headers of files without data."""
        out = self.folder / "engine_statistics"
        if not out.exists():
            shutil.copytree(self.engine(), out)
            for path in out.rglob("*.bin"):
                path.write_bytes(statistics_bin(path))
        return out

    def compare(self, golden, mine, *arguments):
        """The document, and the rows of the report by token and data_id; csv, rows and JSON say the same."""
        out = self.folder / f"out_{len(list(self.folder.glob('out_*')))}"
        process = self.ait("llm", "compare", "-gp", golden, "-mp", mine, "-o", out, "--extended", "--json", *arguments)
        document = json.loads(process.stdout)
        facts = check_rows(out, document)
        rows = {(row["token_id"], row["data_id"]): row for row in read_csv(out)}
        assert len(rows) == len(facts)
        for row, fact in zip(rows.values(), facts):
            row["at_least"] = fact["distance_at_least"]
            row["facts"] = fact
        return document, rows


@pytest.fixture(scope="module")
def runs(program, tmp_path_factory):
    return Runs(program, tmp_path_factory.mktemp("statistics"))


def paired(rows):
    return [row for row in rows.values() if row["golden_data_path"] and row["my_data_path"]]


def tensors_of(run):
    """{(token, data_id): tensor} of a full torch run."""
    found = {}
    for path in run.glob("ait_dump/torch_tensors/*/*/*/*.pth"):
        found[path.parts[-3], f"{path.parts[-2]}/{path.stem}"] = torch.load(path, weights_only=True)
    return found


def check_values(row, prefix, values):
    """The four numbers of a side, against torch's in float64."""
    values = values.double()
    for column, expected in [
        ("max_value", values.max()),
        ("min_value", values.min()),
        ("mean_value", values.mean()),
        ("l2norm", values.norm()),
    ]:
        scale = float(values.abs().max())
        assert float(row[f"{prefix}_{column}"]) == pytest.approx(float(expected), rel=1e-6, abs=1e-9 * scale), (
            column,
            row,
        )


def distance(golden, mine):
    golden, mine = golden.double().flatten(), mine.double().flatten()
    return float((mine - golden).norm() / golden.norm())


@pytest.mark.parametrize("side", ["golden", "my"])
def test_statistics_of_torch_stand_beside_the_tensors_of_another_run(runs, side):
    full, statistics = runs.torch(0), runs.torch(1)
    golden, mine = (statistics, full) if side == "golden" else (full, statistics)
    document, rows = runs.compare(golden, mine)
    truth = tensors_of(full)
    assert document["pairing"]["method"] == "by the names of modules"
    summary = document["summary"]
    assert summary["by_statistics"] == summary["rows"] == len(rows) > 50
    assert (summary["identical"], summary["differing"], summary["failed"]) == (0, 0, 0)
    assert (summary["only_golden"], summary["only_my"]) == (0, 0)
    between = re.compile(r"\.(o_proj|post_attention_layernorm|down_proj|lm_head)/input_0$")
    assert set(rows) == {key for key in truth if "/output" in key[1] or between.search(key[1])}
    for key, row in rows.items():
        for prefix in ("golden", "my"):
            check_values(row, prefix, truth[key])
            assert row[f"{prefix}_shape"] == str(list(truth[key].shape))
            assert row[f"{prefix}_dtype"] == str(truth[key].dtype)
        assert (
            row["cmp_fail_reason"] == STATISTICS_ONLY.format(side) + " the relative euclidean distance is at least 0."
        )
        assert row["at_least"] == 0
        assert row["cosine_similarity"] == row["relative_euclidean_distance"] == ""
        assert (row[f"{side}_nan"], row[f"{'my' if side == 'golden' else 'golden'}_nan"]) == ("", "0")
        assert row["facts"][side]["kept"] == "statistics" and row["facts"][side]["records"][0]["kept"] == "statistics"


STATISTICS_COLUMNS = (
    "token_id data_id golden_data_path golden_op_type my_data_path my_op_type max_stat_absolute_error "
    "max_stat_relative_error min_stat_absolute_error min_stat_relative_error mean_stat_absolute_error "
    "mean_stat_relative_error l2norm_stat_absolute_error l2norm_stat_relative_error cmp_fail_reason"
).split()


@pytest.mark.parametrize("modes", [(1, 1), (1, 0), (0, 0)], ids=lambda modes: f"{modes[0]} against {modes[1]}")
def test_a_report_on_statistics_says_how_far_they_are_apart(runs, modes):
    out = runs.folder / f"stats_{modes[0]}_{modes[1]}"
    runs.ait("llm", "compare", "-gp", runs.torch(modes[0]), "-mp", runs.torch(modes[1], SCALE), "-st", "-o", out)
    (path,) = out.glob("*.csv")
    assert path.name.startswith("ait_stats_cmp_report_")
    rows = read_csv(out)
    assert list(rows[0]) == STATISTICS_COLUMNS
    golden, mine = tensors_of(runs.torch(0)), tensors_of(runs.torch(0, SCALE))
    for row in rows:
        one = golden[row["token_id"], row["data_id"]].double()
        other = mine[row["token_id"], row["data_id"]].double()
        for name, value in [("max", torch.max), ("min", torch.min), ("mean", torch.mean), ("l2norm", torch.norm)]:
            apart = abs(float(value(other)) - float(value(one)))
            scale = float(one.abs().max())
            assert float(row[f"{name}_stat_absolute_error"]) == pytest.approx(apart, rel=1e-3, abs=1e-6 * scale)
            relative = apart / max(abs(float(value(one))), 2**-23)
            if abs(float(value(one))) > 1e-3 * scale:
                assert float(row[f"{name}_stat_relative_error"]) == pytest.approx(relative, rel=1e-2, abs=1e-3)
    (found,) = [row for row in rows if row["token_id"] == "0" and row["data_id"] == f"{SCALED}/output"]
    assert float(found["l2norm_stat_relative_error"]) == pytest.approx(SCALE - 1, rel=1e-5)


@pytest.mark.parametrize("modes", [(1, 1), (1, 0), (0, 1), (2, 1)], ids=lambda modes: f"{modes[0]} against {modes[1]}")
def test_a_wrong_scale_shows_as_a_distance_where_it_is(runs, modes):
    document, rows = runs.compare(runs.torch(modes[0]), runs.torch(modes[1], SCALE))
    golden, mine = tensors_of(runs.torch(0)), tensors_of(runs.torch(0, SCALE))
    assert document["summary"]["by_statistics"] == len(rows)
    first = {}
    for (token, name), row in rows.items():
        real = distance(golden[token, name], mine[token, name])
        assert row["at_least"] <= real * (1 + 1e-9) + 1e-12, (name, row["at_least"], real)
        if row["at_least"] > 0:
            first.setdefault(token, name)
    assert first["0"] == f"{SCALED}/output"
    found = rows["0", f"{SCALED}/output"]
    assert found["at_least"] == pytest.approx(SCALE - 1, rel=1e-5)
    assert found["cmp_fail_reason"].endswith(" the relative euclidean distance is at least 0.5.")


def test_a_table_for_each_module_says_the_same_as_one_for_each_round(runs):
    of_modules, of_rounds = runs.torch("modules"), runs.torch(1)
    assert not list(of_modules.glob("ait_dump/torch_tensors/*/*/statistics.csv"))
    assert len(list(of_rounds.rglob("statistics.csv"))) == STEPS < len(list(of_modules.rglob("statistics.csv")))
    document, rows = runs.compare(of_modules, of_rounds)
    _, of_itself = runs.compare(of_rounds, of_rounds)
    assert list(rows) == list(of_itself) and document["summary"]["by_statistics"] == len(rows) > 50
    for row in rows.values():
        assert row["at_least"] == 0
        for name in ("max_value", "min_value", "mean_value", "l2norm", "shape", "dtype"):
            assert row[f"golden_{name}"] == row[f"my_{name}"]
    _, rows = runs.compare(of_modules, runs.torch(1, SCALE))
    assert rows["0", f"{SCALED}/output"]["at_least"] == pytest.approx(SCALE - 1, rel=1e-5)


def test_sketches_tell_the_distance_of_channels_in_another_order(runs):
    """Which extremes, mean and norm do not show."""
    golden, rolled = runs.folder / "sketches_golden", runs.folder / "sketches_rolled"
    _, rows = runs.compare(golden, golden)
    assert {float(row["estimated_distance"] or 0) for row in rows.values()} == {0}
    document, rows = runs.compare(golden, rolled)
    first = next(name for (_, name), row in rows.items() if float(row["estimated_distance"] or 0) > 0)
    assert first == document["jump"] == f"{SCALED}/output"
    row = rows["0", first]
    tensor = tensors_of(runs.torch(0))["0", first]
    real = distance(tensor, tensor.roll(1, -1))
    assert 0.8 * real < row["at_least"] <= real <= float(row["estimated_distance_most"]) < 1.25 * real
    assert "by the sketches the relative euclidean distance is about" in row["cmp_fail_reason"]
    _, without = runs.compare(runs.torch(1), rolled)  # of one side only: the numbers alone
    assert without["0", first]["at_least"] < 1e-3
    _, against_data = runs.compare(runs.torch(0), rolled)
    assert against_data["0", first]["at_least"] == pytest.approx(row["at_least"], rel=1e-3)


def test_the_summary_names_the_row_that_is_farthest_apart(runs):
    out = runs.folder / "named"
    process = runs.ait("llm", "compare", "-gp", runs.torch(1), "-mp", runs.torch(1, SCALE), "-o", out)
    (line,) = [line for line in process.stdout.splitlines() if "compared by statistics alone" in line]
    # Which token's is larger is decided by the last bits, which differ between processors.
    assert re.search(
        rf"token \d, {re.escape(SCALED)}/output: relative_euclidean_distance is at least 0\.(49999|5)", line
    )
    assert "0 could not be compared" in process.stdout


def test_the_farthest_row_and_the_jump_are_found_without_data(runs):
    document, rows = runs.compare(runs.torch(1), runs.torch(1, SCALE))
    farthest = document["summary"]["farthest"]
    assert farthest["data_id"] == f"{SCALED}/output"
    assert farthest["distance_at_least"] == max(row["at_least"] for row in rows.values())
    assert farthest["distance_at_least"] == pytest.approx(SCALE - 1, rel=1e-5)
    assert document["jump"] == f"{SCALED}/output"
    out = runs.folder / "jumps"
    process = runs.ait("llm", "compare", "-gp", runs.torch(1), "-mp", runs.torch(0, SCALE), "-o", out)
    head, line = process.stdout.splitlines()[:2]
    assert head.startswith(f"Fault: token 0, {SCALED}")
    assert f"{SCALED}/output: it is at least 0.5 off" in line


def test_both_tensors_and_statistics_are_a_full_run(runs):
    document, rows = runs.compare(runs.torch(2), runs.torch(0))
    assert document["summary"]["identical"] == len(rows)
    assert "by_statistics" not in document["summary"]
    document, rows = runs.compare(runs.torch(2), runs.torch(2, SCALE))
    assert document["jump"] == f"{SCALED}/output"
    assert document["summary"]["differing"] > 0


def test_a_script_recorded_by_its_command_line(runs, tmp_path):
    script = write_script(tmp_path, GENERATE + "generate()\n")
    run = dump_torch(
        tmp_path,
        f"{sys.executable} {script} {runs.folder / 'model'}",
        "-er",
        f"0,{STEPS - 1}",
        env=environment(AIT_TORCH_STATISTICS="1"),
    )
    assert not list(run.root.rglob("*.pth")) and list(run.root.rglob("statistics.csv"))
    document, rows = runs.compare(run.root, runs.torch(0))
    assert document["summary"]["by_statistics"] == len(rows) > 50
    assert max(row["at_least"] for row in rows.values()) == 0
    _, rows = runs.compare(run.root, runs.torch(1, SCALE))
    assert rows["0", f"{SCALED}/output"]["at_least"] == pytest.approx(SCALE - 1, rel=1e-5)


def test_conditions_are_met_by_what_statistics_prove(runs):
    wrong = ["llm", "compare", "-gp", runs.torch(1), "-mp", runs.torch(0, SCALE), "-o", runs.folder / "conditions"]
    met = runs.ait(*wrong, "--fail-on", "relative_euclidean_distance>0.4", status=1).stderr
    assert "--fail-on relative_euclidean_distance>0.4 is met" in met
    runs.ait(
        *wrong, "--fail-on", "relative_euclidean_distance>0.51,relative_euclidean_distance<9,cosine_similarity<0.9"
    )
    runs.ait(*wrong, "--fail-on", "failed,nan,unmatched")


# torch against the acceleration library


def check_partners(rows):
    """Whoever is paired with the library's operation is what it stands for; how many of these there are."""
    known = counterparts({row["my_operation"] for row in rows.values() if row["my_operation"]})
    right = 0
    for row in paired(rows):
        expected = known.get(row["my_operation"])
        if expected is None:  # positions, and the rows that a head picks
            assert "Embedding" in row["my_operation"] or "LmHead" in row["my_operation"], row["data_id"]
            continue
        module = expected.split("/")[0]
        assert row["golden_operation"] in (module, module.rsplit(".", 1)[0]), (
            row["my_operation"],
            row["golden_operation"],
        )
        right += 1
    return right / len(known)


def test_statistics_of_torch_are_paired_with_the_library_by_types(runs):
    document, rows = runs.compare(runs.torch(1), runs.engine())
    assert check_partners(rows) > 0.6
    assert document["pairing"]["certain"] == 0 and document["pairing"]["likely"] > 0
    assert document["pairing"]["method"] == "by the types and order of operations"
    assert [(each["token"], each["phase"]) for each in document["pairing"]["tokens"]] == [
        ("0", "prefill"),
        ("1", "decode"),
    ]
    assert document["summary"]["by_statistics"] == len(paired(rows)) > 80
    truth = tensors_of(runs.torch(0))
    for row in paired(rows):
        assert row["pairing"] == "likely"
        assert row["cmp_fail_reason"].startswith(STATISTICS_ONLY.format("golden"))
        assert row["at_least"] < HALF_ROUNDING, row["data_id"]
        check_values(row, "my", read_bin(pathlib.Path(row["my_data_path"])))
        path, member = row["golden_data_path"].rsplit(":", 1)
        golden = truth[row["token_id"], member if "/" in member else f"{pathlib.Path(path).parent.name}/{member}"]
        check_values(row, "golden", golden)
        assert row["at_least"] <= distance(golden, read_bin(pathlib.Path(row["my_data_path"]))) * (1 + 1e-6)
    alone = [row for row in rows.values() if not row["golden_data_path"]]
    assert alone and {row["cmp_fail_reason"] for row in alone} == {"the data of golden-path were not kept."}
    alone = [row for row in rows.values() if not row["my_data_path"]]
    assert alone and {row["cmp_fail_reason"] for row in alone} == {"its data were not kept."}
    assert set(document["pairing"]["golden"]["unpaired"]) == {"its data were not kept."}


def test_a_fault_of_the_library_shows_in_statistics_of_torch(runs):
    _, clean = runs.compare(runs.torch(1), runs.engine())
    _, rows = runs.compare(runs.torch(1), runs.engine(fault=FAULT))
    assert set(rows) == set(clean)
    for (token, name), row in rows.items():
        if name.startswith(FAULTY.rsplit("/", 1)[0]) and row["golden_data_path"]:
            assert row["at_least"] > 10 * max(clean[token, name]["at_least"], 1e-3)
            break
        if row["at_least"] is not None:
            assert row["at_least"] < HALF_ROUNDING, name
    else:
        pytest.fail("the faulty operation has no partner")


def test_the_library_may_be_the_trusted_side(runs):
    document, rows = runs.compare(runs.engine(), runs.torch(1))
    assert document["summary"]["by_statistics"] == len(paired(rows)) > 40
    assert max(row["at_least"] for row in paired(rows)) < HALF_ROUNDING
    assert set(document["pairing"]["my"]["unpaired"]) == {"its data were not kept."}
    assert set(document["pairing"]["golden"]["unpaired"]) == {"the data of my-path were not kept."}


# Descriptions


@pytest.mark.parametrize("side", ["golden", "my"])
def test_a_dump_of_descriptions_is_held_against_a_full_one(runs, side):
    full, described = runs.engine(), runs.engine("-sd")
    golden, mine = (described, full) if side == "golden" else (full, described)
    document, rows = runs.compare(golden, mine)
    assert document["pairing"]["method"] == "by the place in the graph"
    assert document["pairing"]["my"]["paired"] == document["pairing"]["my"]["operations"]
    summary = document["summary"]
    assert summary["failed"] == summary["rows"] == len(rows) > 100
    assert "by_statistics" not in summary
    whole = "my" if side == "golden" else "golden"
    for row in rows.values():
        values = read_bin(pathlib.Path(row[f"{whole}_data_path"]))
        for prefix in ("golden", "my"):
            assert row[f"{prefix}_shape"] == str(list(values.shape))
            assert row[f"{prefix}_dtype"] == str(values.dtype)
        assert row[f"{side}_max_value"] == row[f"{side}_l2norm"] == ""
        if values.is_floating_point():
            check_values(row, whole, values)
        assert row["cmp_fail_reason"] == DESCRIPTION_ONLY.format(side)
        assert row["facts"][side]["kept"] == row["facts"][side]["records"][0]["kept"] == "description"


def test_shapes_of_descriptions_are_compared(runs, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(runs.engine("-sd"), other)
    (changed,) = other.glob("ait_dump/tensors/*/0/2_Prefill_layer/after/outtensor0.bin")
    changed.write_bytes(changed.read_bytes().replace(b"dims=6,64", b"dims=6,32"))
    document, rows = runs.compare(runs.engine("-sd"), other)
    both = f"{DESCRIPTION_ONLY.format('golden')} {DESCRIPTION_ONLY.format('my')}"
    reasons = {name: row["cmp_fail_reason"] for (_, name), row in rows.items()}
    assert reasons.pop("2_Prefill_layer/outtensor0") == "data shape doesn't match. " + both
    assert set(reasons.values()) == {both}
    assert document["summary"]["failed"] == len(rows)


def test_descriptions_and_statistics_meet_in_types_and_shapes(runs):
    document, rows = runs.compare(runs.torch(1), runs.engine("-sd"))
    assert check_partners(rows) > 0.6
    assert document["summary"]["failed"] == len(paired(rows)) > 80
    reason = f"{STATISTICS_ONLY.format('golden')} {DESCRIPTION_ONLY.format('my')}"
    assert {row["cmp_fail_reason"] for row in paired(rows)} == {reason}
    assert set(document["pairing"]["my"]["unpaired"]) == {"its data were not kept."}


# Statistics in files of the library


def test_statistics_of_the_library_are_read_from_its_headers(runs):
    document, rows = runs.compare(runs.engine_statistics(), runs.engine())
    assert document["summary"]["by_statistics"] + document["summary"]["failed"] == len(rows)
    for row in rows.values():
        values = read_bin(pathlib.Path(row["my_data_path"])).double()
        if not values.isfinite().all():
            continue
        assert row["at_least"] == 0, row["data_id"]
        for column, expected in [("max_value", values.max()), ("mean_value", values.mean()), ("l2norm", values.norm())]:
            assert float(row[f"golden_{column}"]) == pytest.approx(float(expected), abs=6e-7, rel=1e-6)
    _, rows = runs.compare(runs.engine_statistics(), runs.engine(fault=FAULT))
    first = next(name for (token, name), row in rows.items() if (row["at_least"] or 0) > 0)
    assert first.startswith(FAULTY.rsplit("/", 1)[0])
    assert math.isfinite(rows["0", FAULTY]["at_least"]) and rows["0", FAULTY]["at_least"] > 0.05
