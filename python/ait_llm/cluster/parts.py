"""Parts of a plan as tasks of Ray."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ait_llm.cluster.engine import Cluster, ClusterError, PartLostError
from ait_llm.cluster.nodes import Nodes, last_line

PART_BYTES = 4 << 30
PART_PAIRS = 20_000
"""A part's rows travel as one object: a few megabytes."""
LEAST_BYTES = 64 << 20
LEAST_PAIRS = 256
"""Less than these is not worth a task of its own, but for one on each processor."""
PARTS_PER_PROCESSOR = 6
"""So that all processors end at about the same time."""
AHEAD = 2
"""Parts under way for each processor: one that is compared and one that waits."""
RETRIES = 5
"""Of a part whose node or process is lost."""
LOOK_SECONDS = 0.5
DRAWN_AFTER_SECONDS = 1.0


def number_of_parts(pairs: int, size: int, processors: int, threads: int) -> int:
    slots = max(1, processors // threads)
    most = max(-(-size // PART_BYTES), -(-pairs // PART_PAIRS))
    worth = max(-(-size // LEAST_BYTES), -(-pairs // LEAST_PAIRS))
    return max(1, min(max(most, slots, min(PARTS_PER_PROCESSOR * slots, worth)), pairs))


def program_here(wanted: str) -> str:
    """The native program of this node: where the coordinator has it, or the one on PATH."""
    if os.access(wanted, os.X_OK):
        return wanted
    return shutil.which("ait") or os.path.join(sys.prefix, "bin", "ait")


@ray.remote(max_retries=RETRIES, retry_exceptions=[PartLostError])
def compare_part(
    program: str, plan: bytes, part: int, parts: int, threads: int, where: str, nodes: Nodes | None
) -> tuple[bytes, int]:
    """The store of the part, and how many bytes it compared. `where`: the folder that relative paths are meant from."""
    with tempfile.TemporaryDirectory(prefix="ait_part_") as folder:
        path = os.path.join(folder, "plan")
        with open(path, "wb") as file:
            file.write(plan)
        program = program_here(program)
        words = [program, "llm", "compare", "--from-plan", path, "--part", f"{part}/{parts}"]
        environment = dict(os.environ)
        if nodes is not None:
            files = subprocess.run([*words, "--files"], stdout=subprocess.PIPE, check=True).stdout
            brought = os.path.join(folder, "files")
            try:
                nodes.bring_all(map(os.fsdecode, files.splitlines()), brought)
            except RayError as error:
                raise PartLostError(last_line(error)) from None
            environment.pop("AIT_NODE_SOCKET", None)  # that of the coordinator
            environment.update(AIT_NODE=nodes.own(), AIT_NODE_FILES=brought)
        words += ["-o", folder, "--threads", str(threads), "--json"]
        where = where if os.path.isdir(where) else folder
        done = subprocess.run(words, capture_output=True, cwd=where, env=environment)
        if done.returncode < 0:  # as by a kernel that is out of memory
            raise PartLostError(f"{program} was ended by signal {-done.returncode}")
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1])
        about = json.loads(done.stdout)
        with open(about["store"], "rb") as file:
            return file.read(), about["bytes"]


@ray.remote
def nothing() -> None:
    time.sleep(LOOK_SECONDS)


def warm_up(processors: int) -> None:
    """Has so many workers started, for whoever measures what comes after."""
    ray.get([nothing.remote() for _ in range(processors)])


class Cut:
    """The pairs of one part, for the task that compares them."""

    def __init__(self, cluster: Cluster, plan: str, folder: str, part: int, parts: int) -> None:
        path = os.path.join(folder, f"cut_{part}")
        words = ["--from-plan", plan, "--part", f"{part}/{parts}", "--cut", path, "--json"]
        done = subprocess.run([cluster.program, "llm", "compare", *words], stdout=subprocess.PIPE)
        if done.returncode != 0:
            raise ClusterError(f"part {part} of {parts} cannot be cut out of the plan")
        about = json.loads(done.stdout)
        self.pairs: int = about["pairs"]
        self.bytes: int = about["bytes"]
        self.nodes: dict[str, int] = about["nodes"]
        with open(path, "rb") as file:
            self.plan = file.read()
        os.unlink(path)


def keep(store: bytes, folder: str, part: int, parts: int) -> None:
    """As a part of `--from-plan` would be: whole or not at all."""
    name = f"part_{part}_of_{parts}.part"
    with open(os.path.join(folder, f".{name}.tmp"), "wb") as file:
        file.write(store)
    os.rename(file.name, os.path.join(folder, name))


class Progress:
    """As that of the native program: a line on a terminal, after a second."""

    def __init__(self, parts: int, size: int) -> None:
        self._parts, self._size = parts, size
        self._done = self._bytes = self._compared = 0
        self._start = time.monotonic()
        self._drawn = False

    def advance(self, planned: int, compared: int) -> None:
        self._done += 1
        self._bytes += planned
        self._compared += compared

    def draw(self, nodes: int) -> None:
        seconds = time.monotonic() - self._start
        if sys.stderr.isatty() and seconds > DRAWN_AFTER_SECONDS:
            self._drawn = True
            sys.stderr.write(f"\r{self.line(seconds, nodes)}\033[K")
            sys.stderr.flush()

    def line(self, seconds: float, nodes: int) -> str:
        """ "[######----]  60%  12/20 parts  4.2 GB/s on 4 nodes  12 s left" """
        share = self._bytes / self._size if self._size else self._done / self._parts
        bar = "#" * int(share * 30)
        text = f"[{bar:-<30}] {share:4.0%}  {self._done}/{self._parts} parts  {self._compared / seconds / 1e9:.1f} GB/s"
        text += f" on {nodes} node{'' if nodes == 1 else 's'}"
        return text + (f"  {round(seconds * (1 / share - 1))} s left" if 0 < share < 1 else "")

    def clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\033[K")


class Parts:
    """All parts of a plan on their way through a cluster, no more of them at a time than it is busy with."""

    def __init__(
        self, cluster: Cluster, plan: str, folder: str, parts: int, size: int, threads: int, nodes: Nodes | None
    ) -> None:
        self._cluster, self._plan, self._folder, self._nodes = cluster, plan, folder, nodes
        self._parts, self._threads = parts, threads
        self._under_way: dict[Any, tuple[int, int]] = {}  # part and its bytes
        self._progress = Progress(parts, size)
        self.failed: list[str] = []
        self.compared = 0

    def run(self) -> None:
        left = iter(range(1, self._parts + 1))
        exhausted = False
        try:
            while True:
                room = AHEAD * -(-self._cluster.processors() // self._threads)
                while not exhausted and len(self._under_way) < room:
                    part = next(left, None)
                    exhausted = part is None
                    if part is not None:
                        self._submit(part)
                if not self._under_way:
                    break
                self._collect()
                self._progress.draw(len(self._cluster.nodes()))
        finally:
            self._progress.clear()
            for reference in self._under_way:
                ray.cancel(reference, force=True)

    def _submit(self, part: int) -> None:
        cut = Cut(self._cluster, self._plan, self._folder, part, self._parts)
        task = compare_part.options(num_cpus=self._threads, scheduling_strategy=self._place(cut))
        where = os.getcwd()
        reference = task.remote(self._cluster.program, cut.plan, part, self._parts, self._threads, where, self._nodes)
        self._under_way[reference] = (part, cut.bytes)

    def _place(self, cut: Cut) -> Any:
        """The node that has most of a part's bytes, as long as there is one; else anywhere."""
        if self._nodes is None or not cut.nodes:
            return "SPREAD"
        most = max(cut.nodes, key=lambda name: cut.nodes[name])
        return NodeAffinitySchedulingStrategy(self._nodes.ids[most], soft=True)

    def _collect(self) -> None:
        ready, _ = ray.wait(list(self._under_way), timeout=LOOK_SECONDS)
        for reference in ready:
            part, size = self._under_way.pop(reference)
            try:
                store, compared = ray.get(reference)
            except RayError as error:
                self.failed.append(f"part {part} of {self._parts}: {last_line(error)}")
                continue
            keep(store, self._folder, part, self._parts)
            self.compared += 1
            self._progress.advance(size, compared)


class Ended(NamedTuple):
    """How the comparing of all parts ended."""

    stopped: bool
    compared: int
    parts: int


def compare_parts(
    cluster: Cluster, plan: str, folder: str, pairs: int, size: int, threads: int, nodes: Nodes | None = None
) -> Ended:
    """Puts the stores of all parts into the folder, until somebody stops it."""
    count = number_of_parts(pairs, size, cluster.processors(), threads)
    parts = Parts(cluster, plan, folder, count, size, threads, nodes)
    stopped = False
    try:
        parts.run()
    except KeyboardInterrupt:
        stopped = True
    for words in parts.failed[:5]:
        print(f"ait: warning: {words}", file=sys.stderr)
    return Ended(stopped, parts.compared, count)
