"""The plan, its parts on the cluster, and the report of them."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ait_llm.cluster.engine import Cluster
    from ait_llm.cluster.nodes import Nodes

INTERRUPTED = 130
CANNOT = 2
PLAN = "plan.ait"
"""Where `--merge` looks for it among the parts."""


def complain(words: str) -> int:
    print(f"ait: error: {words}", file=sys.stderr)
    return CANNOT


def stop_on_sigterm() -> None:
    """Slurm and Kubernetes end a job by it; what is done is to be kept, as after Ctrl-C. It may come twice: from
    them, and from the native program, which passes it on."""

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    made = argparse.ArgumentParser(prog="ait llm compare --on ray", description=__doc__)
    made.add_argument("--program", required=True)
    made.add_argument("--address")
    made.add_argument("--output", default="")
    made.add_argument("--html")
    made.add_argument("--threads", type=int, default=0)
    made.add_argument("--json", action="store_true")
    made.add_argument("--explain", action="store_true")
    split = list(arguments).index("--")
    given = made.parse_args(arguments[:split])
    given.planned = list(arguments[split + 1 :])
    given.printed = None
    return given


def main(arguments: Sequence[str]) -> int:
    given = parse(arguments)
    try:
        from ray import init  # noqa: F401  (a folder of that name is no Ray)
    except ImportError:
        return complain(
            f"--on ray needs Ray, which {sys.executable} does not have; install it there with: "
            "pip install 'ait-llm[cluster]'"
        )
    # Ray says on standard output what becomes of nodes; there, only the report is to be.
    given.printed = os.dup(1)
    os.dup2(2, 1)
    stop_on_sigterm()
    try:
        return run(given)
    except KeyboardInterrupt:
        return INTERRUPTED


def run(given: argparse.Namespace) -> int:
    from ait_llm.cluster.engine import Cluster, ClusterError

    where = given.output or "."
    try:
        os.makedirs(where, mode=0o750, exist_ok=True)
        folder = tempfile.mkdtemp(prefix=".ait_parts_", dir=where)
    except OSError as error:
        return complain(f"{where}: cannot be written: {error.strerror}")
    try:
        with Cluster(given.address, given.program) as cluster:
            stop_on_sigterm()  # Ray would end with the status of --fail-on
            return compare_on(cluster, given, folder)
    except ClusterError as error:
        return complain(str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare_on(cluster: Cluster, given: argparse.Namespace, folder: str) -> int:
    """Plans, compares and merges."""
    from ait_llm.cluster.nodes import FileServer, Nodes

    cluster.check_threads(given.threads or 1)
    maps = maps_of(given.planned)
    if not maps:
        return compare(given, cluster, folder)
    nodes = Nodes.find(cluster, maps.values())
    server = FileServer(nodes)
    try:
        listings = os.path.join(folder, "listings")
        for side, folders in maps.items():
            places = [(name, path) for name, paths in folders.items() for path in paths]
            for number, (name, path) in enumerate(places):
                nodes.list_into(name, os.path.normpath(path), os.path.join(listings, side, str(number)))
        os.environ.update(AIT_NODE_LISTINGS=listings, **server.environment())
        return compare(given, cluster, folder, nodes)
    finally:
        server.close()


def maps_of(planned: list[str]) -> dict[str, dict[str, list[str]]]:
    """Of the two sides, those that a json file names by node."""
    from ait_llm.cluster.nodes import read_map

    out = {}
    for side, option in (("golden", "--golden-path"), ("my", "--my-path")):
        if option in planned:
            found = read_map(planned[planned.index(option) + 1])
            if found:
                out[side] = found
    return out


def compare(given: argparse.Namespace, cluster: Cluster, folder: str, nodes: Nodes | None = None) -> int:
    from ait_llm.cluster.parts import compare_parts

    plan = os.path.join(folder, PLAN)
    words = [given.program, "llm", "compare", *given.planned, "--plan", plan, "--json"]
    made = subprocess.run(words, stdout=subprocess.PIPE)
    if made.returncode != 0:
        return made.returncode
    sizes = json.loads(made.stdout)
    ended = compare_parts(cluster, plan, folder, sizes["pairs"], sizes["bytes"], given.threads or 1, nodes)
    if ended.compared == 0:
        why = "stopped before a part was compared" if ended.stopped else "no part was compared, for the reasons above"
        cannot = complain(f"{why}; there is no report")
        return INTERRUPTED if ended.stopped else cannot
    if ended.compared < ended.parts:
        folder = keep_parts(folder)
        if ended.stopped:
            print("ait: warning: stopped: what was compared so far is in the partial report", file=sys.stderr)
    merged = merge(given, folder)
    return INTERRUPTED if ended.stopped else merged


def keep_parts(folder: str) -> str:
    """Where the parts of a partial report are from now on: the missing ones may be compared later."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        elif name != PLAN and not name.endswith(".part"):
            os.unlink(path)
    where, name = os.path.split(folder)
    kept = os.path.join(where, name.lstrip("."))
    os.rename(folder, kept)
    return kept


def merge(given: argparse.Namespace, folder: str) -> int:
    words = [given.program, "llm", "compare", "--merge", folder]
    words += ["--output", given.output] if given.output else []
    words += ["--html", given.html] if given.html else []
    words += [f"--{name}" for name in ("json", "explain") if getattr(given, name)]
    return subprocess.run(words, stdout=given.printed).returncode
