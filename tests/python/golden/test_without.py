"""Operations of the library without a golden say which fact is missing, those that the documents name among them."""

import pathlib
import re

import pytest

pytest.importorskip("torch")

from golden_oracle import golden

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/opcheck_operators.md"
SECTION = re.search(r"## Operations without a golden\n(.*?)\n## ", PAGE.read_text(encoding="utf-8"), re.DOTALL).group(1)
NAMES = re.findall(r"`(\w+)`", SECTION)


@pytest.mark.parametrize("name", NAMES)
def test_says_what_is_missing(name):
    with pytest.raises(Exception, match=f"^{name}Operation: no golden: \\w+"):
        golden.run(f"{name}Operation", {}, [])


def test_an_unknown_operation_is_not_supported():
    assert len(NAMES) == len(set(NAMES)) == 18
    with pytest.raises(Exception, match="FrobnicateOperation: operation type not supported"):
        golden.run("FrobnicateOperation", {}, [])
