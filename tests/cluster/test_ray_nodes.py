"""Runs that are spread over the nodes of a cluster: listed there, compared where they are, and the same report."""

import json
import os
import subprocess

import pytest
import ray
from conftest import add_node
from node_runs import sharded_case, spread, spread_folders
from parts import document_of, plain_folders, report_of
from test_ray import assert_same, many_pairs, wait_for_parts

NODES = ["n0", "n1", "n2", "n3"]


@pytest.fixture
def connected(cluster):
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()


def test_files_come_whole_from_their_node_in_bounded_pieces(connected, tmp_path):
    from ait_llm.cluster import nodes

    class Connected:
        nodes = staticmethod(lambda: [node for node in ray.nodes() if node["Alive"]])

    files = {"large": 2 * nodes.PIECE_BYTES + 5, "empty": 0, **{f"small_{i}": 1000 + i for i in range(300)}}
    for name, size in files.items():
        (tmp_path / name).write_bytes(os.urandom(size))
    paths = [str(tmp_path / name) for name in files]
    found = nodes.Nodes.find(Connected, NODES)
    pieces = list(nodes.read_files(paths))
    assert max(sum(len(content) for _, content, _ in piece) for piece in pieces) <= nodes.PIECE_BYTES
    errors = found.bring("n1", [*paths, "/nowhere"], str(tmp_path / "copies"))
    assert errors == {"/nowhere": 2}
    for path in paths:
        with open(path, "rb") as file, open(f"{tmp_path}/copies/n1{path}", "rb") as copy:
            assert file.read() == copy.read()
    with pytest.raises(nodes.ClusterError, match="has no node that n9 could mean"):
        nodes.Nodes.find(Connected, ["n9"])


def test_shards_of_a_dump_on_three_nodes(cluster, ait, tmp_path):
    pytest.importorskip("transformers")
    mine, golden = spread(sharded_case(tmp_path / "case"), tmp_path)
    arguments = ["-gp", golden, "-mp", mine, "--extended"]
    alone = ait("llm", "compare", *arguments, "-o", "alone", "--json")
    found = ait("llm", "compare", *arguments, "-o", "ray", "--json", "--on", "ray", address=cluster.address)
    assert_same(tmp_path, found, alone)
    assert json.loads(found.stdout)["summary"]["rows"] > 30


def test_two_hundred_thousand_pairs_on_four_nodes_with_one_killed_and_one_late(cluster, ait, start, tmp_path):
    many_pairs(tmp_path / "all", 200_000)
    maps = spread_folders(tmp_path / "all/golden", tmp_path / "all/mine", tmp_path, NODES)
    arguments = ["-gp", maps[0], "-mp", maps[1]]
    alone = ait("llm", "compare", *arguments, "-o", "alone", "--json")
    process = start("llm", "compare", *arguments, "-o", "ray", "--json", "--on", "ray", address=cluster.address)
    wait_for_parts(tmp_path / "ray", 2, process)
    cluster.remove_node(cluster.by_name.pop("n3"), allow_graceful=False)
    wait_for_parts(tmp_path / "ray", 4, process)
    add_node(cluster, "n3")
    out, err = process.communicate(timeout=1200)
    assert_same(tmp_path, subprocess.CompletedProcess((), process.returncode, out, err), alone)


def test_files_on_four_nodes(cluster, ait, tmp_path):
    golden, mine = plain_folders(tmp_path / "all", pairs=2000)
    maps = spread_folders(golden, mine, tmp_path, NODES)
    arguments = ["-gp", maps[0], "-mp", maps[1]]
    alone = ait("llm", "compare", *arguments, "-o", "alone", "--json")
    found = ait("llm", "compare", *arguments, "-o", "ray", "--json", "--on", "ray", address=cluster.address)
    assert_same(tmp_path, found, alone)
    assert document_of(found)["summary"]["failed"] > 10
    assert b"n3:/" in report_of(tmp_path / "ray").read_bytes()


def test_a_node_that_the_cluster_does_not_have_is_named(cluster, ait, tmp_path):
    (tmp_path / "map.json").write_text(json.dumps({"n17": ["/x"]}))
    done = ait(
        "llm", "compare", "-gp", "map.json", "-mp", "map.json", "-o", "ray", "--on", "ray", address=cluster.address
    )
    assert done.returncode == 2 and "has no node that n17 could mean" in done.stderr.splitlines()[-1]
