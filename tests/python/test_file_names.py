"""Names of files that come from ids, modules and keys (ait_llm._file_names)."""

import os

from ait_llm._file_names import file_name, part_of_name
from hypothesis import given
from hypothesis import strategies as st

# Halves of characters, too: str holds them, and no file system takes them.
TEXTS = st.text(
    st.characters(categories=["L", "N", "P", "S", "Z", "C", "Cs"]) | st.sampled_from("./%#~\0\n\ud800\udc80")
)


@given(TEXTS)
def test_a_name_stays_in_its_folder_and_in_sight(text):
    name = file_name(text)
    assert "/" not in name and "\0" not in name and not name.startswith(".")
    os.fsencode(name)
    assert part_of_name(text, "#").find("#") == -1


@given(TEXTS, TEXTS)
def test_different_texts_have_different_names(one, other):
    assert (file_name(one) == file_name(other)) == (one == other)
    assert (part_of_name(one, "#") == part_of_name(other, "#")) == (one == other)


def test_ordinary_texts_are_their_own_names():
    for text in ("0", "data_1700000000.25_0", "root.model.layers.0", "zürich 图层", "a b", "~"):
        assert file_name(text) == part_of_name(text, "#") == text
    assert file_name("../x") == "%2E%2E%2Fx"
    assert part_of_name("a#1", "#") == "a%231"
