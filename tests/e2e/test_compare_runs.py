"""`ait llm compare` on runs that were fed other tokens, warmed up, or recorded other rounds and ranks."""

import random

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import pairing_runs


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", pairing_runs.KINDS)
def test_runs_are_laid_upon_each_other(ait, tmp_path, kind, seed):
    case = pairing_runs.KINDS[kind](random.Random(seed), tmp_path)
    _, rows = case.compare(ait)
    wanted, found, wrong = case.judge(rows)
    assert not wrong, wrong[:5]
    assert len(found & wanted) >= case.least * len(wanted), sorted(wanted - found)[:10]
