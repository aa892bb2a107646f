"""The Ray cluster that parts are compared on."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from typing import Any

import ray

CONNECT_SECONDS = 20


class ClusterError(Exception):
    """Why nothing can be compared there, in a sentence."""


class PartLostError(Exception):
    """What a part needs was lost while it was compared: it is worth another try."""


class Cluster:
    """One that runs already, by address or environment, or one of this machine for the time being."""

    def __init__(self, address: str | None, program: str, processors: int | None = None) -> None:
        self.program = program
        self._processors = processors  # of a cluster of this machine; None: all
        self._address = address or os.environ.get("RAY_ADDRESS") or None

    def __enter__(self) -> Cluster:
        started = time.monotonic()
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
        if self._address is None:
            # Ray's workers are otherwise the last to get a processor.
            os.environ.setdefault("RAY_worker_niceness", "0")
            options.update(address="local", include_dashboard=False, num_cpus=self._processors)
        else:
            options.update(address=self._address)
        self._check_address()
        # Ray has its workers import from the current folder before all others, which may be a dump of anybody's.
        here = os.getcwd()
        os.chdir("/")
        try:
            ray.init(**options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ClusterError(
                f"the Ray cluster {self._address or 'of this machine'} cannot be used: {error}"
            ) from None
        finally:
            os.chdir(here)
        self.start_seconds = time.monotonic() - started
        return self

    def _check_address(self) -> None:
        """Ray would wait for minutes for a machine that is not there."""
        host, _, port = (self._address or "").removeprefix("ray://").rpartition(":")
        if not host or not port.isdigit():
            return
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            raise ClusterError(f"the Ray cluster {self._address} cannot be reached: {error}") from None

    def __exit__(self, *_: object) -> None:
        ray.shutdown()

    def nodes(self) -> list[dict[str, Any]]:
        return [node for node in ray.nodes() if node["Alive"]]

    def check_threads(self, threads: int) -> None:
        """Ray would wait for ever for a node that has as many processors."""
        most = max((int(node["Resources"].get("CPU", 0)) for node in self.nodes()), default=0)
        if threads <= most:
            return
        words = f"a part takes --threads {threads} processors, and no node of the Ray cluster has more than {most}"
        if self._address is None:
            raise ClusterError(f"{words}; give fewer")
        print(f"ait: warning: {words}; waiting for one that has", file=sys.stderr)

    def processors(self) -> int:
        return max(1, int(sum(node["Resources"].get("CPU", 0) for node in self.nodes())))
