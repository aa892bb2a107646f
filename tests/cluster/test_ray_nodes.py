"""Runs that are spread over the nodes of a cluster: listed there, compared where they are, and the same report."""

import errno
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
    found = nodes.Nodes.find(Connected, [{name: [str(tmp_path)] for name in NODES}])
    pieces = list(nodes.read_files(paths))
    assert max(sum(len(content) for _, content, _ in piece) for piece in pieces) <= nodes.PIECE_BYTES
    errors = found.bring("n1", [*paths, "/nowhere"], str(tmp_path / "copies"))
    assert errors == {"/nowhere": 2}
    for path in paths:
        with open(path, "rb") as file, open(f"{tmp_path}/copies/n1{path}", "rb") as copy:
            assert file.read() == copy.read()
    with pytest.raises(nodes.ClusterError, match="has no node that n9 could mean"):
        nodes.Nodes.find(Connected, [{"n9": ["/x"]}])


class Given:
    """Nodes of which n1 gives these pieces, or is lost."""

    def __new__(cls, pieces=None, folders=()):
        from ait_llm.cluster.nodes import Nodes

        made = Nodes.__new__(Nodes)
        made.ids, made._folders = {"n0": "0", "n1": "1"}, list(folders)
        made.own = lambda: "n0"
        made.is_alive = lambda name: pieces is not None
        made._pieces = lambda *_: iter(pieces)
        return made


def test_a_file_that_fails_in_the_middle_is_not_glued_to_the_next(tmp_path):
    pieces = [[(0, b"begun", False)], [(0, errno.EIO, True), (1, b"whole", True), (2, errno.EACCES, True)]]
    Given(pieces).bring_all(["n1:/d/x", "n1:/d/y", "n1:/d/z", "n0:/d/x"], str(tmp_path))
    assert sorted(os.listdir(tmp_path / "n1/d")) == ["x", "y", "z"] and not (tmp_path / "n0").exists()
    assert (tmp_path / "n1/d/y").read_bytes() == b"whole"
    assert os.readlink(tmp_path / "n1/d/x") == f" {errno.EIO}" and os.readlink(tmp_path / "n1/d/z") == " 13"


def test_files_of_a_lost_node_are_not_read_where_another_has_its_own(tmp_path):
    from ait_llm.cluster.nodes import FileServer

    nodes = Given(folders=[("n0", "/local/dump"), ("n1", "/local/dump"), ("n1", "/shared/n1")])
    nodes.bring_all(["n1:/local/dump/x", "n1:/shared/n1/x", "n1:/local/dumps/x"], str(tmp_path))
    assert os.listdir(tmp_path) == ["n1"] and os.listdir(tmp_path / "n1") == ["local"]
    assert os.listdir(tmp_path / "n1/local") == ["dump"]
    assert os.readlink(tmp_path / "n1/local/dump/x") == f" {errno.EHOSTDOWN}"
    server = FileServer(nodes)
    assert server.answer("n1:/local/dump/x") == f" {errno.EHOSTDOWN}"
    assert server.answer("n1:/shared/n1/x") == "/shared/n1/x"
    server.close()


def test_what_cannot_be_listed_is_said_and_the_rest_is_there(tmp_path, capsys, monkeypatch):
    from ait_llm.cluster import nodes

    for name in ("a", "b", "c"):
        (tmp_path / "dump" / name).mkdir(parents=True)
        (tmp_path / "dump" / name / "x.npy").write_bytes(b"x")
    (tmp_path / "dump/gone.json").symlink_to("/nowhere")
    os.utime(tmp_path / "dump/c", (1000, 1000))
    found, listed = os.scandir, tmp_path / "listed"

    def scandir(path):
        if str(path).endswith("/dump/b"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return found(path)

    monkeypatch.setattr(os, "scandir", scandir)
    given = Given()
    given._pieces = lambda name, method, folder: nodes.list_folder(folder)
    given.list_into("n1", str(tmp_path / "dump"), str(listed))
    monkeypatch.undo()
    assert f"ait: warning: n1:{tmp_path}/dump/b: cannot be listed: Permission denied" in capsys.readouterr().err
    assert sorted(str(path.relative_to(listed)) for path in listed.rglob("*")) == (
        ["a", "a/x.npy", "b", "c", "c/x.npy", "gone.json"]
    )
    assert (listed / "c").stat().st_mtime == 1000
    assert os.readlink(listed / "gone.json") == f"0 n1:{tmp_path}/dump/gone.json"


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
