"""Runs that are spread over nodes: listed where they lie, and brought in pieces where they are needed elsewhere."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ait_llm.cluster.engine import Cluster, ClusterError

PIECE_BYTES = 8 << 20
PIECES_AHEAD = 2
READERS = 4
"""Requests that a node answers at a time."""
ENTRIES_AT_ONCE = 10_000
KEPT_JSON_BYTES = 256 << 20
MOST_JSON_AT_ONCE = 16 << 20

NodeMap = dict[str, list[str]]


def read_map(path: str) -> NodeMap | None:
    """As the native program sees it: src/capture/node_map.h. None: it is no such file."""
    if not path.endswith(".json") or not os.path.isfile(path):
        return None
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or not found:
        return None
    lists = [each for each in found.values() if isinstance(each, list)]
    if len(lists) < len(found) or not all(isinstance(folder, str) for each in lists for folder in each):
        return None
    return found


def list_folder(folder: str) -> Iterator[list[tuple[str, int, bytes | None]]]:
    """Every file below: where, its bytes, and what it says if it is json. Folders end with a slash; they have the time
    at which they were written in place of bytes, and why they cannot be listed in place of what they say."""
    entries: list[tuple[str, int, bytes | None]] = []
    said = 0

    def fail(error: OSError) -> None:
        if error.filename == folder:
            raise error
        entries.append((os.path.relpath(error.filename, folder) + "/", 0, os.fsencode(error.strerror or "")))

    for where, folders, files in os.walk(folder, onerror=fail):
        inside = os.path.relpath(where, folder)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        entries += [
            (os.path.join(inside, name) + "/", os.lstat(os.path.join(where, name)).st_mtime_ns, None)
            for name in folders
            if not os.path.islink(os.path.join(where, name))
        ]
        for name in sorted(files):
            if name.startswith("."):
                continue
            path = os.path.join(where, name)
            try:
                size = os.stat(path).st_size
            except OSError:
                size = 0
            content = None
            if name.endswith(".json") and size <= KEPT_JSON_BYTES and os.path.isfile(path):
                with contextlib.suppress(OSError), open(path, "rb") as file:  # whoever opens it says why
                    content = file.read()
                    said += len(content)
            entries.append((os.path.normpath(os.path.join(inside, name)), size, content))
            if len(entries) >= ENTRIES_AT_ONCE or said >= MOST_JSON_AT_ONCE:
                yield entries
                entries, said = [], 0
    yield entries


def read_files(paths: list[str]) -> Iterator[list[tuple[int, bytes | int, bool]]]:
    """Which of the paths, some bytes of it or why there are none (an error number), and whether these are the last."""
    pieces: list[tuple[int, bytes | int, bool]] = []
    held = 0
    for index, path in enumerate(paths):
        try:
            with open(path, "rb") as file:
                left = os.fstat(file.fileno()).st_size
                while True:
                    content = file.read(min(left, PIECE_BYTES - held))
                    left -= len(content)
                    ended = left <= 0 or not content
                    pieces.append((index, content, ended))
                    held += len(content)
                    if held >= PIECE_BYTES or len(pieces) >= ENTRIES_AT_ONCE:
                        yield pieces
                        pieces, held = [], 0
                    if ended:
                        break
        except OSError as error:
            pieces.append((index, error.errno or errno.EIO, True))
    yield pieces


class Reader:
    """One on each node: a task for each request would start a process for it."""

    def list_folder(self, folder: str) -> Iterator[list[tuple[str, int, bytes | None]]]:
        yield from list_folder(folder)

    def read_files(self, paths: list[str]) -> Iterator[list[tuple[int, bytes | int, bool]]]:
        yield from read_files(paths)


RemoteReader: Any = ray.remote(num_cpus=0, max_concurrency=READERS)(Reader)


class Nodes:
    """Which node of the cluster has the files of which name. It can be sent to tasks."""

    def __init__(self, ids: dict[str, str], folders: list[tuple[str, str]]) -> None:
        self.ids = ids
        self._folders = folders  # of which name
        self._readers = {
            name: RemoteReader.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(identity, soft=False)
            ).remote()
            for name, identity in ids.items()
        }

    @staticmethod
    def find(cluster: Cluster, maps: Iterable[NodeMap]) -> Nodes:
        """By its name, host, address, or a resource that it alone has."""
        ids = {}
        alive = cluster.nodes()
        folders = [(name, os.path.normpath(path)) for each in maps for name in each for path in each[name]]
        for name in dict.fromkeys(name for name, _ in folders):
            found = [
                node["NodeID"]
                for node in alive
                if name in (node["NodeName"], node["NodeManagerHostname"], node["NodeManagerAddress"])
                or name in node["Resources"]
            ]
            if len(found) != 1:
                which = "has no node" if not found else "has several nodes"
                raise ClusterError(
                    f"the Ray cluster {which} that {name} could mean; a map names a node by its name, host, address, "
                    "or a resource that it alone has"
                )
            ids[name] = found[0]
        return Nodes(ids, folders)

    def _pieces(self, name: str, method: str, argument: Any) -> Iterator[Any]:
        """What a reader gives, not many pieces ahead of who takes them."""
        options = {"num_returns": "streaming", "_generator_backpressure_num_objects": PIECES_AHEAD}
        for reference in getattr(self._readers[name], method).options(**options).remote(argument):
            yield ray.get(reference)

    def own(self) -> str:
        """The name of the node that this is called on; empty: it has none."""
        here = ray.get_runtime_context().get_node_id()
        return next((name for name, identity in self.ids.items() if identity == here), "")

    def is_alive(self, name: str) -> bool:
        return any(node["NodeID"] == self.ids[name] and node["Alive"] for node in ray.nodes())

    def others_have(self, name: str, path: str) -> bool:
        """Whether another node has files of its own there: they are not those of a node that is lost."""
        return any(other != name and f"{path}/".startswith(folder.rstrip("/") + "/") for other, folder in self._folders)

    def list_into(self, name: str, folder: str, into: str) -> None:
        """Links as the native program makes of a folder of its own."""
        os.makedirs(into, exist_ok=True)
        times = {}
        try:
            for entries in self._pieces(name, "list_folder", folder):
                for inside, size, content in entries:
                    path = os.path.join(into, inside)
                    if inside.endswith("/") and content is None:
                        os.makedirs(path, exist_ok=True)
                        times[path] = size
                    elif inside.endswith("/"):
                        where = f"{name}:{os.path.join(folder, inside[:-1])}"
                        print(f"ait: warning: {where}: cannot be listed: {os.fsdecode(content)}", file=sys.stderr)
                    elif content is None:
                        os.symlink(f"{size} {name}:{os.path.join(folder, inside)}", path)
                    else:
                        with open(path, "wb") as file:
                            file.write(content)
        except RayError as error:
            raise ClusterError(f"{folder} of {name} cannot be listed: {last_line(error)}") from None
        for path, time in times.items():
            os.utime(path, ns=(time, time))

    def bring(self, name: str, paths: list[str], into: str) -> dict[str, int]:
        """Copies files of a node to {into}/{name}/path; error numbers of those that cannot be read there."""
        errors = {}
        file = None
        for pieces in self._pieces(name, "read_files", paths):
            for index, content, ended in pieces:
                if isinstance(content, int):
                    errors[paths[index]] = content
                    if file is not None:  # some of it had come
                        file.close()
                        os.unlink(file.name)
                        file = None
                    continue
                if file is None:
                    target = f"{into}/{name}{paths[index]}"
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    file = open(target + ".part", "wb")
                file.write(content)
                if ended:
                    file.close()
                    os.rename(file.name, file.name[: -len(".part")])
                    file = None
        return errors

    def bring_all(self, files: Iterable[str], into: str) -> None:
        """Those of "node:/path" that are not on this node; in the place of one that cannot be had, a link to a blank
        and an error number (src/base/node_paths.h)."""
        own = self.own()
        wanted: dict[str, dict[str, None]] = {}
        for file in files:
            name, _, path = file.partition(":")
            if name in self.ids and name != own:
                wanted.setdefault(name, {})[path] = None
        for name, paths in wanted.items():
            # Of a node that is lost, this one may see the folders, too, unless it has others there.
            errors = {path: errno.EHOSTDOWN for path in paths if self.others_have(name, path)}
            if self.is_alive(name):
                try:
                    errors = self.bring(name, list(paths), into)
                except RayError:
                    if self.is_alive(name):
                        raise
            for path, number in errors.items():
                target = f"{into}/{name}{path}"
                if not os.path.exists(target):
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    os.symlink(f" {number}", target)


def last_line(error: Exception) -> str:
    """It says what happened; the others, where in Ray's code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


class FileServer:
    """Brings files to a process of the native program as it opens them: src/base/node_paths.h."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.folder = tempfile.mkdtemp(prefix="ait_nodes_")
        self._lock = threading.Lock()
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                path = os.fsdecode(self.rfile.readline().rstrip(b"\n"))
                self.wfile.write(os.fsencode(outer.answer(path)) + b"\n")

        self._server = socketserver.ThreadingUnixStreamServer(os.path.join(self.folder, "socket"), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> str:
        name, _, there = path.partition(":")
        copy = f"{self.folder}/{name}{there}"
        lost = f" {errno.EHOSTDOWN}" if self._nodes.others_have(name, there) else there
        with self._lock:
            if os.path.exists(copy):
                return copy
            try:
                if not self._nodes.is_alive(name):
                    return lost
                errors = self._nodes.bring(name, [there], self.folder)
            except RayError:
                return lost
        return f" {errors[there]}" if errors else copy

    def environment(self) -> dict[str, str]:
        return {"AIT_NODE_SOCKET": os.path.join(self.folder, "socket"), "AIT_NODE_FILES": self.folder}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self.folder, ignore_errors=True)
