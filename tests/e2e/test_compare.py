"""`ait llm compare` on two files."""

import csv
import json
import math
import os
import re
import stat

import numpy as np
import pytest
from conftest import atb_bin, error_line

SEED_COLUMNS = (
    "token_id data_id golden_data_path golden_dtype golden_shape golden_max_value golden_min_value "
    "golden_mean_value my_data_path my_dtype my_shape my_max_value my_min_value my_mean_value "
    "cosine_similarity max_relative_error mean_relative_error max_absolute_error "
    "mean_absolute_error kl_divergence relative_euclidean_distance cmp_fail_reason"
).split()
EXTENDED_COLUMNS = (
    "zero_golden_mismatch golden_nan golden_inf my_nan my_inf non_finite_agree differing_elements "
    "elements worst_index worst_golden worst_my worst_row worst_row_cosine "
    "kl_divergence_per_row_mean kl_divergence_per_row_max identical golden_l2norm my_l2norm "
    "golden_operation golden_op_type golden_rank golden_transform my_operation my_op_type my_rank my_transform "
    "pairing pairing_reason verdict verdict_error verdict_expected verdict_reason "
    "my_headroom_fp16 my_headroom_bf16 my_headroom_fp8 my_saturated my_flushed_to_zero "
    "distance_at_least estimated_distance estimated_distance_most estimated_cosine"
).split()
METRICS = SEED_COLUMNS[14:21]

MASK_EPSILON = 2.0**-23
JSON_TOLERANCE = 1e-9  # sums of doubles in another order
CSV_TOLERANCE = 1e-6  # the csv is rounded to float32


def expected_metrics(golden, actual):
    """The seven metrics in float64, from their definitions."""
    g, m = golden.astype(np.float64).ravel(), actual.astype(np.float64).ravel()
    keep = np.abs(g) > MASK_EPSILON
    relative = np.where(keep, np.abs(m / np.where(keep, g, 1) - 1), 0)
    absolute = np.abs(m - g)
    softmax = [np.exp(x - x.max()) / np.exp(x - x.max()).sum() for x in (g, m)]
    return {
        "cosine_similarity": g @ m / (np.linalg.norm(g) * np.linalg.norm(m)),
        "max_relative_error": relative.max(),
        "mean_relative_error": relative.mean(),
        "max_absolute_error": absolute.max(),
        "mean_absolute_error": absolute.mean(),
        "kl_divergence": np.sum(softmax[0] * np.log(softmax[0] / softmax[1])),
        "relative_euclidean_distance": np.linalg.norm(m - g) / np.linalg.norm(g),
    }


def read_report(folder):
    (report,) = folder.glob("*.csv")
    assert {path.name for path in folder.iterdir()} == {report.name, f"{report.stem}.rows"}
    with report.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return report, rows


def json_row(process):
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)["rows"][0]


def test_prints_the_metrics_both_sides_and_the_worst_element(compare, pair):
    process = compare()
    assert process.returncode == 0
    assert process.stderr == ""
    for metric in METRICS:
        assert re.search(rf"^{metric} +\S+$", process.stdout, re.MULTILINE), metric
    assert "[1, 0, 2] (flat index 14)" in process.stdout
    assert "golden  torch.float32  [2, 3, 4]" in process.stdout


def test_json_agrees_with_numpy(compare, pair):
    row = json_row(compare("--json"))
    for name, value in expected_metrics(*pair).items():
        assert row[name] == pytest.approx(value, rel=JSON_TOLERANCE), name
    assert list(row) == SEED_COLUMNS
    assert row["golden_shape"] == [2, 3, 4]
    assert row["golden_mean_value"] == pytest.approx(pair[0].mean(dtype=np.float64))


