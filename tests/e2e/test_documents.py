"""Every `$ ait …` line in the documentation runs, and prints what the page shows.

A ```console block holds command lines and, below each, its output. Of the output every line must appear in
this order; `…` stands for any text. A line `# status N` after a command says that it ends so.
"""

import os
import re
import shlex
import subprocess

import numpy as np
import pytest
from atb_host import HOSTS
from conftest import REPOSITORY, atb_bin, sample_pair

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def examples():
    for page in PAGES:
        if not page.exists():
            continue
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            line = text[: block.start()].count("\n") + 2
            commands = re.split(r"^\$ ", block.group(1), flags=re.MULTILINE)[1:]
            if any(command.startswith("ait ") for command in commands):
                yield pytest.param(commands, id=f"{page.relative_to(REPOSITORY)}:{line}")


def torchair_dumps(folder):
    """One graph, executed twice; a matrix product of the second execution is off by 2 %."""
    pytest.importorskip("google.protobuf")
    from ge_run import GraphRun, ge_operations, inputs_like, two_blocks, write_fx, write_ge

    run = GraphRun(two_blocks, inputs_like(1, 2, 5))
    right = next(op for op in ge_operations(run.tokens[1]) if op.name == "MatMulV2_4").results[0].numpy()

    def change(name, array):
        is_it = name == "MatMulV2_4/output_0" and np.array_equal(array, right)
        return array * np.float32(1.02) if is_it else array

    write_fx([[run]], folder / "dump/msit_fx_dump")
    write_ge([[run]], folder / "dump/msit_ge_dump", change=change)
    write_ge([[run]], folder / "old_dump")


@pytest.fixture(scope="module")
def example_folder(tmp_path_factory):
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.numpy")
    folder = tmp_path_factory.mktemp("documents")
    golden, actual = sample_pair()
    np.save(folder / "golden.npy", golden)
    np.save(folder / "actual.npy", actual)
    torch.save(torch.from_numpy(golden).half(), folder / "layer.pth")
    (folder / "layer.bin").write_bytes(atb_bin(actual.astype(np.float16), 1))
    actual.astype(np.float16).tofile(folder / "layer.raw")
    weights = {"lm_head.weight": golden[0], "model.norm.weight": np.ones(4, np.float16)}
    safetensors.save_file(weights, folder / "model.safetensors")
    for side in ("golden_folder", "my_folder"):
        (folder / side).mkdir()
        for i in range(5):
            np.save(folder / side / f"layer{i}.npy", golden + i)
    np.save(folder / "my_folder/layer1.npy", actual + 1)
    np.save(folder / "my_folder/layer2.npy", (golden + 2) * np.float32(1.001))
    np.save(folder / "my_folder/layer3.npy", golden[0])
    (folder / "my_folder/layer4.npy").unlink()
    torchair_dumps(folder)
    host = HOSTS / "abi1/bin/atb_host"
    (folder / "run.sh").write_text(f"exec {host} --rounds 3 --overflow LinearOperation_2_2_0:0:0\n")
    return folder


def pattern(line):
    """What a line may look like: "…" stands for anything, and columns are as wide as this machine's longest text."""
    wanted = ".*".join(re.escape(part) for part in line.split("…"))
    return re.sub(r"(?:\\ ){2,}", "  +", wanted)


@pytest.mark.parametrize("commands", list(examples()))
def test_the_example_works(program, example_folder, commands):
    if any("run.sh" in command for command in commands) and not HOSTS.exists():
        pytest.skip("the stand-in host was not built beside the program")
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    for command in commands:
        line, *shown = command.rstrip("\n").split("\n")
        if not line.startswith("ait "):
            continue
        status = 0
        if shown and (said := re.fullmatch(r"# status (\d+)", shown[0])):
            status = int(said.group(1))
            shown = shown[1:]
        process = subprocess.run(
            [program, *shlex.split(line)[1:]],
            cwd=example_folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert process.returncode == status, process.stdout
        printed = iter(process.stdout.split("\n"))
        for expected in filter(str.strip, shown):
            assert any(re.fullmatch(pattern(expected), text) for text in printed), (
                f"{line} did not print (in this place): {expected}\n\n{process.stdout}"
            )


REASONS_OF = [
    "compare/measure.h",
    "compare/measure.cpp",
    "compare/engine.cpp",
    "compare/transform.cpp",
    "match/automatic.cpp",
    "match/by_place.cpp",
    "match/fed.cpp",
    "match/plan.cpp",
    "match/same_ranks.cpp",
    "match/segment_match.cpp",
    "match/tokens.cpp",
]


def reasons():
    """Sentences in the sources that can stand in cmp_fail_reason; of those with gaps the end."""
    for name in REASONS_OF:
        text = (REPOSITORY / "src" / name).read_text(encoding="utf-8")
        text = re.sub(r'"\s*"', "", re.sub(r"//.*", "", text))  # without comments, literals joined
        for sentence in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text):
            if sentence.endswith(".") and " " in sentence.strip():
                yield sentence.split("%")[0]


def test_every_reason_is_explained():
    page = (REPOSITORY / "docs/metrics.md").read_text(encoding="utf-8")
    sentences = list(reasons())
    assert len(sentences) > 25
    assert not [sentence for sentence in sentences if sentence not in page]
    assert "guess" not in page
