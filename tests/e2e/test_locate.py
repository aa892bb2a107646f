"""What `ait llm compare` and `ait locate` find, and how they say it; how often they are right is for `make eval`."""

import json
import pathlib
import re

import pytest
import torch
import transformers
from ait_llm.dump.torch_dump import DumpConfig, register_hook
from pairing import read_rows

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
FAULTY = "root.model.layers.1.mlp.down_proj"


def record(folder, dtype=torch.float32, wrong=(), **options):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        num_hidden_layers=3,
        hidden_size=64,
        intermediate_size=128,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=100,
    )
    model = transformers.LlamaForCausalLM(config).eval().to(dtype)
    for layer in wrong:
        model.model.layers[layer].mlp.down_proj.weight.data *= 4
    with register_hook(model, DumpConfig(dump_path=str(folder), token_range=[0]), **options), torch.no_grad():
        model(input_ids=torch.arange(1, 13)[None])
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locate")
    record(folder / "golden")
    record(folder / "healthy", torch.bfloat16)
    record(folder / "wrong", torch.bfloat16, wrong=[1])
    record(folder / "wrong everywhere", torch.bfloat16, wrong=range(3))
    record(folder / "noise", torch.float32, perturb="bf16")
    return folder


def compare(ait, runs, mine, out, *more):
    done = ait("llm", "compare", "-gp", runs / "golden", "-mp", runs / mine, "-o", out, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_fault_is_named_with_its_cause(ait, runs, tmp_path):
    text = compare(ait, runs, "wrong", tmp_path)
    lines = text.splitlines()
    assert lines[0] == f"Fault: token 0, {FAULTY} (layer 1)"
    assert lines[1].startswith(f"  {FAULTY}/output: it is 3 off, ")
    assert lines[2].startswith("  likely cause: scale: ") and " 4 " in lines[2]
    assert any(re.fullmatch(r"  \d+ later rows differ because of it", line) for line in lines)
    (following,) = [line for line in lines if line.startswith("Next: ")]
    assert following.endswith(f"{FAULTY}/output.pth")


def test_a_fault_of_every_layer_is_named_in_the_first(ait, runs, tmp_path):
    """Other layers say what is usual, and may have the same fault."""
    findings = json.loads(compare(ait, runs, "wrong everywhere", tmp_path, "--json"))["findings"]
    assert findings[0]["operation"] == FAULTY.replace("layers.1", "layers.0")
    assert findings[0]["causes"][0]["name"] == "scale"


def test_json_has_all_of_a_finding(ait, runs, tmp_path):
    document = json.loads(compare(ait, runs, "wrong", tmp_path, "--json"))
    finding = document["findings"][0]
    assert (finding["verdict"], finding["token_id"], finding["operation"]) == ("fault", "0", FAULTY)
    assert (finding["data_id"], finding["layer"], finding["rank"]) == (f"{FAULTY}/output", 1, None)
    assert finding["error"] == pytest.approx(3, rel=0.05)
    assert 0 < finding["noise"] < 0.02
    assert finding["causes"][0]["name"] == "scale"
    assert finding["causes"][0]["residual_error"] < 0.05
    assert finding["reason"] and finding["threshold"] == "what 20 operations of its kind do in this model"
    assert document["jump"] == f"{FAULTY}/output"


def test_a_healthy_run_is_not_accused(ait, runs, tmp_path):
    assert compare(ait, runs, "healthy", tmp_path).startswith("No fault: rounding explains every difference")
    assert json.loads(compare(ait, runs, "healthy", tmp_path / "j", "--json"))["findings"] == []


def test_every_row_has_a_verdict(ait, runs, tmp_path):
    compare(ait, runs, "wrong", tmp_path, "--extended")
    rows = read_rows(tmp_path)
    by_id = {row["data_id"]: row for row in rows}
    assert by_id[f"{FAULTY}/output"]["verdict"] == "fault"
    assert by_id["root.model.layers.0.mlp.down_proj/output"]["verdict"] == "noise"
    assert by_id["root.model.layers.1/output"]["verdict"] == "fault"
    assert f"follows from {FAULTY}" in by_id["root.model.layers.1/output"]["verdict_reason"]
    for row in rows:
        largest = max(abs(float(row["my_max_value"])), abs(float(row["my_min_value"])))
        if largest:
            assert float(row["my_headroom_fp16"]) == pytest.approx(65504 / largest, rel=1e-5)


def test_noise_may_be_measured(ait, runs, tmp_path):
    document = json.loads(compare(ait, runs, "wrong", tmp_path, "--json", "--noise", runs / "noise"))
    finding = document["findings"][0]
    assert finding["operation"] == FAULTY
    assert finding["threshold"] == "what the noise run has there"
    healthy = compare(ait, runs, "healthy", tmp_path / "h", "--noise", runs / "noise")
    assert "Fault:" not in healthy and "Broken:" not in healthy


def test_thresholds_are_explained(ait, runs, tmp_path):
    text = compare(ait, runs, "wrong", tmp_path, "--explain")
    (line,) = [line for line in text.splitlines() if line.startswith("  threshold: ")]
    assert "what 20 operations of its kind do in this model" in line


@pytest.mark.parametrize("what", ["folder", "csv", "rows"])
def test_locate_finds_again_from_a_report(ait, runs, tmp_path, what):
    first = json.loads(compare(ait, runs, "wrong", tmp_path, "--json"))
    report = pathlib.Path(first["report"])
    given = {"folder": tmp_path, "csv": report, "rows": report.with_suffix(".rows")}[what]
    done = ait("locate", given, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["findings"] == first["findings"]
    assert ait("locate", given).stdout.startswith(f"Fault: token 0, {FAULTY} (layer 1)")


def test_locate_takes_the_report_of_a_noise_run(ait, runs, tmp_path):
    compare(ait, runs, "wrong", tmp_path / "wrong")
    compare(ait, runs, "noise", tmp_path / "noise")
    done = ait("locate", tmp_path / "wrong", "--noise", tmp_path / "noise", "--json")
    assert json.loads(done.stdout)["findings"][0]["threshold"] == "what the noise run has there"


def test_locate_says_what_is_missing(ait, tmp_path):
    done = ait("locate", tmp_path)
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr and "ait llm compare" in done.stderr
    done = ait("locate", tmp_path / "report.csv")
    assert done.returncode == 2
    assert "report.rows" in done.stderr
    (tmp_path / "broken.rows").write_bytes(b"ait rows" + bytes(8))
    done = ait("locate", tmp_path / "broken.rows")
    assert done.returncode == 2
    assert "broken.rows" in done.stderr


def test_noise_must_be_a_dump(ait, runs, tmp_path):
    done = ait("llm", "compare", "-gp", runs / "golden", "-mp", runs / "wrong", "-o", tmp_path, "--noise", tmp_path)
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr


def test_the_page_names_every_cause():
    sources = [*(REPOSITORY / "src" / "locate").glob("causes*.cpp"), REPOSITORY / "src" / "locate" / "examine.cpp"]
    text = "".join(path.read_text() for path in sources)
    names = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', text))
    page = (REPOSITORY / "docs" / "locate.md").read_text()
    table = page.split("## Likely causes")[1].split("\n## ")[0]
    assert names <= set(re.findall(r"`([a-z-]+)`", table))