def test_the_report_has_the_seeds_columns_and_numbers(compare, pair, tmp_path):
    process = compare("-o", "out")
    report, rows = read_report(tmp_path / "out")
    assert re.fullmatch(r"ait_cmp_report_\d{14}\.csv", report.name)
    assert f"Report: out/{report.name}" in process.stdout
    assert rows[0] == SEED_COLUMNS
    assert len(rows) == 2
    row = dict(zip(*rows))
    for name, value in expected_metrics(*pair).items():
        assert float(row[name]) == pytest.approx(value, rel=CSV_TOLERANCE), name
    assert (row["token_id"], row["data_id"]) == ("0", "0")
    assert row["golden_data_path"] == "golden.npy"
    assert row["my_dtype"] == "torch.float32"
    assert row["my_shape"] == "[2, 3, 4]"
    assert row["golden_max_value"] == "1.375"
    assert row["max_absolute_error"] == "0.5"
    assert row["cmp_fail_reason"] == ""
    assert row["cosine_similarity"] == repr(round(float(expected_metrics(*pair)["cosine_similarity"]), 10))


def test_reports_and_their_folders_are_for_the_group_only(compare, pair, tmp_path):
    compare("-o", "deep/out", preexec_fn=lambda: os.umask(0))
    report, _ = read_report(tmp_path / "deep" / "out")
    assert stat.S_IMODE(report.stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o750


def test_two_reports_of_one_second_are_two_files(compare, pair, tmp_path):
    for _ in range(5):
        assert compare("-o", "out").returncode == 0
    assert len(list((tmp_path / "out").glob("*.csv"))) == 5
    assert len(list((tmp_path / "out").glob("*.rows"))) == 5


def test_extended_columns_follow_the_reason(compare, pair, tmp_path):
    compare("-o", "out", "--extended")
    _, rows = read_report(tmp_path / "out")
    assert rows[0] == SEED_COLUMNS + EXTENDED_COLUMNS
    row = dict(zip(*rows))
    assert row["differing_elements"] == "1"
    assert row["elements"] == "24"
    assert row["worst_index"] == "14"
    assert row["worst_row"] == "3"
    assert row["identical"] == "False"
    assert float(row["golden_l2norm"]) == pytest.approx(np.linalg.norm(pair[0]), rel=CSV_TOLERANCE)


def test_a_pair_given_in_the_seeds_spelling_and_formats(ait, tmp_path):
    torch = pytest.importorskip("torch")
    golden = torch.arange(6).reshape(1, 2, 3).half()
    torch.save(golden, tmp_path / "xx.pth")
    (tmp_path / "xx.bin").write_bytes(atb_bin(golden.reshape(2, 3).numpy(), 1))
    process = ait("llm", "compare", "-gp=xx.pth", "-mp", "xx.bin", "--json")
    row = json_row(process)
    assert row["cosine_similarity"] == 1
    assert row["cmp_fail_reason"] == ""


def test_picks_tensors_of_containers_by_name(compare, pair, tmp_path):
    np.savez(tmp_path / "both.npz", a=pair[0], b=pair[1])
    row = json_row(compare("--json", "--golden-name", "a", "--my-name", "b", golden="both.npz", my="both.npz"))
    assert row["max_absolute_error"] == 0.5
    line = error_line(compare(golden="both.npz"))
    assert "a, b" in line and "--golden-name" in line


def test_bare_bytes_with_a_given_type_and_shape(compare, pair, tmp_path):
    pair[1].tofile(tmp_path / "actual.raw")
    row = json_row(compare("--json", "--my-dtype", "float32", "--my-shape", "2,3,4", my="actual.raw"))
    assert row["my_shape"] == [2, 3, 4]
    assert row["max_absolute_error"] == 0.5


def test_equal_counts_of_other_shape_are_compared_flattened(compare, pair, tmp_path):
    np.save(tmp_path / "actual.npy", pair[1].reshape(4, 6))
    row = json_row(compare("--json"))
    assert row["cmp_fail_reason"] == "shape differs, compared flattened."
    assert row["max_absolute_error"] == 0.5


def test_different_counts_leave_the_metrics_empty(compare, pair, tmp_path):
    np.save(tmp_path / "actual.npy", pair[1][0])
    assert compare("-o", "out").returncode == 0
    row = dict(zip(*read_report(tmp_path / "out")[1]))
    assert row["cmp_fail_reason"] == "data shape doesn't match."
    assert all(row[metric] == "" for metric in METRICS)
    assert row["my_max_value"] == "-0.125"


def test_non_finite_values_are_left_out_and_named(compare, pair, tmp_path):
    golden, actual = pair
    actual[0, 0, 0] = np.nan
    actual[0, 0, 1] = np.inf
    np.save(tmp_path / "actual.npy", actual)
    row = json_row(compare("--json", "--extended"))
    assert row["cmp_fail_reason"] == "my_data includes NAN or inf."
    keep = np.isfinite(actual)
    for name, value in expected_metrics(golden[keep], actual[keep]).items():
        assert row[name] == pytest.approx(value, rel=JSON_TOLERANCE), name
    assert (row["my_nan"], row["my_inf"], row["non_finite_agree"]) == (1, 1, False)
    assert row["my_max_value"] == "nan"


def test_a_single_pair_names_the_element_that_is_finite_on_one_side_only(compare, pair, tmp_path):
    golden, _ = pair
    actual = golden.copy()
    actual[0, 2, 1] = np.nan
    actual[1, 2, 0:3] = np.inf
    np.save(tmp_path / "actual.npy", actual)
    process = compare()
    line = "4 of 24 values are NaN or infinite on one side only; the first is at "
    line += "[0, 2, 1] (flat index 9): golden -0.375, my nan"
    assert line in process.stdout.splitlines()
    assert "Every other value is the same." in process.stdout
    assert "largest difference" not in process.stdout
    found = json.loads(compare("--json").stdout)["non_finite"]
    assert found == {"elements": 4, "first_index": 9, "golden": -0.375, "my": "nan"}
    actual[0, 0, 0] += 1
    np.save(tmp_path / "actual.npy", actual)
    shown = compare().stdout
    assert line in shown
    assert "1 other value differs; the largest difference is at [0, 0, 0] (flat index 0): golden -1.5, my -0.5" in shown
    np.save(tmp_path / "actual.npy", np.full_like(golden, np.nan))
    assert "24 of 24 values are NaN or infinite on one side only; the first is at [0, 0, 0]" in compare().stdout
    assert json.loads(compare("--json", my="golden.npy").stdout)["non_finite"] is None


def test_metric_compat_msit_withholds_and_masks(compare, pair, tmp_path):
    golden, actual = pair
    golden[0, 0, 0] = 0
    np.save(tmp_path / "golden.npy", golden)
    assert json_row(compare("--json"))["max_absolute_error"] == 1.5
    assert json_row(compare("--json", "--metric-compat", "msit"))["max_absolute_error"] == 0.5
    actual[0, 0, 0] = np.nan
    np.save(tmp_path / "actual.npy", actual)
    row = json_row(compare("--json", "--metric-compat", "msit"))
    assert row["cosine_similarity"] is None
    assert row["cmp_fail_reason"] == "my_data includes NAN or inf."


def test_metric_compat_ait_has_no_square_root(compare, pair):
    root = json_row(compare("--json", "--metric-compat", "msit"))["relative_euclidean_distance"]
    square = json_row(compare("--json", "--metric-compat", "ait"))["relative_euclidean_distance"]
    assert square == pytest.approx(root**2, rel=1e-12)


def test_a_zero_golden_is_infinitely_far_away(compare, pair, tmp_path):
    np.save(tmp_path / "golden.npy", np.zeros_like(pair[0]))
    row = json_row(compare("--json"))
    assert row["relative_euclidean_distance"] == "inf"
    assert row["cmp_fail_reason"] == "golden_data is all zero."
    assert compare("-o", "out").returncode == 0
    assert dict(zip(*read_report(tmp_path / "out")[1]))["relative_euclidean_distance"] == "inf"


def test_identical_files_say_so(compare, pair):
    process = compare(my="golden.npy")
    assert "Every element is identical." in process.stdout


def test_large_integers_that_differ_look_different(compare, pair, tmp_path):
    np.save(tmp_path / "golden.npy", np.array([2**63 - 1, 0]))
    np.save(tmp_path / "actual.npy", np.array([2**63 - 2, 0]))
    process = compare()
    assert "golden 9223372036854775807, my 9223372036854775806" in process.stdout
    np.save(tmp_path / "golden.npy", np.array([2**32 - 1], np.uint32))
    np.save(tmp_path / "actual.npy", np.array([2**32 - 2], np.uint32))
    assert compare("-o", "out").returncode == 0
    row = dict(zip(*read_report(tmp_path / "out")[1]))
    assert (row["golden_max_value"], row["my_min_value"], row["max_absolute_error"]) == (
        "4294967295",
        "4294967294",
        "1",
    )


@pytest.mark.parametrize(
    "condition, status",
    [
        ("cosine_similarity<0.999", 1),
        ("cosine_similarity<0.5", 0),
        ("max_absolute_error>0.4", 1),
        ("max_absolute_error>0.5", 0),
        ("failed", 0),
        ("nan", 0),
        ("unmatched", 0),
        ("nan,differing_elements>0", 1),
        ("worst_row_cosine<0.99", 1),
    ],
)
def test_fail_on_decides_the_status(compare, pair, condition, status):
    process = compare("--fail-on", condition)
    assert process.returncode == status, process.stderr
    assert ("is met" in process.stderr) == (status == 1)
    assert process.stdout.startswith("metric")


def test_fail_on_failed_is_met_by_a_shape_mismatch(compare, pair, tmp_path):
    np.save(tmp_path / "actual.npy", pair[1][0])
    process = compare("--fail-on", "failed", "--json")
    assert process.returncode == 1
    assert json.loads(process.stdout)["fail_on_met"] == ["failed"]


def test_results_do_not_depend_on_the_thread_count(compare, tmp_path):
    random = np.random.default_rng(5)
    golden = random.standard_normal((300, 1000)).astype(np.float32)
    np.save(tmp_path / "golden.npy", golden)
    np.save(tmp_path / "actual.npy", golden + random.standard_normal(golden.shape).astype(np.float32))
    one, two, many = (compare("--json", "--extended", "--threads", n).stdout for n in (1, 2, 7))
    assert one == two == many


def test_statistics_alone_of_a_single_pair(compare, pair, tmp_path):
    golden, actual = (array.astype(np.float64) for array in pair)
    row = json_row(compare("--json", "--stats"))
    assert row["max_stat_absolute_error"] == pytest.approx(abs(actual.max() - golden.max()))
    assert row["l2norm_stat_relative_error"] == pytest.approx(np.linalg.norm(actual) / np.linalg.norm(golden) - 1)
    assert "--extended has no effect" in error_line(compare("--stats", "--extended"))


def test_the_old_result_line_is_in_the_debug_log(compare, pair):
    import ast

    process = compare("-l", "debug")
    line = next(line for line in process.stderr.splitlines() if "Compared results: " in line)
    values = ast.literal_eval(line.split("Compared results: ", 1)[1])
    assert list(values) == METRICS + ["cmp_fail_reason"]
    assert math.isclose(values["max_absolute_error"], 0.5)
    assert "Compared results" not in compare().stderr


def test_the_mapping_file_must_exist(compare, pair, tmp_path):
    assert "mapping file" in error_line(compare("-mf", "nowhere"))
    assert "holds no op_mapping_file.json" in error_line(compare("-mf", tmp_path))


def test_options_for_dumps_are_refused_for_two_files(compare, pair, tmp_path):
    (tmp_path / "types.json").write_text('{"Linear": "Linear"}')
    assert "--op-mapping-file has no effect on two files of one tensor each" in error_line(compare("-mf", "types.json"))
    assert "--cmp-level has no effect on two files of one tensor" in error_line(compare("--cmp-level", "logits"))
    assert "--token-map has no effect on two files" in error_line(compare("--token-map", "0:0"))


def test_a_formula_in_a_path_is_disarmed(compare, pair, tmp_path):
    (tmp_path / "golden.npy").rename(tmp_path / "=1+1.npy")
    assert compare("-o", "out", golden="=1+1.npy").returncode == 0
    assert dict(zip(*read_report(tmp_path / "out")[1]))["golden_data_path"] == "'=1+1.npy"
