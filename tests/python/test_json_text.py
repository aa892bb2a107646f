"""JSON that native code lays out, beside what Python's own json writes."""

import json

import pytest
from ait_llm import _native
from hypothesis import given
from hypothesis import strategies as st

_plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_values = st.recursive(_plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


def indented(value, width):
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _native.indented_json(compact.encode(errors="surrogatepass"), width).decode(errors="surrogatepass")


@given(_values, st.integers(0, 6))
def test_as_python_lays_it_out(value, width):
    assert indented(value, width) == json.dumps(value, ensure_ascii=False, indent=width)


@pytest.mark.parametrize("value", [[], {}, [[], {}], {"a": []}, '"[{:,}]\\', {'\\"': ["\\", ","]}, [{}, {"[": "}"}]])
def test_what_is_empty_or_looks_like_something_else(value):
    assert indented(value, 4) == json.dumps(value, indent=4)


def test_text_that_is_no_json_does_no_harm():
    for text in (b"", b"]]]}", b'"open', b'"\\', b"[[[", b"{,:}"):
        _native.indented_json(text, 4)
