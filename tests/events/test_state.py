"""State as a fold over events."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.history import well_formed
from tropa.events import Event, State, apply_field, fold, in_call_order
from tropa.messages import Assistant, Call, Observation, Text, encode, user


def field(name, op, value):
    return {"name": name, "op": op, "value": value}


def test_fields_are_set_and_appended_to():
    fields = {}
    for body in (
        field("a", "set", 1),
        field("a", "set", 2),
        field("l", "append", [1]),
        field("l", "append", [2, 3]),
        field("a", "append", [4]),
    ):
        apply_field(fields, body)
    assert fields == {"a": [4], "l": [1, 2, 3]}


@given(seed=st.integers(0, 999), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_results_that_end_in_any_order_stand_in_the_order_of_their_calls(seed, sizes):
    messages = [user("go")]
    for number, size in enumerate(sizes):
        ids = [f"{number}.{index}" for index in range(size)]
        messages.append(Assistant(tuple(Call(id, "look", {}) for id in ids)))
        random.Random(seed).shuffle(ids)
        messages += [Observation(id, "look", "ok", (Text(id),)) for id in ids]
    ordered = in_call_order(messages)
    assert well_formed(ordered)
    assert sorted(map(repr, ordered)) == sorted(map(repr, messages))


@given(cut=st.integers(0, 9))
def test_a_fold_may_be_interrupted_anywhere(cut):
    events = [
        Event("t", n, 0.0, kind, body)
        for n, (kind, body) in enumerate(
            [
                ("thread.opened", {"version": 1}),
                ("message.added", {"message": encode(user("go"))}),
                ("field.set", field("a", "set", 1)),
                ("model.replied", {"message": encode(Assistant((Call("x", "l", {}), Call("y", "l", {}))))}),
                ("call.finished", {"message": encode(Observation("y", "l", "ok", ()))}),
                ("call.finished", {"message": encode(Observation("x", "l", "ok", ()))}),
                ("weather.changed", {"to": "rain"}),
                ("field.set", field("a", "set", 2)),
                ("model.replied", {"message": encode(Assistant((Text("done"),)))}),
            ],
            1,
        )
    ]
    whole, parts = fold(events), fold(events[cut:], fold(events[:cut]))
    assert whole == parts
    assert well_formed(whole.messages)
    assert whole.a == 2


def test_a_field_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(AttributeError, match="`speed`.*language"):
        State({"language": "en"}).speed
