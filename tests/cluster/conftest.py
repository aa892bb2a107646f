"""A Ray cluster of four nodes on this machine, and the built program. `make test-cluster` runs these tests."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

ray = pytest.importorskip("ray")

# Four nodes and their workers take long to start on a busy machine.
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(1, str(REPOSITORY / "tests/e2e"))
PROGRAM = pathlib.Path(os.environ.get("AIT_BIN", REPOSITORY / "build/bin/ait")).resolve()
NODES = 4
OBJECT_STORE_BYTES = 100 << 20


@pytest.fixture(scope="session")
def cluster():
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    made.by_name = {}
    for i in range(NODES):
        add_node(made, f"n{i}")
    yield made
    made.shutdown()


def add_node(cluster, name):
    """A node of one processor, known by a resource of that name."""
    node = cluster.add_node(num_cpus=1, resources={name: 1}, object_store_memory=OBJECT_STORE_BYTES)
    cluster.by_name[name] = node
    return node


@pytest.fixture
def start(tmp_path):
    """Starts the program in the test's folder, with this Python for what needs Ray."""

    def run(*arguments, address=None, **variables):
        environment = {**os.environ, "AIT_PYTHON": sys.executable, **variables}
        environment.pop("RAY_ADDRESS", None)
        if address:
            environment["RAY_ADDRESS"] = address
        return subprocess.Popen(
            [PROGRAM, *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell that runs these tests in the background has it ignored, and so would be Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return run


@pytest.fixture
def ait(start):
    def run(*arguments, **options):
        process = start(*arguments, **options)
        out, err = process.communicate(timeout=1200)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run
