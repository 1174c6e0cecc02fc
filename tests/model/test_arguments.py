"""Raw arguments are read strictly: one object, or a fault that names the tool."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropa.messages import dumps
from tropa.model import RawCall, parse_arguments
from tropa.model.arguments import is_cut


@pytest.mark.parametrize("given", ["", "  \n", None, "null", " null "])
def test_nothing_given_is_no_arguments(given):
    assert parse_arguments(RawCall("t", given)) == ({}, None, None)


def test_an_object_is_taken_as_text_or_as_data():
    assert parse_arguments(RawCall("t", ' {"a": 1} ')) == ({"a": 1}, None, None)
    assert parse_arguments(RawCall("t", {"a": 1})) == ({"a": 1}, None, None)
    assert parse_arguments(RawCall("t", '{"a":"\\ud800","n":9007199254740993}'))[0] == {
        "a": "\ud800",
        "n": 9007199254740993,
    }


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("[1]", "got a list"),
        ('"x"', "got text"),
        ("5", "got a number"),
        ("true", "got true"),
        ('{"a":1}{"a":2}', "more after the JSON object at character 7"),
        ('{"path": "a', "Unterminated string starting at character 9"),
        ("{'a': 1}", "at character 1"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "inf"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"x": {"a": 1, "a": 2}}', "the key 'a' is given twice"),
        ('{"a":' * 250 + "1" + "}" * 250, "nested more than 200 levels deep"),
        ("[" * 200_000, "nested too deep"),
        ('{"n":' + "9" * 5000 + "}", "5000 digits"),
    ],
)
def test_b11_anything_else_is_a_fault_that_keeps_the_raw_text(raw, says):
    arguments, kept, fault = parse_arguments(RawCall("stock", raw))
    assert (arguments, kept) == ({}, raw)
    assert "`stock`" in fault
    assert says in fault


def test_data_that_is_no_json_is_a_fault():
    for given in ({"a": float("nan")}, {"a": object()}, [1]):
        arguments, kept, fault = parse_arguments(RawCall("t", given))
        assert (arguments, kept is not None, fault is not None) == ({}, True, True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_every_object_comes_back_as_it_was(value):
    assert parse_arguments(RawCall("t", json.dumps(value))) == (value, None, None)


@given(st.text())
def test_no_text_raises(text):
    arguments, raw, fault = parse_arguments(RawCall("t", text))
    dumps(arguments)
    assert (fault is None) == (raw is None)


@given(st.dictionaries(st.text(), json_values, min_size=1, max_size=3), st.data())
def test_b03_every_proper_beginning_of_an_object_is_seen_as_cut(value, data):
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    assert not is_cut(text)
    assert is_cut(text[: data.draw(st.integers(1, len(text) - 1))])
