"""`ait llm compare` on folders, checkpoints and manual mappings."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import time

import numpy as np
import pytest
from conftest import atb_bin

COLUMNS = (
    "token_id,data_id,golden_data_path,golden_dtype,golden_shape,golden_max_value,golden_min_value,golden_mean_value,"
    "my_data_path,my_dtype,my_shape,my_max_value,my_min_value,my_mean_value,cosine_similarity,max_relative_error,"
    "mean_relative_error,max_absolute_error,mean_absolute_error,kl_divergence,relative_euclidean_distance,cmp_fail_reason"
).split(",")


def read_report(folder, name="ait_cmp_report_*.csv"):
    (path,) = pathlib.Path(folder).glob(name)
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert path.read_text().splitlines()[0].split(",") == COLUMNS
    return {row["data_id"]: row for row in rows}


@pytest.fixture
def folders(tmp_path):
    """Two folders in four formats: a scaled tensor, a NaN, a missing, an extra, a corrupt and an unreadable file."""
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    for i in range(12):
        golden = random.standard_normal((4, 64)).astype(np.float32)
        (tmp_path / "golden/sub").mkdir(parents=True, exist_ok=True)
        (tmp_path / "my/sub").mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / f"golden/sub/t{i}.npy", golden)
        actual = golden.copy()
        if i == 7:
            actual *= np.float32(1.5)
        if i == 3:
            actual[0, 0] = np.nan
        target = tmp_path / f"my/sub/t{i}"
        if i == 5:
            continue
        if i % 3 == 0:
            torch.save(torch.from_numpy(actual), target.with_suffix(".pth"))
        elif i % 3 == 1:
            target.with_suffix(".bin").write_bytes(atb_bin(actual, 0))
        else:
            np.save(target.with_suffix(".npy"), actual)
    np.save(tmp_path / "my/extra.npy", golden)
    (tmp_path / "my/sub/t8.npy").write_bytes(b"\x93NUMPY\x01\x00")
    (tmp_path / "my/sub/t10.bin").unlink()
    os.mkfifo(tmp_path / "my/sub/t10.bin")
    return tmp_path


def test_every_file_of_either_side_is_a_row_in_natural_order(ait, folders):
    done = ait("llm", "compare", "-gp", "golden", "-mp", "my", "-o", "out")
    assert done.returncode == 0, done.stderr
    rows = read_report(folders / "out")
    assert list(rows) == ["extra.npy", *[f"sub/t{i}.npy" for i in range(12)]]
    assert rows["extra.npy"]["cmp_fail_reason"] == "no counterpart in golden-path."
    assert rows["sub/t5.npy"]["cmp_fail_reason"] == "no counterpart in my-path."
    assert rows["sub/t3.npy"]["cmp_fail_reason"] == "my_data includes NAN or inf."
    assert "t8.npy" in rows["sub/t8.npy"]["cmp_fail_reason"]
    assert "is not a file." in rows["sub/t10.npy"]["cmp_fail_reason"]
    assert float(rows["sub/t7.npy"]["mean_relative_error"]) == pytest.approx(0.5, rel=1e-6)
    for i in (0, 1, 2, 4, 6, 9, 11):
        assert rows[f"sub/t{i}.npy"]["cmp_fail_reason"] == ""
        assert rows[f"sub/t{i}.npy"]["cosine_similarity"] == "1.0"


def test_the_summary_leads_with_what_was_and_was_not_compared(ait, folders):
    done = ait("llm", "compare", "-gp", "golden", "-mp", "my", "-o", "out")
    assert "11 pairs: 7 identical, 2 differ, 2 could not be compared" in done.stdout
    assert "2 without a partner: 1 only in golden, 1 only in my side" in done.stdout
    assert "Report: out/ait_cmp_report_" in done.stdout
    assert "Next: " in done.stdout
    worst = done.stdout.split("The worst of those that differ:")[1]
    # No distance shows a NaN, and none is worse.
    assert worst.index("sub/t3.npy") < worst.index("sub/t7.npy")
    assert "1 with NaN or infinities on one side only; the first is token 0, sub/t3.npy (golden: 0, my side: 1)" in (
        done.stdout.splitlines()
    )


def test_a_wrong_scale_comes_before_what_points_elsewhere(ait, tmp_path):
    random = np.random.default_rng(0)
    for side in ("golden", "my"):
        (tmp_path / side).mkdir()
    for name, scale, noise in [("scaled", 1.5, 0), ("noisy", 1, 0.1)]:
        golden = random.standard_normal(64).astype(np.float32)
        np.save(tmp_path / f"golden/{name}.npy", golden)
        np.save(tmp_path / f"my/{name}.npy", golden * np.float32(scale) + noise * random.standard_normal(64))
    done = ait("llm", "compare", "-gp", "golden", "-mp", "my", "-o", "out")
    worst = done.stdout.split("The worst of those that differ:")[1]
    assert worst.index("scaled.npy") < worst.index("noisy.npy")
    assert "on one side only" not in done.stdout


def test_a_tensor_of_nothing_but_nan_is_the_worst(ait, tmp_path):
    for side in ("golden", "my"):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "a.npy", np.full(4, 1.0 if side == "golden" else np.nan))
        np.save(tmp_path / side / "b.npy", np.zeros(4) if side == "golden" else np.ones(4))
    done = ait("llm", "compare", "-gp", "golden", "-mp", "my", "-o", "out", "--json")
    document = json.loads(done.stdout)
    assert [row["data_id"] for row in document["worst"]] == ["a.npy", "b.npy"]
    assert document["summary"]["non_finite"] == 1


def test_json_carries_the_summary_and_the_worst_rows(ait, folders):
    done = ait("llm", "compare", "-gp", "golden", "-mp", "my", "-o", "out", "--json")
    document = json.loads(done.stdout)
    assert document["summary"] == {
        "rows": 13,
        "identical": 7,
        "differing": 2,
        "failed": 2,
        "only_golden": 1,
        "only_my": 1,
        "non_finite": 1,
    }
    assert [row["data_id"] for row in document["worst"]] == ["sub/t3.npy", "sub/t7.npy"]
    assert (folders / document["report"]).exists() and document["partial"] is False


def test_folders_that_share_no_name_end_with_status_2_and_a_report(ait, tmp_path):
    for side in ("g", "m"):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / f"{side}.npy", np.ones(3))
    done = ait("llm", "compare", "-gp", "g", "-mp", "m", "-o", "out")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("ait: error: nothing was compared: no tensor of one side has")
    assert set(read_report(tmp_path / "out")) == {"g.npy", "m.npy"}


def test_the_same_reason_of_many_files_is_one_line(ait, tmp_path):
    for side in ("g", "m"):
        (tmp_path / side).mkdir()
        for i in range(9):
            np.save(tmp_path / side / f"{i}.npy", np.ones(3))
    for i in range(7):
        (tmp_path / f"m/{i}.npy").write_bytes(b"\x93NUMPY\x01\x00")
    done = ait("llm", "compare", "-gp", "g", "-mp", "m", "-o", "out")
    (line,) = [line for line in done.stdout.splitlines() if " × " in line]
    assert line.startswith("  7 × ….npy: ")
    assert "m/3.npy: " in read_report(tmp_path / "out")["3.npy"]["cmp_fail_reason"]


@pytest.mark.parametrize("condition", ["unmatched", "failed", "nan", "mean_relative_error>0.4"])
def test_fail_on_looks_at_every_row(ait, folders, condition):
    assert ait("llm", "compare", "-gp", "golden", "-mp", "my", "-o", "o", "--fail-on", condition).returncode == 1


def test_fail_on_that_no_row_meets_is_no_failure(ait, folders):
    done = ait("llm", "compare", "-gp", "golden", "-mp", "my", "-o", "o", "--fail-on", "mean_relative_error>0.6")
    assert done.returncode == 0


def test_reports_are_the_same_for_any_number_of_threads(ait, folders):
    texts = set()
    for threads in (1, 2, 8):
        out = folders / f"out{threads}"
        assert (
            ait(
                "llm", "compare", "-gp", "golden", "-mp", "my", "-o", out, "--extended", "--threads", threads
            ).returncode
            == 0
        )
        (path,) = out.glob("*.csv")
        texts.add(path.read_bytes())
    assert len(texts) == 1


def test_checkpoints_are_compared_by_tensor_name_whatever_their_shards(ait, tmp_path):
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    torch.manual_seed(0)
    weights = {f"model.layers.{i}.weight": torch.randn(8, 16) for i in range(12)}
    changed = {name: tensor.clone() for name, tensor in weights.items()}
    changed["model.layers.3.weight"] *= 2
    del changed["model.layers.11.weight"]
    changed["lm_head"] = torch.zeros(3)
    sharded = tmp_path / "sharded"
    sharded.mkdir()
    names = list(weights)
    index = {}
    for number, part in enumerate((names[:5], names[5:])):
        file = f"model-{number + 1:05}-of-00002.safetensors"
        save_file({name: weights[name] for name in part}, sharded / file)
        index.update(dict.fromkeys(part, file))
    (sharded / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    torch.save(changed, tmp_path / "state.pth")

    done = ait("llm", "compare", "-gp", "sharded", "-mp", "state.pth", "-o", "out")
    assert done.returncode == 0, done.stderr
    rows = read_report(tmp_path / "out")
    assert list(rows)[:4] == ["lm_head", *[f"model.layers.{i}.weight" for i in range(3)]]
    assert len(rows) == 13
    assert rows["lm_head"]["cmp_fail_reason"] == "no counterpart in golden-path."
    assert rows["model.layers.11.weight"]["cmp_fail_reason"] == "no counterpart in my-path."
    assert float(rows["model.layers.3.weight"]["max_relative_error"]) == 1
    assert rows["model.layers.10.weight"]["max_absolute_error"] == "0.0"


def test_a_quantised_checkpoint_is_compared_with_the_one_it_came_from(ait, tmp_path):
    save_file = pytest.importorskip("safetensors.numpy").save_file
    random = np.random.default_rng(0)
    golden = {f"layers.{i}.weight": random.standard_normal((8, 32)).astype(np.float32) for i in range(3)}
    golden["norm.weight"] = np.ones(32, np.float32)
    mine = {"norm.weight": golden["norm.weight"]}
    for name, weight in golden.items():
        if name == "norm.weight":
            continue
        scale = np.abs(weight).max(axis=1, keepdims=True) / 127
        offset = np.full_like(scale, 2.0)
        mine[name] = (np.round(weight / scale).clip(-125, 125) + offset).astype(np.int8)
        mine |= {f"{name}_scale": scale, f"{name}_offset": offset}
    mine["layers.1.weight_scale"] = mine["layers.1.weight_scale"] * np.float32(2)
    for side, tensors in (("g", golden), ("m", mine)):
        (tmp_path / side).mkdir()
        names = sorted(tensors)
        for part in (0, 1):
            half = {name: tensors[name] for name in names[part::2]}
            save_file(half, tmp_path / side / f"model-0000{part + 1}-of-00002.safetensors")
    done = ait("llm", "compare", "-gp", "g", "-mp", "m", "-w", "-o", "out")
    assert done.returncode == 0, done.stderr
    rows = read_report(tmp_path / "out")
    assert set(rows) == set(golden)
    for name, row in rows.items():
        wrong = float(row["relative_euclidean_distance"])
        assert wrong == 0 if name == "norm.weight" else 0.9 < wrong < 1.1 if "1" in name else 0.001 < wrong < 0.02
        assert ("my data is de-quantised." in row["cmp_fail_reason"]) == (name != "norm.weight")
    plain = ait("llm", "compare", "-gp", "g", "-mp", "g", "--weight", "-o", "out")
    assert "--weight has no effect: no weight has a weight_scale beside it" in plain.stderr
    manual = ait("llm", "compare", "-gp", "g/model-00001-of-00002.safetensors", "-mp", "out", "-w", "-o", "out")
    assert manual.returncode == 2
    np.save(tmp_path / "x.npy", np.ones(3))
    single = ait("llm", "compare", "-gp", "x.npy", "-mp", "x.npy", "-w")
    assert single.returncode == 2 and "--weight has no effect on two files" in single.stderr
    own = ait("llm", "compare", "-gp", "x.npy", "-mp", "x.npy", "-alg", "mine.py:f")
    assert own.returncode == 2 and "ait_llm.compare_runs" in own.stderr


def test_a_missing_shard_is_rows_with_a_reason(ait, tmp_path):
    save_file = pytest.importorskip("safetensors.numpy").save_file
    for side in ("g", "m"):
        (tmp_path / side).mkdir()
        save_file({"a": np.ones(3, np.float32)}, tmp_path / side / "one.safetensors")
        (tmp_path / side / "model.safetensors.index.json").write_text(
            json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})
        )
    done = ait("llm", "compare", "-gp", "g", "-mp", "m", "-o", "out")
    rows = read_report(tmp_path / "out")
    assert rows["a"]["cmp_fail_reason"] == ""
    assert "two.safetensors is not a file." in rows["b"]["cmp_fail_reason"]
    assert done.returncode == 0


def write_many(path, names):
    """A safetensors file of a number under each of these names."""
    header = ",".join(
        f'"{name}":{{"dtype":"F32","shape":[1],"data_offsets":[{4 * i},{4 * i + 4}]}}' for i, name in enumerate(names)
    )
    header = f"{{{header}}}".encode()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4 * len(names)))


@pytest.mark.parametrize("count", [90_000, pytest.param(900_000, marks=pytest.mark.slow)])
def test_a_file_of_many_tensors_takes_time_for_each_but_no_more(ait, tmp_path, count):
    for side in ("golden", "my"):
        write_many(tmp_path / f"{side}.safetensors", [f"model.layers.{i // 1000}.w{i % 1000}" for i in range(count)])
    done = ait("llm", "compare", "-gp", "golden.safetensors", "-mp", "my.safetensors", "-o", "out", timeout=60)
    assert f"{count} pairs: {count} identical" in done.stdout


def test_shards_whose_tensors_alternate_are_opened_once(ait, tmp_path):
    shards, each = 50, 1000
    weight_map = {f"w{i}": f"{i % shards}.safetensors" for i in range(shards * each)}
    for side in ("golden", "my"):
        for shard in range(shards):
            write_many(tmp_path / side / f"{shard}.safetensors", [f"w{i}" for i in range(shard, shards * each, shards)])
        (tmp_path / side / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    done = ait("llm", "compare", "-gp", "golden", "-mp", "my", "-o", "out", timeout=20)
    assert f"{shards * each} pairs: {shards * each} identical" in done.stdout


def manual_mapping(tmp_path, tokens=2, data_ids=3):
    """What seed 002's first two steps leave behind, made here without dump_data."""
    torch = pytest.importorskip("torch")
    golden = tmp_path / "ait_dump/12_0/golden_tensor"
    metadata = {}
    for data_id in range(data_ids):
        for token in range(tokens):
            tensor = torch.randn(2, 5, generator=torch.Generator().manual_seed(10 * data_id + token)).half()
            (golden / str(token)).mkdir(parents=True, exist_ok=True)
            path = golden / str(token) / f"{data_id}_tensor.pth"
            torch.save(tensor, path)
            mine = tmp_path / f"acl/tensors/0_9/{token}/{data_id}_Linear/after/outtensor0.bin"
            mine.parent.mkdir(parents=True, exist_ok=True)
            mine.write_bytes(atb_bin((tensor * (1 + data_id)).numpy(), 1))
            metadata.setdefault(str(data_id), {})[str(token)] = [str(path), str(mine)]
    (golden / "metadata.json").write_text(json.dumps(metadata))
    return golden


