"""`ait demo` plants a fault and finds it."""

import json


def test_the_demo_ends_at_the_planted_fault(ait, tmp_path):
    folder = tmp_path / "demo"
    process = ait("demo", "-o", str(folder))
    assert process.returncode == 0, process.stderr
    jumps = [line for line in process.stdout.splitlines() if line.startswith("Fault: ")]
    assert len(jumps) == 1
    assert "token 0, 4_Prefill_layer/0_RmsNormOperation (layer 2)" in jumps[0]
    for side in ("golden", "my"):
        assert json.loads((folder / side / "ait_dump/manifest.json").read_text())["complete"]
    assert len(list((folder / "report").glob("*.csv"))) == 1
    assert process.stdout.splitlines()[-1] == f"Look at it in a browser: {folder}/report.html"
    assert (folder / "report.html").read_text().startswith("<!doctype html><!--ait report-->")


def test_a_folder_that_is_there_is_left_alone(ait, tmp_path):
    (tmp_path / "mine").write_text("precious")
    process = ait("demo", "-o", str(tmp_path / "mine"))
    assert process.returncode == 2
    assert "remove it or give another folder" in process.stderr
    assert (tmp_path / "mine").read_text() == "precious"
