"""Files of recorded calls that were cut short, edited by hand, or made to do harm."""

import json
import os
import resource

import pytest
import torch
from ait_llm._errors import AitError
from ait_llm.api_check.checking import read_both
from ait_llm.api_check.devices import Device
from ait_llm.api_check.outcome import Settings, check
from ait_llm.api_check.records import read_records

GOOD = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": 1.0, "Min": 0.0, "requires_grad": False}
BOUND = 1 << 26


def run(entry, key="Torch*exp*0", settings=None):
    record = entry if isinstance(entry, dict) and "args" in entry else {"args": [entry], "kwargs": {}}
    return check(key, record, None, Device(), settings or Settings(max_bytes=BOUND))


def test_a_good_record_runs():
    assert run(GOOD).forward == "True"


HOSTILE = {
    "huge shape": ({**GOOD, "shape": [1 << 40]}, "more than"),
    "huge product of a shape": ({**GOOD, "shape": [1 << 31, 1 << 31, 1 << 31]}, "more than"),
    "shape beyond 64 bits": ({**GOOD, "shape": [1 << 70]}, "lists of sizes"),
    "negative shape": ({**GOOD, "shape": [-1]}, "lists of sizes"),
    "shape of texts": ({**GOOD, "shape": ["__import__('os').system('touch owned')"]}, "lists of sizes"),
    "shape that is none": ({**GOOD, "shape": None}, "lists of sizes"),
    "too many dimensions": ({**GOOD, "shape": [1] * 65}, "lists of sizes"),
    "stride to nowhere": ({**GOOD, "stride": [1 << 50]}, "more than"),
    "strides of another shape": ({**GOOD, "stride": [1, 1]}, "different lengths"),
    "unknown type of elements": ({**GOOD, "dtype": "torch.float17"}, "Dtype is not supported"),
    "code for a type of elements": ({**GOOD, "dtype": "__import__('os').system('touch owned')"}, "Dtype is not"),
    "no type of elements": ({**GOOD, "dtype": 7}, "Dtype is not supported"),
    "extremes that are texts": ({**GOOD, "Max": "1", "Min": "0"}, "must be int or float"),
    "extremes upside down": ({**GOOD, "Max": 0.0, "Min": 1.0}, "above"),
    "code for a value": ({"type": "eval", "value": {"__reduce__": "os.system"}}, "cannot be made again"),
    "a type that is a list": ({"type": ["torch.Tensor"]}, "neither an object"),
    "code for a device": (
        {"args": [GOOD], "kwargs": {"dtype": {"type": "torch.dtype", "value": "os.system('x')"}}},
        "not known",
    ),
    "nothing": (None, "neither an object"),
    "a number": (3, "neither an object"),
    "a slice of texts": ({"type": "slice", "value": ["a", "b", "c"]}, "three integers"),
    "no arguments": ({"args": None}, "no list of arguments"),
    "keyword arguments that are none": ({"args": [GOOD], "kwargs": []}, "not an object"),
    "deep nesting": (__import__("functools").reduce(lambda inner, _: [inner], range(200), GOOD), "too deeply"),
    "data outside": ({"type": "torch.Tensor", "datapath": "/etc/passwd"}, ".pt or .npy"),
    "data far up": ({"type": "torch.Tensor", "datapath": "../../../../etc/passwd.pt"}, "not below"),
    "data with a zero byte": ({"type": "torch.Tensor", "datapath": "a\0.pt"}, ".pt or .npy"),
    "data that is no text": ({"type": "torch.Tensor", "datapath": ["x.pt"]}, ".pt or .npy"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bad_record_costs_its_own_row_and_says_why(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entry, reason = HOSTILE[name]
    settings = Settings(max_bytes=BOUND, data_folders=(str(tmp_path),))
    outcome = run(entry, settings=settings)
    assert (outcome.forward, outcome.backward) == ("SKIP", "SKIP") and reason in outcome.message, outcome
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "key",
    [
        "Torch*load*0",
        "Torch*save*0",
        "Torch*hub*0",
        "Functional*__builtins__*0",
        "Torch*os.system*0",
        "Tensor*__class__*0",
    ],
)
def test_names_lead_to_no_other_functions(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    word = {"type": "str", "value": "touch owned"}
    assert run({"args": [word], "kwargs": {}}, key).forward == "SKIP"
    assert list(tmp_path.iterdir()) == []


def test_a_pickle_that_would_run_code_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/owned",)

    torch.save(Evil(), tmp_path / "evil.pt")
    entry = {"type": "torch.Tensor", "datapath": str(tmp_path / "evil.pt")}
    outcome = run(entry, settings=Settings(data_folders=(str(tmp_path),)))
    assert outcome.forward == "SKIP" and "real data" in outcome.message
    assert not (tmp_path / "owned").exists()


def test_data_are_read_from_below_the_folder_alone(tmp_path):
    inside, outside = tmp_path / "dump" / "forward_real_data", tmp_path / "elsewhere"
    inside.mkdir(parents=True)
    outside.mkdir()
    for folder in (inside, outside):
        torch.save(torch.ones(3), folder / "x.pt")
    (inside / "link.pt").symlink_to(outside / "x.pt")
    settings = Settings(data_folders=(str(tmp_path / "dump"),))
    paths = {
        str(inside / "x.pt"): "True",
        "forward_real_data/x.pt": "True",
        "/where/it/was/recorded/forward_real_data/x.pt": "True",  # moved as a whole
        str(outside / "x.pt"): "SKIP",
        "../elsewhere/x.pt": "SKIP",
        str(inside / "link.pt"): "SKIP",
        "/dev/zero.pt": "SKIP",
    }
    for path, forward in paths.items():
        outcome = run({"type": "torch.Tensor", "datapath": path}, settings=settings)
        assert outcome.forward == forward, (path, outcome)


def test_data_of_the_call_itself_may_lie_where_it_was_recorded(tmp_path):
    """As the older tool has it: the file of records is taken to where it is checked, the data are not."""
    for place in ("forward_real_data", "forward_real_data/rank0", "elsewhere"):
        (tmp_path / place).mkdir()
        for name in ("Torch*exp*0.0.pt", "Torch*exp*1.0.pt"):
            torch.save(torch.ones(3), tmp_path / place / name)
    (tmp_path / "forward_real_data" / "rank1").symlink_to(tmp_path / "elsewhere")
    paths = {
        "forward_real_data/Torch*exp*0.0.pt": "True",
        "forward_real_data/rank0/Torch*exp*0.0.pt": "True",
        "forward_real_data/Torch*exp*1.0.pt": "SKIP",  # of another call
        "elsewhere/Torch*exp*0.0.pt": "SKIP",
        "forward_real_data/rank1/Torch*exp*0.0.pt": "SKIP",
        "forward_real_data/rank0/../Torch*exp*0.0.pt": "SKIP",
    }
    (tmp_path / "records").mkdir()
    settings = Settings(data_folders=(str(tmp_path / "records"),))
    for path, forward in paths.items():
        outcome = run({"type": "torch.Tensor", "datapath": f"{tmp_path}/{path}"}, settings=settings)
        assert outcome.forward == forward, (path, outcome)


def write(folder, text):
    path = folder / "forward_info_1.json"
    path.write_text(text)
    return str(path)


def lines(records):
    inner = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in records.items())
    return f"{{\n{inner}\n}}"


RECORDS = {f"Torch*exp*{number}": {"args": [GOOD], "kwargs": {}} for number in range(3)}


def verdicts(path):
    forward, backward = read_both(path, None)
    return {key: check(key, each, backward.get(key), Device(), Settings()).forward for key, each in forward.items()}


def test_a_file_that_is_cut_short_loses_its_last_record(tmp_path):
    whole = lines(RECORDS)
    for cut in (len(whole) - 1, len(whole) - 30, whole.index("Torch*exp*2") + 20, whole.index("Torch*exp*2") - 1):
        found = verdicts(write(tmp_path, whole[:cut]))
        assert list(found.values())[:2] == ["True", "True"] and len(found) in (2, 3)
    assert verdicts(write(tmp_path, whole)) == dict.fromkeys(RECORDS, "True")


def test_a_record_that_is_broken_costs_no_other(tmp_path):
    text = lines(RECORDS).replace('"Torch*exp*1": {', '"Torch*exp*1": {{', 1)
    assert verdicts(write(tmp_path, text)) == {"Torch*exp*0": "True", "Torch*exp*1": "SKIP", "Torch*exp*2": "True"}
    text = lines(RECORDS).replace('"Torch*exp*1": ', f'"Torch*exp*1": {"[" * 200_000}', 1)
    assert verdicts(write(tmp_path, text)) == {"Torch*exp*0": "True", "Torch*exp*1": "SKIP", "Torch*exp*2": "True"}
    text = lines(RECORDS).replace('"Max": 1.0', f'"Max": {"9" * 10_000}', 1)
    assert verdicts(write(tmp_path, text))["Torch*exp*1"] == "True"


def test_numbers_of_python_are_read(tmp_path):
    entry = {**GOOD, "Max": float("inf"), "Min": float("-inf"), "Max_except_inf_nan": 1.0, "Min_except_inf_nan": 0.0}
    assert verdicts(write(tmp_path, lines({"Torch*relu*0": {"args": [entry], "kwargs": {}}}))) == {
        "Torch*relu*0": "True"
    }
    entry = {**GOOD, "Max": float("nan"), "Min": float("nan")}
    assert verdicts(write(tmp_path, lines({"Torch*relu*0": {"args": [entry], "kwargs": {}}}))) == {
        "Torch*relu*0": "True"
    }


@pytest.mark.parametrize("text", ["", "[]", "3", "nothing", '"x"'])
def test_other_files_are_refused_with_one_sentence(text, tmp_path):
    with pytest.raises(AitError, match="forward_info_1.json: a JSON object of recorded calls was expected"):
        read_records(write(tmp_path, text))


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "missing.json", tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(AitError):
            read_records(str(path))


def test_bytes_that_are_no_text_cost_their_own_record(tmp_path):
    path = tmp_path / "forward_info_1.json"
    path.write_bytes(lines(RECORDS).encode().replace(b"Torch*exp*1", b"Torch*\xff\xfe*1", 1))
    found = verdicts(str(path))
    assert found["Torch*exp*0"] == found["Torch*exp*2"] == "True" and "SKIP" in found.values()


def test_small_inputs_with_a_huge_result_stay_below_the_bound(tmp_path):
    """In a process of its own, which may not take more."""
    from ait_llm.api_check.workers import limit_memory, run_all

    size = [{"type": "int", "value": 1 << 20}, {"type": "int", "value": 1 << 20}]
    huge = {"args": [size], "kwargs": {}}
    repeat = {"args": [GOOD, {"type": "int", "value": 1 << 40}], "kwargs": {}}
    jobs = [("Torch*zeros*0", huge), ("Tensor*repeat*0", repeat), ("Torch*exp*0", RECORDS["Torch*exp*0"])]

    def start():
        torch.set_num_threads(1)
        limit_memory(BOUND)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def work(job):
            outcome = check(job[0], job[1], None, Device(), Settings(max_bytes=BOUND))
            return outcome, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

        return work

    results = list(run_all(jobs, [start], lambda job, how: (job, how), 60))
    assert [outcome.forward for outcome, _ in results] == ["SKIP", "SKIP", "True"], results
    assert all(grown << 10 < 2 * BOUND for _, grown in results)