@pytest.mark.parametrize(
    "golden", ["ait_dump/12_0/", "ait_dump/12_0/golden_tensor", "ait_dump/12_0/golden_tensor/metadata.json"]
)
@pytest.mark.parametrize("my_path", [[], ["--my-path", "my-path.bin"]])
def test_a_manual_mapping_gives_cmp_report_csv(ait, tmp_path, golden, my_path):
    manual_mapping(tmp_path)
    done = ait("llm", "compare", "--golden-path", golden, *my_path, "--output", "output_dir")
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "output_dir/cmp_report.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert [(row["data_id"], row["token_id"]) for row in rows] == [(str(d), str(t)) for d in range(3) for t in range(2)]
    assert rows[0]["cosine_similarity"] == "1.0" and rows[0]["cmp_fail_reason"] == ""
    assert float(rows[5]["relative_euclidean_distance"]) == pytest.approx(2, rel=1e-3)
    assert rows[5]["golden_dtype"] == "torch.float16" and rows[5]["my_shape"] == "[2, 5]"


def test_my_path_that_a_manual_mapping_does_not_use_is_a_warning(ait, tmp_path):
    manual_mapping(tmp_path)
    done = ait("llm", "compare", "-gp", "ait_dump/12_0", "-mp", "missing.bin", "-o", "out")
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "warning" in line]
    assert "missing.bin: no such file or folder, so that --my-path has no effect" in line
    done = ait("llm", "compare", "-gp", "ait_dump/12_0", "-mp", "acl", "-o", "out")
    assert "warning" not in done.stderr
    done = ait("llm", "compare", "-gp", "ait_dump/12_0", "--my-dtype", "half")
    assert done.returncode == 2 and "--my-dtype" in done.stderr


