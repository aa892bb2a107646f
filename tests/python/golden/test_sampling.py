"""MultinomialOperation and TopkToppSamplingOperation against NumPy, with the random numbers of the C library."""

import ctypes
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden_oracle import assert_caught, assert_sound, golden, normal, numbers
from mutants import mutants_of

TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
I32 = torch.int32
TIE = 2.0**-9

needs_glibc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's rand is the oracle")


def draws(seed, count):
    libc = ctypes.CDLL("libc.so.6")
    libc.srand(ctypes.c_uint(seed))
    return np.array([libc.rand() / 0x7FFFFFFF for _ in range(count)])


def probabilities(rows, words, dtype="float16", seed=0, scale=2.0):
    return torch.softmax(normal(rows, words, dtype="float32", seed=seed, scale=scale), -1).to(TYPES[dtype])


def sums(values):
    """Running sums of each row in its own type, one step after the other."""
    total, steps = torch.zeros(values.shape[0], dtype=values.dtype), []
    for column in values.T:
        total = total + column
        steps.append(total)
    return numbers(torch.stack(steps, 1))


@needs_glibc
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("seed", [0, 1, 12345, 2**31, 2**32 - 1])
def test_multinomial(seed, dtype):
    x = probabilities(5, 70, dtype, seed=seed % 97)
    (expected,) = golden.run(
        "MultinomialOperation", {"numSamples": 64, "randSeed": seed}, [x], outputs=[("int32", (5, 64))]
    )
    over = sums(x)[:, None, :] > draws(seed, 64)[None, :, None]
    oracle = np.where(over.any(-1), over.argmax(-1), 0)
    assert (expected.values == oracle).all()
    exact = np.cumsum(numbers(x), -1)[:, None, :] > draws(seed, 64)[None, :, None]
    if dtype == "float16":  # sums of another precision find a neighbour, which stands for it
        assert_sound(expected, np.where(exact.any(-1), exact.argmax(-1), 0))
    assert_caught(expected, np.where(over.any(-1), over.argmax(-1), 0) + 9)
    late = sums(x)[:, None, :] > draws(seed, 65)[None, 1:, None]
    assert_caught(expected, late.argmax(-1))  # the second number first
    other = sums(x)[:, None, :] > draws(seed ^ 6, 64)[None, :, None]
    assert_caught(expected, other.argmax(-1))  # another seed
    most_likely = np.broadcast_to(numbers(x).argmax(-1)[:, None], (5, 64))
    assert_caught(expected, most_likely)


def test_ties_are_those_that_sums_explain():
    x = torch.tensor([[0.25, 0.0, 0.25, 0.5]]).half()
    (expected,) = golden.run("MultinomialOperation", {"numSamples": 64}, [x], outputs=[("int32", (1, 64))])
    for place, draw in enumerate(draws(0, 64)):
        near = min(abs(draw - limit) for limit in (0.25, 0.5, 1.0))  # beyond the last the answer is 0
        assert (place in expected.ties) == (near <= TIE), draw
        assert 1 not in expected.ties.get(place, ()), "what has no probability is never right"


def sample(kind, probs, topp, topk, random):
    """The definition: positions in the sorted rows, sorted values, running sums, original places, log-probabilities."""
    values, order = torch.sort(probs, dim=-1, descending=True, stable=True)
    if kind == 0:
        values, order = values[:, :topk], order[:, :topk]
        chances = values
    else:
        least = torch.gather(values, 1, topk.long())
        chances = values.masked_fill(values < least, 0)
    running, limit = sums(chances), numbers(topp)
    if kind in (2, 4):
        masked = np.where(running > limit, 0, numbers(chances))
        place = (masked / numbers(random)).argmax(-1)
        kept = (running <= limit) & (numbers(chances) > 0)
        kept[:, 0] = True
        last = kept.sum(-1) - 1
    else:
        last = np.maximum((running < limit).sum(-1) - 1, 0)
        target = np.take_along_axis(running, last[:, None], 1) * numbers(random)
        place = (running <= target if kind == 0 else running < target).sum(-1)
    divisor = np.take_along_axis(running, last[:, None], 1)
    logs = np.where(np.arange(values.shape[1]) <= last[:, None], np.log(numbers(values) / divisor), -9999)
    pick = place[:, None]
    return np.take_along_axis(order.numpy(), pick, 1), np.take_along_axis(numbers(values), pick, 1), logs


def run(kind, probs, topp, topk, random=None, **param):
    inputs = [probs, topk, topp] if kind == 1 else [probs, topk, topp, random]
    rows, size = probs.shape[0], param.get("logProbsSize", 0)
    outputs = [("int32", (rows, 1)), (str(probs.dtype)[6:], (rows, 1)), ("float32", (rows, size))]
    return golden.run(
        "TopkToppSamplingOperation",
        {"topkToppSamplingType": kind, **param},
        inputs,
        outputs=outputs[: 2 + (kind > 2)],
    )


