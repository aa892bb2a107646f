"""The functions that read files, given what is no file."""

import pathlib
import signal
import sys

import ait_llm
import pytest
from ait_llm.common.json_fitter import atb_json_to_onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from strange import KINDS, plant

READERS = {
    "load": ait_llm.load,
    "load by name": lambda path: ait_llm.load(path, name="w"),
    "load bare bytes": lambda path: ait_llm.load(path, dtype="float16"),
    "statistics": ait_llm.statistics,
    "compare": lambda path: ait_llm.compare(path, path),
    "compare_runs": lambda path: ait_llm.compare_runs(path, path),
    "open_rows": ait_llm.open_rows,
    "atb_json_to_onnx": lambda path: atb_json_to_onnx(str(path)),
}


@pytest.fixture(autouse=True)
def impatience():
    """Who waits for a FIFO waits for ever."""

    def end(number, frame):
        raise TimeoutError("the reader waits")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_an_error_at_once(tmp_path, reader, kind):
    path = plant(tmp_path / "x.json", kind)
    with pytest.raises(ait_llm.AitError) as error:
        READERS[reader](path)
    assert "\n" not in str(error.value)