def test_a_mapping_that_moved_is_found_below_my_path(ait, tmp_path):
    manual_mapping(tmp_path)
    (tmp_path / "acl").rename(tmp_path / "moved")
    ait("llm", "compare", "-gp", "ait_dump/12_0", "-o", "lost")
    with open(tmp_path / "lost/cmp_report.csv", newline="") as file:
        assert all("is not a file." in row["cmp_fail_reason"] for row in csv.DictReader(file))
    ait("llm", "compare", "-gp", "ait_dump/12_0", "-mp", "moved", "-o", "found")
    with open(tmp_path / "found/cmp_report.csv", newline="") as file:
        assert all(row["cmp_fail_reason"] == "" for row in csv.DictReader(file))


def test_a_mapping_whose_golden_tensors_moved_with_it_needs_nothing(ait, tmp_path):
    manual_mapping(tmp_path)
    (tmp_path / "ait_dump").rename(tmp_path / "elsewhere")
    ait("llm", "compare", "-gp", "elsewhere/12_0", "-o", "out")
    with open(tmp_path / "out/cmp_report.csv", newline="") as file:
        assert [row["cmp_fail_reason"] for row in csv.DictReader(file)] == [""] * 6


def test_a_mapping_with_a_path_of_200_kilobytes_is_read_at_once(ait, tmp_path):
    golden = manual_mapping(tmp_path)
    (golden / "metadata.json").write_text(json.dumps({"1": {"0": ["/a" * 100_000, "/b" * 100_000]}}))
    done = ait("llm", "compare", "-gp", "ait_dump/12_0", "-mp", ".", "-o", "out", timeout=10)
    assert done.returncode == 0, done.stderr


