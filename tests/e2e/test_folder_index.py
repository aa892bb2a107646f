"""What is remembered of the folders of a dump changes no result, and nothing is believed that is not so any more."""

import csv
import os
import shutil
import subprocess
import time

import numpy as np
import pytest
from conftest import atb_bin

ROUNDS, OPERATIONS = 30, 20  # with "after" in each operation more folders than are listed for nothing
SETTLED = 2.1  # seconds after which a folder's times tell of any further change


@pytest.fixture
def dumps(tmp_path):
    random = np.random.default_rng(0)
    for side, factor in (("golden", 1.0), ("mine", 1.001)):
        arrays = [(random.standard_normal((1, 16)) * factor).astype(np.float32) for _ in range(OPERATIONS)]
        for number in range(ROUNDS):
            for i, array in enumerate(arrays):
                folder = tmp_path / f"{side}/tensors/0_77/{number}/{i}_LinearOperation/after"
                folder.mkdir(parents=True)
                (folder / "outtensor0.bin").write_bytes(atb_bin(array, 0))
    time.sleep(SETTLED)
    return tmp_path


def compare(program, folder, cache, out, **environment):
    """The report of a comparison, every byte of it."""
    subprocess.run(
        [program, "llm", "compare", "-gp", "golden", "-mp", "mine", "-o", out],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "AIT_CACHE": "1", **environment},
        check=True,
        capture_output=True,
    )
    (report,) = (folder / out).glob("*.csv")
    return report.read_bytes()


def test_the_report_is_the_same_byte_for_byte(program, dumps):
    cache = dumps / "cache"
    without = compare(program, dumps, cache, "out0", AIT_CACHE="0")
    assert not cache.exists()
    assert compare(program, dumps, cache, "out1") == without
    assert len(list((cache / "ait").glob("*.folders"))) == 2
    assert (cache / "ait").stat().st_mode & 0o777 == 0o700
    assert compare(program, dumps, cache, "out2") == without
    assert not any("ait" in name for _, folders, files in os.walk(dumps / "mine") for name in folders + files)

    last = f"mine/tensors/0_77/{ROUNDS - 1}"
    (dumps / f"{last}/3_LinearOperation/after/outtensor0.bin").unlink()
    shutil.copytree(dumps / f"{last}/2_LinearOperation", dumps / f"{last}/20_LinearOperation")
    os.rename(
        dumps / "mine/tensors/0_77/0/5_LinearOperation/after/outtensor0.bin",
        dumps / "mine/tensors/0_77/0/5_LinearOperation/after/outtensor1.bin",
    )
    changed = compare(program, dumps, cache, "out3")
    assert changed != without
    assert changed == compare(program, dumps, cache, "out4", AIT_CACHE="0")
    assert changed == compare(program, dumps, cache, "out5")


def test_a_cache_that_cannot_be_used_is_none(program, dumps):
    without = compare(program, dumps, dumps / "cache", "out0", AIT_CACHE="0")
    (dumps / "file").write_text("")
    assert compare(program, dumps, dumps / "file", "out1") == without
    assert compare(program, dumps, "", "out2", HOME="") == without
    compare(program, dumps, dumps / "cache", "out3")
    for index in (dumps / "cache/ait").iterdir():
        index.write_bytes(index.read_bytes()[:-1])
    assert compare(program, dumps, dumps / "cache", "out4") == without


def test_one_round_uses_the_index_of_all_and_leaves_it(program, dumps):
    cache = dumps / "cache"
    compare(program, dumps, cache, "out0")
    before = {path.name: path.read_bytes() for path in (cache / "ait").iterdir()}
    subprocess.run(
        [program, "llm", "compare", "-gp", "golden/tensors/0_77/7", "-mp", "mine/tensors/0_77/7", "-o", "out1"],
        cwd=dumps,
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "AIT_CACHE": "1"},
        check=True,
        capture_output=True,
    )
    (report,) = (dumps / "out1").glob("*.csv")
    with open(report, newline="") as file:
        assert len(list(csv.DictReader(file))) == OPERATIONS
    assert {path.name: path.read_bytes() for path in (cache / "ait").iterdir()} == before