@needs_glibc
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("topk", "seed"), [(1, 0), (20, 7), (300, 2**31 + 5)])
@pytest.mark.parametrize("one_for_all", [False, True])
def test_one_top_k(topk, seed, one_for_all, dtype):
    probs = probabilities(8, 300, dtype)
    topp = (torch.full((1, 1), 0.9) if one_for_all else torch.linspace(0.05, 1, 8)[:, None]).to(probs.dtype)
    outputs = [("int32", (8, 1)), (dtype, (8, 1))]
    param = {"topk": topk, "randSeed": seed}
    index, chance = golden.run("TopkToppSamplingOperation", param, [probs, topp], outputs=outputs)
    numbers_drawn = draws(seed, 8)[:, None]
    expected_index, expected_chance, _ = sample(0, probs, topp, topk, numbers_drawn)
    assert (index.values == expected_index).all()
    assert (chance.values == expected_chance).all()
    if topk > 1:
        assert_caught(index, sample(0, probs, topp, topk, draws(seed + 1, 8)[:, None])[0])  # another seed
        assert_caught(index, numbers(probs).argmax(-1)[:, None])  # always the likeliest
        assert_caught(index, expected_index + 1)
        assert_caught(chance, np.take_along_axis(numbers(probs), (expected_index + 1) % 300, 1))


