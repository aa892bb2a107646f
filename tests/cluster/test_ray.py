"""`ait llm compare --on ray`: what one process would have written, byte for byte, whatever becomes of the nodes."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import PROGRAM, add_node
from parts import document_of, plain_folders, report_of


def many_pairs(root, pairs):
    """Links to a few files of every kind, which the disk has room for."""
    golden, mine = plain_folders(root / "kinds", pairs=200)
    for side, kinds in (("golden", golden), ("mine", mine)):
        (root / side).mkdir()
        names = sorted(kinds.iterdir())
        for i in range(pairs):
            name = names[i % len(names)]
            os.link(name, root / side / f"{i // len(names)}_{name.name}")
    return ["-gp", "golden", "-mp", "mine"]


def wait_for_parts(folder, count, process):
    """The parts that the coordinator has so far, once they are so many."""
    while process.poll() is None:
        parts = list(folder.glob(".ait_parts_*/*.part"))
        if len(parts) >= count:
            return parts
        time.sleep(0.01)
    raise AssertionError(f"it ended before {count} parts were there: {process.communicate()}")


def assert_same(tmp_path, one, other):
    assert one.returncode == other.returncode == 0, (one.stderr, other.stderr)
    assert report_of(tmp_path / "ray").read_bytes() == report_of(tmp_path / "alone").read_bytes()
    assert document_of(one) == document_of(other)
    assert not list((tmp_path / "ray").glob(".ait_parts_*"))


def test_a_cluster_of_four_nodes_is_as_one_process(cluster, ait, tmp_path):
    arguments = many_pairs(tmp_path, 10_000)
    alone = ait("llm", "compare", *arguments, "-o", "alone", "--json")
    assert_same(
        tmp_path,
        ait("llm", "compare", *arguments, "-o", "ray", "--json", "--on", "ray", "--address", cluster.address),
        alone,
    )


def test_two_hundred_thousand_pairs_with_a_node_killed_and_one_that_joins_late(cluster, ait, start, tmp_path):
    arguments = many_pairs(tmp_path, 200_000)
    alone = ait("llm", "compare", *arguments, "-o", "alone", "--json")
    process = start("llm", "compare", *arguments, "-o", "ray", "--json", "--on", "ray", address=cluster.address)
    wait_for_parts(tmp_path / "ray", 2, process)
    cluster.remove_node(cluster.by_name.pop("n3"), allow_graceful=False)
    wait_for_parts(tmp_path / "ray", 4, process)
    add_node(cluster, "n3")
    out, err = process.communicate(timeout=1200)
    assert_same(tmp_path, subprocess.CompletedProcess((), process.returncode, out, err), alone)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_stops_it_has_a_valid_partial_report_and_the_parts(cluster, start, ait, tmp_path, number):
    arguments = many_pairs(tmp_path, 100_000)
    alone = ait("llm", "compare", *arguments, "-o", "alone", "--json")
    process = start("llm", "compare", *arguments, "-o", "ray", "--on", "ray", address=cluster.address)
    wait_for_parts(tmp_path / "ray", 2, process)
    stop(process, number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    report = report_of(tmp_path / "ray")
    assert "_partial" in report.name and "is in the partial report" in err
    rows = report.read_text().splitlines()
    missing = [row for row in rows if "is missing." in row]
    assert 0 < len(missing) < len(rows) - 1
    assert ait("locate", "ray").returncode == 0
    assert not list((tmp_path / "ray").glob(".ait_parts_*"))
    # What is missing can be compared later, where the message says.
    (kept,) = (tmp_path / "ray").glob("ait_parts_*")
    assert f"{kept.relative_to(tmp_path)}: lacks " in err
    names = {path.name for path in kept.iterdir()}
    (count,) = {int(name.split("_")[3].split(".")[0]) for name in names - {"plan.ait"}}
    for part in range(1, count + 1):
        if f"part_{part}_of_{count}.part" not in names:
            assert ait("llm", "compare", "--from-plan", kept / "plan.ait", "--part", f"{part}/{count}", "-o", kept)
    whole = ait("llm", "compare", "--merge", kept, "-o", "later", "--json")
    assert whole.returncode == 0 and document_of(whole) == document_of(alone)


def test_more_threads_than_any_node_has_are_waited_for_and_can_be_stopped(cluster, start, tmp_path):
    arguments = many_pairs(tmp_path, 300)
    process = start("llm", "compare", *arguments, "-o", "ray", "--on", "ray", "--threads", "7", address=cluster.address)
    said = process.stderr.readline()
    assert "--threads 7 processors, and no node of the Ray cluster has more than 1; waiting" in said
    while not list((tmp_path / "ray").glob(".ait_parts_*/plan.ait")):
        time.sleep(0.01)
    time.sleep(1)
    stop(process, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130 and "stopped before a part was compared; there is no report" in err, err
    assert out == "" and not list((tmp_path / "ray").iterdir())


def test_more_threads_than_this_machine_has_are_refused(ait, tmp_path):
    arguments = many_pairs(tmp_path, 3)
    done = ait("llm", "compare", *arguments, "-o", "ray", "--on", "ray", "--threads", "999")
    assert done.returncode == 2 and done.stderr.splitlines()[-1].endswith("; give fewer"), done.stderr


def stop(process, number):
    """The program passes it on. A batch system tells all processes of a job, so that some hear it twice."""
    if number == signal.SIGTERM:
        os.kill(child_of(process.pid), number)
    process.send_signal(number)


def test_a_part_whose_program_is_killed_is_compared_again(cluster, ait, tmp_path):
    """As by a kernel that is out of memory."""
    arguments = many_pairs(tmp_path, 100)
    assert ait("llm", "compare", *arguments, "--plan", "run.plan").returncode == 0
    killed = tmp_path / "killed"
    program = tmp_path / "ait"
    program.write_text(f'#!/bin/sh\n[ -e {killed} ] || {{ touch {killed}; kill -9 $$; }}\nexec {PROGRAM} "$@"\n')
    program.chmod(0o755)
    script = (
        "import sys, ray; from ait_llm.cluster.parts import compare_part\n"
        "ray.init(address=sys.argv[1], log_to_driver=False)\n"
        "plan = open(sys.argv[2] + '/run.plan', 'rb').read()\n"
        "store, _ = ray.get(compare_part.remote(sys.argv[2] + '/ait', plan, 1, 1, 1, sys.argv[2], None))\n"
        "sys.exit(len(store) < 1000)\n"
    )
    words = [sys.executable, "-c", script, cluster.address, str(tmp_path)]
    assert subprocess.run(words, timeout=300).returncode == 0 and killed.exists()


def child_of(pid):
    (child,) = open(f"/proc/{pid}/task/{pid}/children").read().split()[:1]
    return int(child)


def test_a_cluster_is_started_where_there_is_none(ait, tmp_path):
    """And nothing of the current folder is run by it."""
    arguments = many_pairs(tmp_path, 300)
    for name in ("ait_llm", "argparse", "contextlib", "json", "shutil", "socketserver", "tempfile"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')")
    alone = ait("llm", "compare", *arguments, "-o", "alone", "--json")
    assert_same(tmp_path, ait("llm", "compare", *arguments, "-o", "ray", "--json", "--on", "ray"), alone)
    assert not (tmp_path / "ran").exists()


def test_a_cluster_that_is_not_there_is_named(ait, tmp_path):
    arguments = many_pairs(tmp_path, 3)
    done = ait("llm", "compare", *arguments, "-o", "ray", "--on", "ray", "--address", "127.0.0.1:1")
    assert done.returncode == 2 and "127.0.0.1:1" in done.stderr.splitlines()[-1], done.stderr


def test_what_cannot_be_planned_ends_with_its_own_words(cluster, ait, tmp_path):
    done = ait(
        "llm", "compare", "-gp", "nowhere", "-mp", "nowhere", "-o", "ray", "--on", "ray", address=cluster.address
    )
    assert done.returncode == 2 and "nowhere: no such file or folder" in done.stderr


def test_the_line_of_progress_has_rate_nodes_and_time_left():
    from ait_llm.cluster.parts import Progress

    progress = Progress(4, 1000)
    progress.advance(250, 8_000_000_000)
    assert progress.line(2.0, 3) == "[#######-----------------------]  25%  1/4 parts  4.0 GB/s on 3 nodes  6 s left"


def test_nothing_else_imports_ray():
    words = "import sys, ait_llm, ait_llm.cluster.command; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words]).returncode == 0
