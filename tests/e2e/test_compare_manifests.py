"""`ait llm compare` on dumps that their manifests say are not whole."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from atb_host import Host
from dump_run import dump_command, host_program, record


@pytest.fixture
def dump(tmp_path):
    """A complete dump of the stand-in host, in tmp_path/out."""
    return record(tmp_path, "-er", "0,2", host=Host(layers=2, rounds=3)).root


def compare(ait, golden, mine):
    """The lines before the first one about pairing, and the document."""
    done = ait("llm", "compare", "-gp", golden, "-mp", mine, "-o", "report")
    assert done.returncode == 0, done.stderr
    document = json.loads(ait("llm", "compare", "-gp", golden, "-mp", mine, "-o", "report", "--json").stdout)
    return done.stdout.split("my side: ")[0].splitlines(), document["recordings"]


def test_a_complete_dump_needs_no_word(ait, dump):
    lines, found = compare(ait, dump, dump)
    assert lines == []
    assert found == {"golden": {"complete": True, "doubts": []}, "my": {"complete": True, "doubts": []}}


def test_a_dump_that_lacks_something_is_said_first(ait, dump, tmp_path):
    mine = tmp_path / "mine"
    shutil.copytree(dump, mine)
    manifest = json.loads((mine / "manifest.json").read_text())
    manifest |= {"complete": False, "incomplete_because": ["3 tensors could not be stored", "a process was killed"]}
    (mine / "manifest.json").write_text(json.dumps(manifest))
    lines, found = compare(ait, dump, mine)
    assert lines == ["my side may lack tensors: 3 tensors could not be stored (and 1 more)"]
    assert found["my"] == {"complete": False, "doubts": manifest["incomplete_because"]}
    (mine / "manifest.json").write_text("{")
    lines, found = compare(ait, mine, dump)
    assert lines == [
        "golden may lack tensors: manifest.json is not JSON, so it is not known whether everything was recorded"
    ]
    assert found["golden"]["complete"] is None


def test_what_a_killed_launcher_left_is_said_first(ait, dump, tmp_path):
    command = dump_command([host_program(), "--rounds", "200", "--pause-ms", "20"], "-er", "0,999", out="killed")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        host_pid = int(process.stdout.readline().split()[1])
        time.sleep(0.5)
        process.kill()
        os.kill(host_pid, signal.SIGKILL)
    lines, found = compare(ait, tmp_path / "killed", tmp_path / "killed")
    why = f"no manifest names the process of 0_{host_pid}: `ait llm dump` was killed, or still runs"
    assert lines == [f"golden may lack tensors: {why}", f"my side may lack tensors: {why}"]
    assert found["golden"] == {"complete": False, "doubts": [why]}


def test_a_manifest_of_an_earlier_run_is_said_first(ait, dump):
    hour_ago = time.time() - 3600
    os.utime(dump / "manifest.json", (hour_ago, hour_ago))
    lines, _ = compare(ait, dump, dump)
    assert (
        lines[0]
        == "golden may lack tensors: manifest.json is older than tensors beside it, so these are from another run"
    )


def test_dumps_of_other_tools_have_no_manifest_and_need_no_word(ait, dump):
    (dump / "manifest.json").unlink()
    lines, found = compare(ait, dump, dump)
    assert lines == [] and found["golden"] == {"complete": None, "doubts": []}
