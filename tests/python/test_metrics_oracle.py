"""ait_llm.compare and ait_llm.statistics against the oracle, on every instruction set of this machine."""

import ait_llm
import ml_dtypes
import numpy as np
import oracle
import pytest
from ait_llm import _native

# Maxima and sums: every input here is exact in double and every sum is kept in double, so that only the
# accumulated rounding of the sums remains.
SUM_TOLERANCE = 1e-12
# Quotients of values that differ in their last bits: m/g and 1 agree in most of their digits.
QUOTIENT_TOLERANCE = 1e-9
# KL sums terms of either sign that almost cancel: the absolute part is what cancelling leaves.
KL_ABSOLUTE, KL_RELATIVE = 1e-12, 1e-5

FLOATS = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
]
INTEGERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
# Around the widths of vectors, and around blocks of any sensible size.
SIZES = [1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 255, 1000, 4095, 4096, 4097, 16385, 70_001]


@pytest.fixture(params=_native.simd_targets())
def target(request):
    _native.set_simd_target(request.param)
    assert _native.simd_target() == request.param
    yield request.param
    _native.set_simd_target(None)


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def cast(values, name):
    """Rounds to the type; overflow gives whatever the type has for it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values).astype(dtype_of(name))


def close(value, expected, relative, absolute=0.0):
    expected = float(expected)
    if np.isnan(expected) or np.isinf(expected) or np.isinf(value):
        return value == expected or (np.isnan(value) and np.isnan(expected))
    # Beneath the normal numbers a rounding error is no longer relative.
    return abs(value - expected) <= relative * abs(expected) + absolute + np.finfo(float).tiny


def check_side(measured, expected, sums=SUM_TOLERANCE):
    for count in ("elements", "nan", "positive_inf", "negative_inf"):
        assert getattr(measured, count) == getattr(expected, count), count
    if expected.elements:
        for exact in ("minimum", "maximum"):
            assert close(getattr(measured, exact), getattr(expected, exact), 0), exact
        assert close(measured.mean, expected.mean, sums, sums * float(expected.mean_magnitude)), (
            measured.mean,
            expected.mean,
        )
    assert close(measured.l2_norm, expected.l2_norm, sums)


def check(golden, actual, exact_quotients=False, **request):
    """Compares with ait and with the oracle, and holds one result against the other."""
    measured = ait_llm.compare(golden, actual, **request)
    expected = oracle.compare(
        golden, actual, **{k: v for k, v in request.items() if k not in ("kl", "threads", "non_finite")}
    )
    quotients = SUM_TOLERANCE if exact_quotients else QUOTIENT_TOLERANCE
    for count in ("elements", "compared", "differing", "zero_golden_mismatch", "non_finite_agree"):
        assert getattr(measured, count) == getattr(expected, count), count
    check_side(measured.golden, expected.golden)
    check_side(measured.actual, expected.actual)
    assert not measured.withheld
    if expected.compared == 0:
        return measured
    tolerances = {
        "cosine_similarity": (SUM_TOLERANCE, SUM_TOLERANCE),
        "max_relative_error": (quotients, 0),
        "mean_relative_error": (quotients, 0),
        "max_absolute_error": (SUM_TOLERANCE, 0),
        "mean_absolute_error": (SUM_TOLERANCE, 0),
        "relative_euclidean_distance": (SUM_TOLERANCE, 0),
    }
    if request.get("kl", True):
        tolerances["kl_divergence"] = (KL_RELATIVE, KL_ABSOLUTE)
    for name, (relative, absolute) in tolerances.items():
        value, wanted = getattr(measured, name), getattr(expected, name)
        assert close(value, wanted, relative, absolute), f"{name}: {value!r} where the oracle has {float(wanted)!r}"
    if expected.max_absolute_error > 0:  # without an error no element is the worst
        assert measured.worst_index == expected.worst_index
        assert measured.worst_golden == float(oracle.exact(golden)[measured.worst_index])
        assert measured.worst_actual == float(oracle.exact(actual)[measured.worst_index])
    assert (measured.golden_zero, measured.actual_zero) == (expected.golden_zero, expected.actual_zero)
    for count, (certain, possible) in zip(measured.passes, expected.passes):
        assert certain <= count <= possible
    assert len(measured.passes) == len(expected.passes)
    if request.get("rows"):
        check_rows(measured.row, expected, request.get("kl", True))
    return measured


def check_rows(row, expected, kl):
    assert row.rows == len(expected.row_cosines)
    worst = float(expected.row_cosines.min())
    assert close(row.worst_row_cosine, worst, SUM_TOLERANCE, SUM_TOLERANCE)
    # Rows closer than rounding can tell are equally bad.
    assert close(float(expected.row_cosines[row.worst_row]), worst, SUM_TOLERANCE, SUM_TOLERANCE)
    if kl:
        assert close(row.kl_mean, expected.row_kl.mean(), KL_RELATIVE, KL_ABSOLUTE)
        assert close(row.kl_max, expected.row_kl.max(), KL_RELATIVE, KL_ABSOLUTE)


def noisy(random, size, noise=1e-2):
    golden = random.standard_normal(size)
    return golden, golden * (1 + noise * random.standard_normal(size)) + noise * random.standard_normal(size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_random_values_of_any_size(target, random, name, size):
    golden, actual = noisy(random, size)
    check(cast(golden, name), cast(actual, name))


@pytest.mark.parametrize("golden_type", FLOATS)
@pytest.mark.parametrize("actual_type", FLOATS)
def test_every_pair_of_float_types(target, random, golden_type, actual_type):
    golden, actual = noisy(random, 1001)
    check(cast(golden, golden_type), cast(actual, actual_type))


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("floating", ["float16", "bfloat16", "float32", "float64"])
def test_integers_against_floats(target, random, integer, floating):
    golden = cast(random.integers(0, 2 if integer == "bool" else 100, 777), integer)
    actual = cast(oracle.exact(golden) + random.standard_normal(777), floating)
    check(golden, actual)
    check(actual, golden)


def any_integers(random, name, size):
    raw = random.integers(0, 2 if name == "bool" else 256, size * np.dtype(name).itemsize, dtype=np.uint8)
    return raw.view(name)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_of_the_whole_range(target, random, name):
    golden = any_integers(random, name, 1003)
    actual = golden.copy()
    actual[::7] = any_integers(random, name, len(actual[::7]))
    # KL of values up to 2^64 is a few huge terms: their differences are exact, their exponentials are 0 or 1.
    check(golden, actual, kl=name in ("bool", "int8", "uint8", "int16", "uint16"))


@pytest.mark.parametrize("golden_type", INTEGERS)
@pytest.mark.parametrize("actual_type", INTEGERS)
def test_every_pair_of_integer_types(target, random, golden_type, actual_type):
    golden = random.integers(0, 2, 300).astype(golden_type)
    actual = random.integers(0, 2, 300).astype(actual_type)
    check(golden, actual)


@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_neighbours_beyond_double_are_told_apart(target, name):
    golden = np.array([2**62, 2**62 + 1, 2**53 + 1, 5], name)
    actual = np.array([2**62 + 1, 2**62 + 1, 2**53, 5], name)
    result = ait_llm.compare(golden, actual)
    assert result.differing == 2
    assert result.max_absolute_error == 1
    assert not result.identical


def test_signed_against_unsigned_at_the_end_of_the_range(target):
    golden = np.array([2**64 - 1, 0], np.uint64)
    actual = np.array([-1, -(2**63)], np.int64)
    result = ait_llm.compare(golden, actual)
    assert result.differing == 2
    assert result.max_absolute_error == 2.0**64
    assert result.actual.minimum == -(2.0**63)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_numbers_count_as_pairs(target, random, name):
    golden, actual = noisy(random, (2, 50))
    check((golden[0] + 1j * golden[1]).astype(name), (actual[0] + 1j * actual[1]).astype(name))


SCALES = {
    "float16": [6e-8, 1e-5, 1, 1e3, 1.6e4],
    "bfloat16": [1e-38, 1e-20, 1, 1e20, 1e38],
    "float32": [1e-45, 1e-38, 1e-20, 1, 1e10, 1e20, 1e38],
    "float64": [5e-324, 1e-308, 1e-200, 1e-150, 1, 1e100, 1e154, 1e200, 1e307],
}


@pytest.mark.parametrize("name,scale", [(name, scale) for name, scales in SCALES.items() for scale in scales])
def test_tiny_and_huge_values(target, random, name, scale):
    golden = cast(random.uniform(-4, 4, 500) * scale, name)
    actual = cast(golden.astype(np.float64) * (1 + 0.01 * random.standard_normal(500)), name)
    # exp() of huge differences is 0 or Inf in any precision; ait's KL is checked where it means something.
    check(golden, actual, kl=scale <= 1e4)


@pytest.mark.parametrize("scale", [1e-3, 1, 10, 100, 700, 1e4])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_kl_over_narrow_and_wide_distributions(target, random, name, scale):
    golden = random.standard_normal(5000) * scale
    for noise in (0, 1e-4, 1e-2, 1):
        actual = golden + noise * random.standard_normal(5000)
        check(cast(golden, name), cast(actual, name))


def test_kl_of_unrelated_distributions(target, random):
    check(random.standard_normal(3000) * 20, random.standard_normal(3000) * 20)
    check(np.array([0.0, -800.0]), np.array([-800.0, 0.0]))


@pytest.mark.parametrize("name", FLOATS)
def test_all_zero_sides(target, name):
    zeros, ones = cast(np.zeros(100), name), cast(np.ones(100), name)
    both = check(zeros, zeros)
    assert (both.cosine_similarity, both.relative_euclidean_distance, both.identical) == (1, 0, True)
    golden = check(zeros, ones)
    assert (golden.cosine_similarity, golden.relative_euclidean_distance) == (0, np.inf)
    assert golden.zero_golden_mismatch == 100
    assert check(ones, zeros).cosine_similarity == 0


NON_FINITE = ["float16", "bfloat16", "float32", "float64", "float8_e5m2"]


@pytest.mark.parametrize("name", NON_FINITE)
@pytest.mark.parametrize("where", ["golden", "actual", "same", "apart"])
def test_nan_and_inf_are_counted_and_left_out(target, random, name, where):
    golden, actual = noisy(random, 3000)
    special = np.array([np.nan, np.inf, -np.inf])
    if where in ("golden", "same", "apart"):
        golden[5:8], golden[2000] = special, np.nan
    if where in ("actual", "same"):
        actual[5:8], actual[2000] = special, np.nan
    if where == "apart":
        actual[1500:1503] = special
    check(cast(golden, name), cast(actual, name))


def test_opposite_infinities_do_not_agree(target):
    result = check(np.array([np.inf, 1.0]), np.array([-np.inf, 1.0]))
    assert not result.non_finite_agree
    assert result.compared == 1


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_types_with_nan_but_no_inf(target, random, name):
    golden, actual = noisy(random, 200)
    golden[3], actual[7] = np.nan, np.nan
    check(cast(golden, name), cast(actual, name))


@pytest.mark.parametrize("name", NON_FINITE)
def test_nothing_finite_at_all(target, name):
    for value in (np.nan, np.inf):
        result = check(cast(np.full(70, value), name), cast(np.ones(70), name))
        assert result.compared == 0


def test_withholding(target):
    golden, actual = np.array([1.0, np.nan]), np.array([1.0, 2.0])
    assert ait_llm.compare(golden, actual, non_finite="withhold").withheld
    assert not ait_llm.compare(golden[:1], actual[:1], non_finite="withhold").withheld


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_empty_tensors(target, shape):
    result = ait_llm.compare(np.zeros(shape, np.float32), np.zeros(shape, np.float16), rows=True)
    assert (result.elements, result.compared, result.differing) == (0, 0, 0)
    assert ait_llm.statistics(np.zeros(shape)).elements == 0


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_scalars_and_single_elements(target, name):
    for shape in ((), (1,), (1, 1)):
        check(cast(np.ones(shape), name), cast(np.zeros(shape), name), rows=True)
        check(cast(np.ones(shape), name), cast(np.ones(shape), name), rows=True)


def test_element_counts_must_agree(target):
    with pytest.raises(ait_llm.AitError):
        ait_llm.compare(np.zeros(3), np.zeros(4))


@pytest.mark.parametrize("relative", ["masked", "plain", "damped"])
@pytest.mark.parametrize("epsilon", [2.0**-23, 1e-7, 1e-2, 0.0])
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_every_definition_of_relative_error(target, random, relative, epsilon, name):
    golden, actual = noisy(random, 2000)
    golden[::10] = 0
    golden[1::10] *= 1e-3
    actual[::20] = 0
    if relative == "damped" and epsilon == 0:
        golden[golden == 0] = 1  # 0/0 is nobody's relative error
    check(
        cast(golden, name), cast(actual, name), relative=relative, epsilon=epsilon, thresholds=(1e-3, 5e-3, 1e-2, 0.5)
    )


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_masked_absolute_errors(target, random, name):
    golden, actual = noisy(random, 1000)
    golden[::3] = 0
    request = dict(mask_absolute=True)
    masked = ait_llm.compare(cast(golden, name), cast(actual, name), **request)
    expected = oracle.compare(cast(golden, name), cast(actual, name), **request)
    assert close(masked.max_absolute_error, expected.max_absolute_error, SUM_TOLERANCE)
    assert close(masked.mean_absolute_error, expected.mean_absolute_error, SUM_TOLERANCE)


@pytest.mark.parametrize("thresholds", [(), (0.01,), (0.0,), (1e-3, 1.0, np.inf, 0.0)])
def test_pass_counts(target, random, thresholds):
    golden, actual = noisy(random, 500)
    check(golden, actual, thresholds=thresholds)


def test_the_first_of_equal_errors_is_the_worst(target):
    for name in ("float16", "float32", "float64", "int32"):
        golden = cast(np.zeros(1000), name)
        actual = golden.copy()
        actual[[700, 30, 999]] = 2
        assert ait_llm.compare(golden, actual).worst_index == 30


@pytest.mark.parametrize("shape", [(1, 7), (50, 1), (13, 33), (3, 4, 129), (2, 5000)], ids=str)
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_rows(target, random, name, shape):
    golden, actual = noisy(random, shape)
    actual[-1] = -golden[-1]
    check(cast(golden, name), cast(actual, name), rows=True)


def test_rows_with_zeros_and_nan(target, random):
    golden, actual = noisy(random, (6, 40))
    golden[0], actual[0] = 0, 0
    golden[1] = 0
    golden[2, 5], actual[3, 7] = np.nan, np.inf
    result = check(golden, actual, rows=True)
    assert result.row.worst_row == 1
    assert result.row.worst_row_cosine == 0


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_identical_means_the_same_bits(target, random, name):
    golden = cast(random.standard_normal(5000), name)
    same = check(golden, golden.copy(), rows=True)
    assert same.identical
    assert (same.cosine_similarity, same.max_absolute_error, same.kl_divergence) == (pytest.approx(1, abs=1e-15), 0, 0)
    for at in (0, 2500, 4999):
        other = golden.copy()
        other[at] = np.nextafter(other[at], cast(np.inf, name))
        assert not ait_llm.compare(golden, other).identical
        assert ait_llm.compare(golden, other).differing == 1


def test_identical_across_types_means_the_same_values(target, random):
    golden = random.standard_normal(100).astype(np.float16)
    assert ait_llm.compare(golden, golden.astype(np.float32)).identical
    assert not ait_llm.compare(golden, golden.astype(np.float32) + 1).identical


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(300_000,), (300, 1000)], ids=str)
def test_the_answer_does_not_depend_on_the_thread_count(target, random, name, shape):
    golden, actual = noisy(random, shape)
    golden, actual = cast(golden * 10, name), cast(actual * 10, name)

    def measured(threads):
        result = ait_llm.compare(golden, actual, rows=True, thresholds=(1e-3, 1e-2), threads=threads)
        parts = [result, result.golden, result.actual, result.row]
        return [
            (key, getattr(part, key))
            for part in parts
            for key in dir(part)
            if isinstance(getattr(part, key), (int, float, list))
        ]

    one = measured(1)
    assert len(one) > 40
    assert measured(2) == one
    assert measured(8) == one


def test_strided_and_big_endian_inputs_measure_like_plain_ones(target, random):
    golden, actual = noisy(random, (30, 41))
    plain = check(golden, actual, rows=True)
    for change in (
        np.asfortranarray,
        lambda x: x.astype(">f8"),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: np.flip(np.flip(x).copy()),
    ):
        other = check(change(golden), actual, rows=True)
        assert other.mean_absolute_error == plain.mean_absolute_error
        assert other.kl_divergence == plain.kl_divergence


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
@pytest.mark.parametrize("size", [1, 17, 1000, 70_001])
def test_statistics_of_every_type(target, random, name, size):
    values = cast(random.standard_normal(size) * 3, name) if name in FLOATS else any_integers(random, name, size)
    measured, expected = ait_llm.statistics(values), oracle.side(oracle.exact(values))
    check_side(measured, expected)
    assert close(measured.l1_norm, expected.l1_norm, SUM_TOLERANCE)


@pytest.mark.parametrize("name,scale", [(name, scale) for name, scales in SCALES.items() for scale in scales])
def test_statistics_of_tiny_and_huge_values(target, random, name, scale):
    values = cast(random.uniform(-4, 4, 999) * scale, name)
    measured, expected = ait_llm.statistics(values), oracle.side(oracle.exact(values))
    check_side(measured, expected)
    assert close(measured.l1_norm, expected.l1_norm, SUM_TOLERANCE)


@pytest.mark.parametrize("special", [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [np.nan, np.inf]], ids=str)
@pytest.mark.parametrize("name", NON_FINITE)
def test_statistics_with_nan_and_inf(target, random, name, special):
    values = random.standard_normal(5000)
    values[2500 : 2500 + len(special)] = special
    values = cast(values, name)
    check_side(ait_llm.statistics(values), oracle.side(oracle.exact(values)))
