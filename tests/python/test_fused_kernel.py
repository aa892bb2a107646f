"""The kernel that measures tensors on a GPU, and what launches it, on a machine without one: its own text is compiled
for the CPU, in a library that stands in for CUDA's driver. Tests with a GPU: test_cuda_statistics.py."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "python" / "ait_llm" / "dump" / "torch_dump"

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("fused") / "libfake.so"
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-w", f"-I{SOURCES}"]
    subprocess.run(["c++", *options, "-o", path, HERE / "fused_on_host.cpp"], check=True, timeout=300)
    return str(path)


def run(library, code, *arguments):
    start = f"import sys; sys.path.insert(0, {str(HERE)!r})\nimport fake_cuda, torch\n"
    start += f"fake = fake_cuda.install({library!r})\n"
    command = [sys.executable, "-c", start + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    return done


def test_every_type_shape_and_layout_is_measured_as_on_the_cpu(library):
    run(
        library,
        """
from statistics_cases import cases, faults, measured
names, tensors = zip(*cases())
rows, ways = measured(tensors)
for fault in faults(names, tensors, rows):
    print(fault)
few = [name for name in names if "many gaps" in name]
assert ways["kernel"] == sum(tensor.numel() > 0 for tensor in tensors) - len(few), ways
""",
    )


def test_results_are_the_same_to_the_bit_whichever_block_ends_last(library):
    run(
        library,
        """
from statistics_cases import measured
tensors = [torch.randn(3_000_000), torch.randn(700_001).to(torch.bfloat16), torch.randn(64, 4096, dtype=torch.float64)]
first = measured(tensors)[0]
for order in (1, 3, 7, 1001):
    fake.fake_order(order)
    assert measured([tensor.clone() for tensor in tensors])[0] == first, order
""",
    )


def test_tensors_of_a_call_share_launches(library, tmp_path):
    run(
        library,
        """
from ait_llm import DumpConfig, register_hook
class Adding(torch.nn.Module):
    def forward(self, *tensors):
        return tensors[0] + 1
model, before = Adding(), fake.fake_launches()
with register_hook(model, DumpConfig(sys.argv[1], dump_statistics_mode=1)):
    model(*[torch.randn(5) for _ in range(11)])
assert fake.fake_launches() - before == 3, fake.fake_launches()  # eight inputs, three inputs, an output
""",
        tmp_path,
    )


GRAPHS = """
import csv, json
from pathlib import Path
from ait_llm import DumpConfig, register_hook
from ait_llm.dump.torch_dump import captures
fake_cuda.pretend_graphs(fake)
kept = []
class Doubling(torch.nn.Module):
    def forward(self, x):
        torch.mul(x, 2, out=y)
        return y
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Doubling()
    def forward(self, x):
        return self.part(x)
model, x, y = Model(), torch.ones(5), torch.empty(5)
config = DumpConfig(sys.argv[1], [1, 2, 3], dump_statistics_mode=1)
def rows(handle, number):
    text = Path(handle.folder, str(number), "statistics.csv").read_text()
    return {row["File"]: row for row in csv.DictReader(text.splitlines())}
def manifest(handle):
    return json.loads(Path(handle.folder, "manifest.json").read_text())
def capture():
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin()
    model(x)
    graph.capture_end()
    return graph
def replay(graph, value):
    x.fill_(value)
    torch.mul(x, 2, out=y)  # what the graph itself would do
    graph.replay()
"""


def test_each_replay_of_a_graph_is_a_round_with_its_own_numbers(library, tmp_path):
    run(
        library,
        GRAPHS
        + """
captures.listen()
with register_hook(model, config) as handle:
    model(x)
    graph = capture()
    for value in (5, 6, 7, 8):
        replay(graph, value)
found = manifest(handle)
assert found["root_calls"] == 5 and sorted(found["rounds"]) == ["1", "2", "3"], found
assert found["state"] == "complete" and found["errors"] == found["not_stored"] == [], found
assert all(each["seen"] == 2 and each["state"] == "finished" for each in found["rounds"].values()), found
for number, value in ((1, 5), (2, 6), (3, 7)):
    table = rows(handle, number)
    assert list(table) == ["root/input_0", "root.part/input_0", "root.part/output", "root/output"]
    assert [float(row["Mean"]) for row in table.values()] == [value, value, 2 * value, 2 * value], table
    assert table["root/output"]["SameAs"] == "root.part/output"
assert found["statistics"]["kernel"] == 6, found["statistics"]
assert all(type(each) is type(capture) for each in map(vars(torch.cuda.CUDAGraph).get, ["replay", "capture_end"]))
config.dump_path = sys.argv[1] + "/again"
with register_hook(model, config) as handle:
    captures.listen()
    replay(graph, 9)  # captured for another recording
assert "were replayed 1 times" in manifest(handle)["incomplete_because"][0], manifest(handle)
""",
        tmp_path,
    )


def test_a_graph_that_was_captured_before_is_said_to_be_missing(library, tmp_path):
    done = run(
        library,
        GRAPHS
        + """
graph = capture()
captures.listen()
with register_hook(model, config) as handle:
    for value in (5, 6):
        replay(graph, value)
found = manifest(handle)
assert found["state"] == "incomplete" and found["root_calls"] == 0, found
assert "were replayed 2 times" in found["incomplete_because"][0], found
""",
        tmp_path,
    )
    assert done.stderr.count("captured before the recording began is not recorded") == 1
