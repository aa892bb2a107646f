"""Runs that are spread over nodes, named by a json file, where this machine sees all folders. On a cluster:
tests/cluster/test_ray_nodes.py."""

import csv
import errno
import json
import os
import pathlib
import shutil

import pytest
from conftest import error_line
from node_runs import sharded_case, spread, spread_folders, write_map
from parts import in_one, in_parts, plain_folders, report_of

MSPROBE = pathlib.Path(__file__).resolve().parents[1] / "data/msprobe"


def rows_of(folder):
    with report_of(folder).open(newline="") as file:
        return list(csv.DictReader(file))


def test_ranks_of_two_nodes_with_equal_numbers_are_one_run(ait, tmp_path):
    pytest.importorskip("transformers")
    case = sharded_case(tmp_path / "case")
    whole = ait("llm", "compare", "-gp", case.golden, "-mp", case.mine, "-o", "whole", "--extended")
    assert whole.returncode == 0, whole.stderr
    expected = rows_of(tmp_path / "whole")
    assert any("," in row["my_data_path"] or row["my_transform"] for row in expected)
    mine, golden = spread(case, tmp_path)
    arguments = ["-gp", golden, "-mp", mine, "--extended"]
    alone = in_one(ait, tmp_path, arguments)
    assert alone[0] == 0
    found = rows_of(tmp_path / "alone")
    measured = [
        "data_id", "cosine_similarity", "relative_euclidean_distance", "my_transform", "pairing", "cmp_fail_reason"
    ]  # fmt: skip
    assert [[row[name] for name in measured] for row in found] == [[row[name] for name in measured] for row in expected]
    assert all(row["golden_data_path"].startswith(f"n2:{tmp_path}/n2/") for row in found if row["golden_data_path"])
    assert any(row["my_data_path"].startswith(f"n0:{tmp_path}/n0/ait_dump/tensors/0_77/") for row in found)
    assert in_parts(ait, tmp_path, arguments, 4) == alone


def test_folders_of_three_nodes_in_parts(ait, tmp_path):
    golden, mine = plain_folders(tmp_path / "all")
    maps = spread_folders(golden, mine, tmp_path, ["a", "b", "c"])
    arguments = ["-gp", maps[0], "-mp", maps[1]]
    alone = in_one(ait, tmp_path, arguments)
    assert alone[0] == 0 and alone[3]["summary"]["rows"] > 290
    assert in_parts(ait, tmp_path, arguments, 5) == alone
    # Parts are mostly of one node, and say so.
    cut = ait("llm", "compare", "--from-plan", "run.plan", "--part", "1/3", "--cut", "cut", "--json")
    nodes = json.loads(cut.stdout)["nodes"]
    assert max(nodes.values()) > 0.9 * sum(nodes.values())
    files = ait("llm", "compare", "--from-plan", "cut", "--part", "1/3", "--files").stdout.splitlines()
    assert len(files) > 150 and {path.split(":")[0] for path in files} <= {"a", "b", "c"}


def test_dumps_whose_data_are_json_in_parts(ait, tmp_path):
    """As msprobe's statistics: no file of tensors is beside them."""
    arguments = []
    for option, node in (("-gp", "a"), ("-mp", "b")):
        shutil.copytree(MSPROBE / "statistics", tmp_path / node)
        arguments += [option, write_map(tmp_path / f"{node}.json", {node: [str(tmp_path / node)]})]
    alone = in_one(ait, tmp_path, arguments)
    assert alone[0] == 0 and alone[3]["summary"]["rows"] > 10
    paths = {row["my_data_path"] for row in rows_of(tmp_path / "alone")} - {""}
    assert all(path.startswith(f"b:{tmp_path}/b/step0/proc4711/dump.json:") for path in paths)
    assert in_parts(ait, tmp_path, arguments, 3) == alone


def test_json_that_cannot_be_read_does_not_end_the_run(ait, tmp_path):
    golden, mine = plain_folders(tmp_path / "all", pairs=20)
    maps = spread_folders(golden, mine, tmp_path, ["a", "b"])
    (tmp_path / "b/mine/gone.json").symlink_to("/nowhere")
    done = ait("llm", "compare", "-gp", maps[0], "-mp", maps[1], "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "ait_nodes_" not in done.stderr + done.stdout + report_of(tmp_path / "out").read_text()


def test_what_a_node_does_not_give_is_not_read_from_another(ait, tmp_path):
    golden, mine = plain_folders(tmp_path / "all", pairs=20)
    maps = spread_folders(golden, mine, tmp_path, ["a", "b"])
    ait("llm", "compare", "-gp", maps[0], "-mp", maps[1], "-o", "alone")
    ait("llm", "compare", "-gp", maps[0], "-mp", maps[1], "--plan", "run.plan")
    # As the coordinator leaves it where b is lost and a has files of its own under the same paths.
    lost = [path for side in ("golden", "mine") for path in (tmp_path / "b" / side).iterdir()]
    for path in lost:
        os.makedirs(f"{tmp_path}/files/b{path.parent}", exist_ok=True)
        os.symlink(f" {errno.EHOSTDOWN}", f"{tmp_path}/files/b{path}")
    environment = {**os.environ, "AIT_NODE": "a", "AIT_NODE_FILES": str(tmp_path / "files")}
    done = ait("llm", "compare", "--from-plan", "run.plan", "--part", "1/1", "-o", "parts", env=environment)
    assert done.returncode == 0, done.stderr
    assert ait("llm", "compare", "--merge", "parts", "-o", "out").returncode == 0
    rows = [row for row in rows_of(tmp_path / "out") if row["golden_data_path"].startswith("b:")]
    assert len(rows) > 5
    assert all("Host is down" in row["cmp_fail_reason"] for row in rows if row["my_data_path"])
    # Nor does one that is damaged pass for one that is missing.
    (junk,) = (row for row in rows_of(tmp_path / "alone") if row["data_id"] == "13.npy")
    assert "is not a file" not in junk["cmp_fail_reason"] and "13.npy" in junk["cmp_fail_reason"]


@pytest.mark.parametrize(
    ("folders", "words"),
    [
        ({"a": ["relative"]}, "that is not absolute"),
        ({"a:b": ["/x"]}, "names a node"),
        ({"": ["/x"]}, "names a node"),
        ({"a": []}, "names no folder"),
        ({"a": ["/nowhere/at/all"]}, "no such folder, which the map names for a"),
    ],
)
def test_maps_that_make_no_sense(ait, tmp_path, folders, words):
    path = write_map(tmp_path / "map.json", folders)
    assert words in error_line(ait("llm", "compare", "-gp", path, "-mp", path))
