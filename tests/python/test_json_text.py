"""JSON that native code writes, beside what Python's own json writes."""

import enum
import json
import os

import pytest
from ait_llm import _native
from hypothesis import given
from hypothesis import strategies as st

_text = st.text(st.characters(blacklist_categories=["Cs"]))
_plain = st.none() | st.booleans() | st.integers() | st.floats() | _text
_values = st.recursive(
    _plain, lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(_text, inner), max_leaves=30
)


@given(_values, st.integers(0, 6))
def test_as_python_writes_it(value, width):
    assert _native.json_text(value, width).decode() == json.dumps(value, ensure_ascii=False, indent=width)


@pytest.mark.parametrize(
    "value", [[], {}, [[], {}], {"a": []}, '"[{:,}]\\', {'\\"': ["\\", ","]}, "".join(map(chr, range(128)))]
)
def test_what_is_empty_or_has_to_be_escaped(value):
    assert _native.json_text(value, 4).decode() == json.dumps(value, ensure_ascii=False, indent=4)


class Colour(enum.IntEnum):
    RED = 3

    def __str__(self):
        return "red"


def test_an_enumeration_is_its_number():
    assert _native.json_text([Colour.RED], 0) == json.dumps([Colour.RED], indent=0).encode()


def test_names_of_files_that_are_no_utf_8_are_written_as_they_are():
    assert _native.json_text([os.fsdecode(b"a\xff")], 1) == b'[\n "a\xff"\n]'


def test_what_json_has_no_words_for_is_refused():
    endless = []
    endless.append(endless)
    for value in (object(), {1: 2}, [b"bytes"], endless):
        with pytest.raises((TypeError, ValueError)):
            _native.json_text(value, 1)
