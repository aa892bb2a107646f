"""Fifty thousand files of a GE dump: all of them are rows, in bounded memory. bench/run.py measures the time."""

import csv
import json
import os
import sys

import numpy as np
import pytest
from conftest import REPOSITORY
from test_scale import MAX_ANONYMOUS_KIB, run_watched

sys.path.insert(0, str(REPOSITORY / "tests" / "python"))

pytestmark = pytest.mark.slow

FILES = 50_000


@pytest.mark.parametrize("tokens", [1, 50])
def test_fifty_thousand_files(program, tmp_path, tokens):
    ge_files = pytest.importorskip("ge_files")
    count = FILES // tokens
    nodes = [(f"Add_{i}", "Add", [f"Add_{i - 1}:0"], [f"add_{i}-aten.add.Tensor.OUTPUT.0"]) for i in range(count)]
    array = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    for side, factor in (("golden", 1), ("my", 1.01)):
        root = tmp_path / side
        root.mkdir()
        (root / "dynamo_original_graph_1_rank_0_pid_1_ts_1.txt").write_text(ge_files.graph_text("graph_1", nodes))
        # Without a name in its header, an operation has that of its file, so that one file serves all.
        one = ge_files.write(tmp_path / f"{side}.dump", "", [array], [array * np.float32(factor)])
        for token in range(tokens):
            folder = root / f"20240125031118/0/graph_1/1/{token}"
            folder.mkdir(parents=True)
            for i in range(count):
                os.link(one, folder / f"Add.Add_{i}.1.6.{10**15 + token * count + i}")
    (tmp_path / "my/20240125031118/0/graph_1/1/0/Add.Add_77.1.6.1000000000000077").unlink()
    command = [program, "llm", "compare", "-gp", "golden", "-mp", "my", "-o", "out", "--json"]
    out, peak = run_watched(command, tmp_path)
    document = json.loads(out)
    alone = 1 if tokens == 1 else 2
    assert document["summary"]["rows"] == 2 * FILES - 2 + alone
    assert document["summary"]["identical"] == FILES - 1
    assert document["summary"]["differing"] == FILES - 1
    assert document["summary"]["only_golden"] == alone
    assert peak < MAX_ANONYMOUS_KIB
    with open(tmp_path / document["report"], newline="") as file:
        ids = [(row["token_id"], row["data_id"]) for row in csv.DictReader(file) if row["my_data_path"]]
    assert ids == [
        (str(token), f"Add_{i}/{tensor}_0")
        for token in range(tokens)
        for i in range(count)
        for tensor in ("input", "output")
        if (token, i) != (0, 77)
    ]
