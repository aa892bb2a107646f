"""`ait report` and `ait llm compare --html`: the page and what it is made of. web/test opens it in a browser."""

import base64
import csv
import gzip
import json
import re

import numpy as np
import pytest
from terminal import Terminal


def parts(path):
    """What a browser unpacks from a page."""
    found = re.findall(r'<script type="text/plain" id="ait-(\w+)">([^<]*)</script>', path.read_text())
    return {name: gzip.decompress(base64.b64decode(text)) for name, text in found}


def about(path):
    return json.loads(parts(path)["about"])


@pytest.fixture
def folders(tmp_path):
    random = np.random.default_rng(0)
    for name in ("same", "off", "only"):
        array = random.standard_normal((4, 8)).astype(np.float32)
        for side in ("g", "m"):
            (tmp_path / side).mkdir(exist_ok=True)
            if (name, side) != ("only", "m"):
                np.save(tmp_path / side / f"{name}.npy", array * (1.5 if (name, side) == ("off", "m") else 1))
    return tmp_path


def test_compare_writes_a_page_of_its_rows(ait, folders):
    page = folders / "pages/report.html"
    process = ait("llm", "compare", "-gp", folders / "g", "-mp", folders / "m", "-o", folders / "out", "--html", page)
    assert process.returncode == 0, process.stderr
    assert f"Page: {page} (open it in a browser)" in process.stdout
    document = about(page)
    assert document["kind"] == "comparison"
    assert document["rows"] == 3
    assert document["counts"]["summary"]["only_golden"] == 1
    assert " --html " in document["command"]
    (detail,) = document["details"]
    assert detail["elements"] == 32
    assert len(detail["worst"]) == 12
    assert sum(detail["histogram"]["golden"]) == 32


def test_report_makes_the_same_page_of_the_rows(ait, folders):
    ait("llm", "compare", "-gp", folders / "g", "-mp", folders / "m", "-o", folders / "out")
    (report,) = (folders / "out").glob("*.csv")
    for given in (folders / "out", report, report.with_suffix(".rows")):
        process = ait("report", given)
        assert process.returncode == 0, process.stderr
    page = report.with_suffix(".html")
    columns = {column["name"]: column for column in about(page)["table"]["columns"]}
    texts = json.loads(parts(page)[columns["data_id"]["id"] + "t"])
    with report.open(newline="") as file:
        assert sorted(texts[1:]) == sorted(line["data_id"] for line in csv.DictReader(file))


@pytest.fixture
def demo(ait, tmp_path):
    assert ait("demo", "-o", tmp_path / "demo").returncode == 0
    return tmp_path / "demo"


def verdicts(page):
    """How often each verdict stands in the page's table."""
    (column,) = [each for each in about(page)["table"]["columns"] if each["name"] == "verdict"]
    texts = json.loads(parts(page)[column["id"] + "t"])
    planes = np.frombuffer(parts(page)[column["id"]], np.uint8).reshape(4, -1)
    indices = np.ascontiguousarray(planes.T).view("<u4").ravel()
    return {text: int(np.sum(indices == i)) for i, text in enumerate(texts) if text}


def test_the_page_of_a_comparison_and_that_of_its_report_say_the_same(ait, demo):
    assert ait("report", demo / "report", "-o", demo / "again.html").returncode == 0
    first, again = about(demo / "report.html"), about(demo / "again.html")
    assert verdicts(demo / "report.html")["fault"] > 100
    assert verdicts(demo / "again.html") == verdicts(demo / "report.html")
    assert first["findings"][0]["operation"] == again["findings"][0]["operation"]
    assert first["note"] == again["note"]
    note = json.loads(again["note"])
    assert "llm compare" in note["command"]
    assert note["pairing"]["my"] == {"operations": 169, "paired": 169, "same_as_paired": 0, "unpaired": {}}
    assert note["recordings"]["golden"]["complete"] is True
    assert [each["side"] for each in again["manifests"]] == ["golden", "my"]


@pytest.mark.parametrize("columns", [60, 200])
def test_the_terminal_tells_the_same_story_wide_and_narrow(program, demo, columns):
    with Terminal([program, "locate", demo / "report"], demo, columns) as terminal:
        text, _ = terminal.finish()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    story = plain[: plain.index("\nNext: ")].splitlines()  # what comes then is a path to copy
    assert max(map(len, story)) <= columns
    assert story[0] == "Fault: token 0, 4_Prefill_layer/0_RmsNormOperation (layer 2)"
    words = " ".join(plain.split())
    assert "likely cause: scale: my equals golden after multiplying it by 1.05" in words
    assert re.search(r"in layer 2: layer 0 \S{4} 3 The worst of those that differ: token data", words)
    assert ("cosine_similarity" in plain) == (columns == 200)


def test_noise_may_be_that_of_a_report(ait, program, demo):
    healthy = f"{program.parent}/ait-llama --model {demo}/model --tokens 1,15,7,22,3,81 --steps 3 --dtype fp16"
    assert ait("llm", "dump", "--exec", healthy, "-er", "0,1", "-o", demo / "healthy").returncode == 0
    made = ait(
        "llm", "compare", "-gp", demo / "golden/ait_dump", "-mp", demo / "healthy/ait_dump", "-o", demo / "noise"
    )
    assert made.returncode == 0, made.stderr
    page = demo / "noisy.html"
    process = ait("report", demo / "report", "--noise", demo / "noise", "-o", page)
    assert process.returncode == 0, process.stderr
    finding = about(page)["findings"][0]
    assert finding["operation"] == "4_Prefill_layer/0_RmsNormOperation"
    assert finding["threshold"] == "what the noise run has there"
    assert about(page)["noise"] == str(demo / "noise")
    process = ait("report", demo / "my/ait_dump", "--noise", demo / "noise")
    assert process.returncode == 2
    assert "is not a comparison of two runs, so --noise has no effect" in process.stderr


def test_two_single_tensors_have_no_page(ait, folders):
    process = ait(
        "llm", "compare", "-gp", folders / "g/off.npy", "-mp", folders / "m/off.npy", "--html", folders / "x.html"
    )
    assert process.returncode == 2
    assert "--html has no effect on two files of one tensor each" in process.stderr
    assert not (folders / "x.html").exists()


def test_a_file_that_is_no_page_is_left_alone(ait, folders):
    ait("llm", "compare", "-gp", folders / "g", "-mp", folders / "m", "-o", folders / "out")
    (folders / "precious.html").write_text("precious")
    process = ait("report", folders / "out", "-o", folders / "precious.html")
    assert process.returncode == 2
    assert "give the page another name" in process.stderr
    assert (folders / "precious.html").read_text() == "precious"


def test_what_is_no_result_is_refused(ait, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n")
    process = ait("report", tmp_path / "x.csv")
    assert process.returncode == 2
    assert "is not a result that a page can be made of" in process.stderr
    assert ait("report", tmp_path / "gone").returncode == 2
