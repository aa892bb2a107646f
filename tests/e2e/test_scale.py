"""Many pairs and large ones: complete rows, in order, in bounded memory."""

import csv
import json
import os
import subprocess
import threading
import time

import numpy as np
import pytest
from conftest import atb_bin

MAX_ANONYMOUS_KIB = 300 * 1024

pytestmark = pytest.mark.slow


def run_watched(command, cwd):
    """Runs to the end; returns stdout and the peak of anonymous memory in KiB."""
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    peak = [0]

    def watch():
        while process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/status") as status:
                    peak[0] = max(peak[0], *(int(line.split()[1]) for line in status if line.startswith("RssAnon:")))
            except (OSError, TypeError):
                return
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate(timeout=600)
    watcher.join()
    assert process.returncode == 0
    return out, peak[0]


def test_a_hundred_thousand_pairs(program, tmp_path):
    count = 100_000
    random = np.random.default_rng(0)
    array = random.standard_normal(8192).astype(np.float16)
    for side, factor in (("g", 1.0), ("m", 1.01)):
        (tmp_path / side).mkdir()
        np.save(tmp_path / f"{side}.npy", array * np.float16(factor))
        content = (tmp_path / f"{side}.npy").read_bytes()
        for i in range(count):
            (tmp_path / side / f"{i}.npy").write_bytes(content)
    (tmp_path / "m/777.npy").unlink()
    (tmp_path / "m/888.npy").write_bytes(b"junk")
    out, peak = run_watched([program, "llm", "compare", "-gp", "g", "-mp", "m", "-o", "out", "--json"], tmp_path)
    document = json.loads(out)
    assert document["summary"] == {
        "rows": count,
        "identical": 0,
        "differing": count - 2,
        "failed": 1,
        "only_golden": 1,
        "only_my": 0,
    }
    with open(tmp_path / document["report"], newline="") as file:
        ids = [row["data_id"] for row in csv.DictReader(file)]
    assert ids == [f"{i}.npy" for i in range(count)]
    assert peak < MAX_ANONYMOUS_KIB


@pytest.mark.parametrize("last", [0.0, 1.0])
def test_one_pair_of_twenty_gigabytes(program, tmp_path, last):
    elements = 10 * 2**30  # float16: 20 GiB a side, sparse on disk
    for side, value in (("g", 0.0), ("m", last)):
        path = tmp_path / f"{side}.npy"
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f2", "fortran_order": False, "shape": (elements,)})
            start = file.tell()
            os.truncate(file.fileno(), start + 2 * elements)
            file.seek(start + 2 * elements - 2)
            file.write(np.float16(value).tobytes())
    out, peak = run_watched(
        [program, "llm", "compare", "-gp", "g.npy", "-mp", "m.npy", "--json", "--extended"], tmp_path
    )
    (row,) = json.loads(out)["rows"]
    assert row["elements"] == elements
    assert row["differing_elements"] == (1 if last else 0)
    assert row["identical"] is (not last)
    if last:
        assert row["worst_index"] == elements - 1 and row["max_absolute_error"] == 1.0
    assert peak < MAX_ANONYMOUS_KIB


def test_thousands_of_tensors_without_layers(program, tmp_path):
    golden_count, my_count = 4000, 8000
    random = np.random.default_rng(0)
    rank = tmp_path / "torch/torch_tensors/cpu_7"
    library = tmp_path / "library/tensors/0_7/0"
    goldens = random.standard_normal((golden_count, 1, 6, 64)).astype(np.float32)
    for i, golden in enumerate(goldens):
        (rank / f"0/root.m{i}").mkdir(parents=True)
        np.save(rank / f"0/root.m{i}/output.npy", golden)
    modules = [{"name": f"root.m{i}", "type": "Linear", "order": i + 1, "children": []} for i in range(golden_count)]
    (rank / "model_tree.json").write_text(json.dumps({"name": "root", "type": "M", "order": 0, "children": modules}))
    for i in range(my_count):
        actual = goldens[i // 2][0] * 1.001 if i % 2 == 0 else random.standard_normal((6, 64))
        (library / f"{i}_LinearOperation/after").mkdir(parents=True)
        (library / f"{i}_LinearOperation/after/outtensor0.bin").write_bytes(atb_bin(actual.astype(np.float32), 0))
    start = time.monotonic()
    out, peak = run_watched([program, "llm", "compare", "-gp", "torch", "-mp", "library", "-o", "out"], tmp_path)
    assert time.monotonic() - start < 100
    assert f"{golden_count} of {my_count} operations paired" in out
    assert "too many to compare all with all" in out
    assert peak < MAX_ANONYMOUS_KIB


def test_forty_layers_of_fifty_tokens_on_eight_ranks(program, tmp_path):
    """81,200 rows of 325,000 folders: what repeats is stored and decided once, so that memory does not grow with it."""
    ranks, tokens = 8, 50
    work = ["RmsNormOperation", "LinearOperation", "SelfAttentionOperation", "LinearOperation"]
    layers = [f"{number}_Layer" for number in range(1, 41)]
    inside = [f"{layer}/{i}_{each}" for layer in layers for i, each in enumerate(work)]
    operations = ["0_WordEmbedding", *layers, *inside, "41_RmsNormOperation", "42_LmHead"]
    for side, factor in (("golden", 1.0), ("mine", 1.001)):
        random = np.random.default_rng(0)
        content = tmp_path / f"{side}_content"
        content.mkdir()
        for i in range(len(operations)):
            (content / str(i)).write_bytes(atb_bin((random.standard_normal((1, 64)) * factor).astype(np.float32), 0))
        for rank in range(ranks):
            for token in range(tokens):
                folder = tmp_path / side / f"tensors/{rank}_77/{token}"
                folder.mkdir(parents=True)
                for i, operation in enumerate(operations):
                    os.makedirs(f"{folder}/{operation}/after")
                    os.link(content / str(i), f"{folder}/{operation}/after/outtensor0.bin")
    out, peak = run_watched(
        [program, "llm", "compare", "-gp", "golden", "-mp", "mine", "-o", "out", "--json"], tmp_path
    )
    document = json.loads(out)
    assert document["summary"]["rows"] == document["summary"]["differing"] == ranks * tokens * len(operations)
    assert peak < 64 * 1024