@needs_glibc
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", [1, 3])
def test_a_top_k_for_each_row(kind, dtype):
    probs = probabilities(8, 200, dtype, seed=kind)
    topp = torch.linspace(0.05, 1, 8)[:, None].to(probs.dtype)
    topk = torch.tensor([[1, 5, 30, 199, 60, 100, 2, 10]], dtype=I32).T.contiguous()
    seeds = [3, 3, 0, 99, 2**32 - 1, 5, 6, 7]
    random = torch.rand(8, 1, generator=torch.Generator().manual_seed(1)) if kind == 3 else None
    outputs = run(kind, probs, topp, topk, random, randSeeds=seeds, logProbsSize=150)
    drawn = random if kind == 3 else np.array([draws(seed, 1) for seed in seeds])
    index, chance, logs = sample(kind, probs, topp, topk, drawn)
    assert (outputs[0].values == index).all()
    assert (outputs[1].values == chance).all()
    assert_caught(outputs[0], sample(kind, probs, topp, topk, 1 - drawn)[0])
    assert_caught(outputs[0], sample(kind, probs, topp, torch.full_like(topk, 199), drawn)[0])  # top-k not read
    assert_caught(outputs[0], sample(kind, probs, topp.flip(0), topk, drawn)[0])  # the limits of other rows
    if kind == 3:
        defined = ~outputs[2].undefined if outputs[2].undefined is not None else np.ones((8, 150), bool)
        assert np.allclose(outputs[2].values[defined], logs[:, :150][defined], rtol=1e-12)
        assert_sound(outputs[2], logs[:, :150].astype(np.float32))
        assert_caught(outputs[2], numbers(torch.sort(probs, dim=-1, descending=True)[0].double().log())[:, :150])
        assert_caught(outputs[2], np.where(logs[:, :150] == -9999, -np.inf, logs[:, :150]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", [2, 4])
def test_the_largest_quotient(kind, dtype):
    probs = probabilities(8, 200, dtype, seed=kind)
    topp = torch.linspace(0.2, 0.95, 8)[:, None].to(probs.dtype)
    topk = torch.tensor([[1, 5, 30, 199, 60, 100, 2, 10]], dtype=I32).T.contiguous()
    divisors = torch.empty(8, 200).exponential_(generator=torch.Generator().manual_seed(2)).to(probs.dtype) + 2**-8
    outputs = run(kind, probs, topp, topk, divisors, logProbsSize=200)
    index, chance, logs = sample(kind, probs, topp, topk, divisors)
    assert (outputs[0].values == index).all()
    assert (outputs[1].values == chance).all()
    assert_caught(outputs[0], sample(kind, probs, topp, topk, 1 / divisors)[0])  # multiplied
    assert_caught(outputs[0], sample(kind, probs, torch.ones_like(topp) * 2, topk, divisors)[0])  # top-p not read
    # Random numbers of words in place of places in the sorted row.
    by_word = torch.gather(divisors, 1, torch.sort(probs, dim=-1, descending=True, stable=True)[1])
    assert_caught(outputs[0], sample(kind, probs, topp, topk, by_word)[0])
    if kind == 4:
        assert_sound(outputs[2], logs.astype(np.float32))
        assert_caught(outputs[2], np.where(logs == -9999, logs, logs + 0.1))


@mutants_of("MultinomialOperation")
def wrong_multinomials(trial):
    x = probabilities(5, 70)
    (expected,) = trial.run({"numSamples": 64, "randSeed": 12345}, [x], outputs=[("int32", (5, 64))])

    def drawn(numbers_drawn, shift=0):
        return (sums(x)[:, None, :] > numbers_drawn[None, :, None]).argmax(-1) + shift

    trial.sound(expected, drawn(draws(12345, 64)))
    trial.caught("another seed", expected, drawn(draws(12346, 64)))
    trial.caught("the second random number first", expected, drawn(draws(12345, 65)[1:]))
    trial.caught("always the likeliest", expected, np.broadcast_to(numbers(x).argmax(-1)[:, None], (5, 64)))
    trial.caught("places counted from one", expected, drawn(draws(12345, 64), shift=1))
    every_row = np.concatenate([drawn(draws(12345, 320)[row * 64 : row * 64 + 64])[row : row + 1] for row in range(5)])
    trial.caught("other random numbers for each row", expected, every_row)


@mutants_of("TopkToppSamplingOperation")
def wrong_samplings(trial):
    probs, param = probabilities(8, 300), {"topk": 20, "randSeed": 7}
    topp = torch.linspace(0.05, 1, 8)[:, None].half()
    index, chance = trial.run(param, [probs, topp], outputs=[("int32", (8, 1)), ("float16", (8, 1))])
    numbers_drawn = draws(7, 8)[:, None]
    right, right_chance, _ = sample(0, probs, topp, 20, numbers_drawn)
    trial.sound(index, right)
    trial.sound(chance, right_chance)
    trial.caught("another seed", index, sample(0, probs, topp, 20, draws(8, 8)[:, None])[0])
    trial.caught("always the likeliest", index, numbers(probs).argmax(-1)[:, None])
    trial.caught("words counted from one", index, right + 1)
    trial.caught("the limits of other rows", index, sample(0, probs, topp.flip(0), 20, numbers_drawn)[0])
    trial.caught("top-p not read", index, sample(0, probs, torch.ones_like(topp), 20, numbers_drawn)[0])
    trial.caught(
        "places in the sorted row", index, (sums(torch.sort(probs, descending=True)[0]) > 0.5).argmax(-1)[:, None]
    )


def test_words_of_the_same_probability_stand_for_each_other():
    probs = torch.full((1, 8), 0.125).half()
    index, chance = golden.run(
        "TopkToppSamplingOperation", {"topk": 4}, [probs, torch.tensor([[1.0]]).half()], outputs=[("int32", (1, 1))] * 2
    )
    assert index.ties[0] == tuple(range(8))
    assert chance.values == 0.125 and not chance.ties


def test_rows_with_nan_are_left_open():
    probs = probabilities(3, 10)
    probs[1, 4] = float("nan")
    (expected,) = golden.run("MultinomialOperation", {"numSamples": 2}, [probs])
    assert expected.undefined.tolist() == [[False] * 2, [True] * 2, [False] * 2]
    for output in golden.run("TopkToppSamplingOperation", {"topk": 4}, [probs, torch.tensor([[0.9]]).half()]):
        assert output.undefined.tolist() == [[False], [True], [False]]


def test_what_cannot_be_computed_says_so():
    probs, topp, topk = probabilities(2, 10), torch.tensor([[0.9]]).half(), torch.tensor([[3], [4]], dtype=I32)
    seeds = {"randSeeds": [1, 2]}
    for name, param, inputs, words in [
        ("Multinomial", {"numSamples": 65}, [probs], "numSamples 65"),
        ("Multinomial", {"numSamples": 0}, [probs], "numSamples 0"),
        ("Multinomial", {}, [probs[0]], "not two dimensions"),
        ("TopkToppSampling", {"topkToppSamplingType": -1}, [probs, topp], "topkToppSamplingType -1"),
        ("TopkToppSampling", {"topkToppSamplingType": 5}, [probs, topp], "not in range"),
        ("TopkToppSampling", {"topk": 11}, [probs, topp], "topk 11 is not between 1 and the 10"),
        ("TopkToppSampling", {"topk": 3}, [probs, torch.ones(3, 1).half()], "topp has 3 elements for 2 rows"),
        ("TopkToppSampling", {"topkToppSamplingType": 1}, [probs, topk, topp], "0 randSeeds for 2 rows"),
        ("TopkToppSampling", {"topkToppSamplingType": 1, **seeds}, [probs, topk + 7, topp], "topk has the element 11"),
        ("TopkToppSampling", {"topkToppSamplingType": 1, **seeds}, [probs, topk.float(), topp], "not of whole numbers"),
        ("TopkToppSampling", {"topkToppSamplingType": 2}, [probs, topk, topp, topp], "probs and exp have the shapes"),
        (
            "TopkToppSampling",
            {"topkToppSamplingType": 3, "logProbsSize": 11},
            [probs, topk, topp, topp],
            "logProbsSize 11",
        ),
        ("TopkToppSampling", {"topkToppSamplingType": 3}, [probs, topk, topp], r"input 3 \(rand\) was not recorded"),
    ]:
        with pytest.raises(Exception, match=words):
            golden.run(name + "Operation", param, inputs)
