"""Dumps of msprobe's probe for the acceleration library, which runs on an NPU: written as its sources do."""

import numpy as np
import pytest
from conftest import atb_bin, error_line


def linked(array, dtype_code, target):
    """A tensor that another file holds."""
    dims = ",".join(str(size) for size in array.shape)
    header = f"$Version=1.0\n$Object.Count=0\n$Object.Length=0\nformat=2\ndtype={dtype_code}\ndims={dims}\n"
    return (header + f"data={target}\n$End=1\n").encode()


def tensor(start):
    return (np.arange(8, dtype=np.float32) + start).reshape(2, 4)


OPERATION = "13_Layer/1_Attention/6_LinearOperation"
FILES = {
    "13_Layer/before/intensor0.bin": tensor(0),
    "13_Layer/1_Attention/before/intensor0.bin": "13_intensor0.bin",
    f"{OPERATION}/before/intensor0.bin": "13_1_intensor0.bin",
    f"{OPERATION}/before/intensor1_weight.bin": tensor(50),
    f"{OPERATION}/after/outtensor0.bin": tensor(100),
    f"{OPERATION}/0_MatMulKernel/before/intensor0.bin": "intensor0.bin",
    f"{OPERATION}/0_MatMulKernel/before/intensor1.bin": "intensor1.bin",
    f"{OPERATION}/0_MatMulKernel/after/outtensor0.bin": "outtensor0.bin",
    "13_Layer/1_Attention/after/outtensor0.bin": "13_1_6_outtensor0.bin",
    "13_Layer/after/outtensor0.bin": tensor(200),
}
VALUES = {
    "13_Layer/1_Attention/before/intensor0.bin": 0,
    f"{OPERATION}/before/intensor0.bin": 0,
    f"{OPERATION}/0_MatMulKernel/before/intensor0.bin": 0,
    f"{OPERATION}/0_MatMulKernel/before/intensor1.bin": 50,
    f"{OPERATION}/0_MatMulKernel/after/outtensor0.bin": 100,
    "13_Layer/1_Attention/after/outtensor0.bin": 100,
}


def write_dump(root):
    round_ = root / "atb_dump_data" / "data" / "0_4711" / "0"
    for name, content in FILES.items():
        path = round_ / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(linked(tensor(0), 0, content) if isinstance(content, str) else atb_bin(content, 0))
    return round_


@pytest.mark.parametrize("name", VALUES)
def test_links_are_numbers_of_operations(tmp_path, ait, name):
    round_ = write_dump(tmp_path)
    process = ait("llm", "convert", round_ / name, "x.npy")
    assert process.returncode == 0, process.stderr
    assert np.array_equal(np.load(tmp_path / "x.npy"), tensor(VALUES[name]))


def test_a_dump_with_links_is_compared(tmp_path, compare):
    write_dump(tmp_path / "golden")
    write_dump(tmp_path / "my")
    process = compare("-o", "out", golden="golden", my="my")
    assert process.returncode == 0 and ", 0 differ, 0 could not be compared" in process.stdout, process.stdout


def test_links_that_lead_in_a_circle_or_nowhere_are_refused(tmp_path, ait):
    round_ = write_dump(tmp_path)
    path = round_ / "13_Layer" / "1_Attention" / "before" / "intensor0.bin"
    path.write_bytes(linked(tensor(0), 0, "13_1_intensor0.bin"))
    assert "lead on and on" in error_line(ait("show", path))
    path.write_bytes(linked(tensor(0), 0, "13_7_intensor0.bin"))
    assert "cannot be read" in error_line(ait("show", path))
    path.write_bytes(linked(tensor(0), 0, "../../../../../../../../etc/passwd"))
    assert "outside the dump" in error_line(ait("show", path))
    (tmp_path / "outside" / "before").mkdir(parents=True)
    (tmp_path / "outside" / "before" / "intensor0.bin").write_bytes(atb_bin(tensor(7), 0))
    (round_ / "99_Layer").symlink_to(tmp_path / "outside")
    path.write_bytes(linked(tensor(0), 0, "99_intensor0.bin"))
    assert "outside the dump" in error_line(ait("show", path))


HEADER = (
    "Device and PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Index,Dtype,Format,Shape,Max,Min,Mean,Norm,"
    "Tensor Path"
)


def write_statistics(root, change=0.0, rounds=2):
    """What "task": "statistics" leaves: a table a round, with six decimals, and parameters."""
    for number in range(rounds):
        round_ = root / "atb_dump_data" / "data" / "0_4711" / str(number)
        (round_ / OPERATION).mkdir(parents=True)
        (round_ / OPERATION / "op_param.json").write_text('{"hasBias": false}')
        lines = [HEADER]
        for name, ids, direction, start in (
            ("Layer", "13", "input", 0),
            ("Layer/Attention/LinearOperation", "13_1_6", "input", 0),
            ("Layer/Attention/LinearOperation", "13_1_6", "output", 100 + change * number),
            ("Layer", "13", "output", 200),
        ):
            value = tensor(start).astype(np.float64)
            numbers = [value.max(), value.min(), value.mean(), np.linalg.norm(value)]
            cells = ["0_4711", number, name, name.split("/")[-1], ids, direction, 0, "float", "nd", "2x4"]
            lines.append(",".join(map(str, [*cells, *(f"{each:.6f}" for each in numbers), "N/A"])))
        (round_ / "statistic.csv").write_text("\n".join(lines) + "\n")


def test_tables_of_statistics_are_runs(tmp_path, compare, ait):
    write_statistics(tmp_path / "golden")
    write_statistics(tmp_path / "same")
    write_statistics(tmp_path / "other", 5.0)
    process = compare("-o", "same_out", golden="golden", my="same")
    assert "No fault" in process.stdout and "0 could not be compared" in process.stdout, process.stdout
    compare("-o", "other_out", golden="golden", my="other")
    rows = next((tmp_path / "other_out").glob("*.csv")).read_text().splitlines()
    (row,) = [row for row in rows if row.startswith("1,") and f"{OPERATION}/outtensor0" in row]
    assert "the relative euclidean distance is at least" in row and "statistic.csv:" in row
    shown = ait("show", tmp_path / "golden/atb_dump_data/data/0_4711/0/statistic.csv")
    assert f"{OPERATION}/after/outtensor0" in shown.stdout and "statistic.csv, 4 tensors" in shown.stdout


def test_statistics_are_compared_with_tensors(tmp_path, compare):
    write_statistics(tmp_path / "golden", rounds=1)
    write_dump(tmp_path / "my")
    process = compare("-o", "out", golden="golden", my="my")
    assert "Fault" not in process.stdout and ", 0 differ, 0 could not be compared" in process.stdout, process.stdout
    assert "holds statistics only" in next((tmp_path / "out").glob("*.csv")).read_text()
