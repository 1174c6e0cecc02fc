"""Messages to strict JSON and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropa.errors import CorruptStore, NotStorable
from tropa.messages import (
    Assistant,
    Call,
    Data,
    Media,
    Notice,
    Observation,
    Reasoning,
    Text,
    User,
    decode,
    dumps,
    encode,
    loads,
    loads_object,
    storable,
)

TEXT = st.text(st.characters(codec=None), max_size=8)  # lone surrogates and NUL included
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
PARTS = st.builds(Text, TEXT)
MEDIA = st.builds(Media, TEXT, st.binary(max_size=20), st.none() | TEXT)
CALL = st.builds(Call, TEXT, TEXT, OBJECT, st.none() | TEXT, st.none() | TEXT)
STATUS = st.sampled_from(["ok", "error", "rejected", "cancelled", "unknown"])
MESSAGE = st.one_of(
    st.builds(User, st.lists(PARTS | MEDIA, max_size=3).map(tuple)),
    st.builds(Notice, TEXT),
    st.builds(Assistant, st.lists(PARTS | st.builds(Reasoning, TEXT) | CALL, max_size=3).map(tuple)),
    st.builds(Observation, TEXT, TEXT, STATUS, st.lists(PARTS | MEDIA | st.builds(Data, JSON), max_size=3).map(tuple)),
)


@given(MESSAGE)
def test_every_message_comes_back_as_it_was(message):
    assert decode(loads_object(dumps(encode(message)))) == message


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"role": "king", "parts": []},
        {"role": "user"},
        {"role": "user", "parts": [{"type": "spell"}]},
        {"role": "tool", "parts": []},
        {"role": "user", "parts": [3]},
    ],
)
def test_a_shape_that_is_not_known_is_a_typed_error(stored):
    with pytest.raises(CorruptStore, match="cannot be read"):
        decode(stored)


@given(JSON)
def test_json_survives_text(value):
    assert loads(dumps(value)) == value
    dumps(value).encode()


def test_what_is_not_json_is_named_by_its_path():
    with pytest.raises(NotStorable, match=r"value\.a\[1\].*nan"):
        dumps({"a": [1, float("nan")]})
    with pytest.raises(NotStorable, match=r"value\.a\.b.*`set`"):
        dumps({"a": {"b": set()}})
    with pytest.raises(NotStorable, match="`x.a` has the key 3"):
        storable({"a": {3: 1}}, "x")
    loop = []
    loop.append(loop)
    with pytest.raises(NotStorable, match="contains itself"):
        dumps(loop)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", ""])
def test_loose_json_is_refused(text):
    with pytest.raises(ValueError):
        loads(text)


def test_an_object_is_asked_for_and_a_list_refused():
    with pytest.raises(ValueError, match="list"):
        loads_object("[]")