def test_reports_are_never_overwritten(ait, tmp_path):
    manual_mapping(tmp_path)
    for _ in range(3):
        assert ait("llm", "compare", "-gp", "ait_dump/12_0", "-o", "out").returncode == 0
    stems = ["cmp_report", "cmp_report_1", "cmp_report_2"]
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == sorted(f"{stem}.{kind}" for stem in stems for kind in ("csv", "rows"))


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"1": 3'])
def test_a_broken_metadata_json_is_one_clear_line(ait, tmp_path, text):
    golden = manual_mapping(tmp_path)
    (golden / "metadata.json").write_text(text)
    done = ait("llm", "compare", "-gp", "ait_dump/12_0", "-o", "out")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "metadata.json" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["-gp", "golden"], "--my-path"),
        (["-gp", "golden", "-mp", "nowhere"], "nowhere: no such file or folder"),
        (["-gp", "golden", "-mp", "golden/sub/t0.npy"], "is a folder but"),
        (["-gp", "empty", "-mp", "empty"], "nothing to compare"),
    ],
)
def test_what_makes_no_sense_is_one_clear_line(ait, folders, arguments, words):
    (folders / "empty").mkdir()
    done = ait("llm", "compare", *arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr


def many_pairs(folder, count):
    """`count` pairs that take a while: big enough to interrupt, cheap to make through links."""
    for side in ("g", "m"):
        (folder / side).mkdir()
    array = np.random.default_rng(0).standard_normal(2**21).astype(np.float16)
    np.save(folder / "g/0.npy", array)
    np.save(folder / "m/0.npy", array * np.float16(1.01))
    for i in range(1, count):
        for side in ("g", "m"):
            os.link(folder / side / "0.npy", folder / side / f"{i}.npy")


def wait_for_start(process, out):
    """Until the comparison has begun its report."""
    while process.poll() is None and not (out.exists() and list(out.iterdir())):
        time.sleep(0.01)


def test_ctrl_c_leaves_a_valid_report_marked_as_partial(program, tmp_path):
    many_pairs(tmp_path, 8000)
    process = subprocess.Popen(
        [program, "llm", "compare", "-gp", "g", "-mp", "m", "-o", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_start(process, tmp_path / "out")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped" in stderr
    rows = read_report(tmp_path / "out", "ait_cmp_report_*_partial.csv")
    assert 0 < len(rows) < 8000
    assert list(rows) == [f"{i}.npy" for i in range(len(rows))]
    assert sorted(p.suffix for p in (tmp_path / "out").iterdir()) == [".csv", ".rows"]


def test_a_killed_comparison_leaves_no_report_and_the_next_works(program, ait, tmp_path):
    many_pairs(tmp_path, 2000)
    process = subprocess.Popen(
        [program, "llm", "compare", "-gp", "g", "-mp", "m", "-o", "out"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for_start(process, tmp_path / "out")
    process.kill()
    process.wait()
    assert not [p for p in (tmp_path / "out").iterdir() if not p.name.startswith(".")]
    for side in ("g", "m"):
        for i in range(3, 2000):
            (tmp_path / side / f"{i}.npy").unlink()
    assert ait("llm", "compare", "-gp", "g", "-mp", "m", "-o", "out").returncode == 0
    assert len(read_report(tmp_path / "out")) == 3
