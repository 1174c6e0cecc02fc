"""Trimming by the four rules (spec §5.1, D-01)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.history import well_formed
from tropa.context import trim
from tropa.errors import ContextTooSmall
from tropa.messages import Assistant, Call, Notice, Observation, System, Text, user


def said(text):
    return Assistant((Text(text),))


def counted(costs):
    return lambda message: costs[id(message)]


def test_the_worked_example_gives_four_messages_of_32_tokens():
    sizes = [10, 6, 5, 12, 20, 7, 9, 6]
    messages = [System("s"), user("1"), said("1"), user("2"), said("2"), user("3"), said("3"), user("4")]
    costs = {id(message): size for message, size in zip(messages, sizes, strict=True)}
    assert sum(sizes) == 75
    kept = trim(messages, 52, counted(costs))
    assert kept == [messages[0], messages[5], messages[6], messages[7]]
    assert sum(map(counted(costs), kept)) == 32


def test_the_second_worked_example_cuts_eleven_messages_to_seven():
    lines = [
        ("you're a good assistant", 7),
        ("hi! I'm bob", 7),
        ("hi!", 4),
        ("I like vanilla ice cream", 7),
        ("nice", 3),
        ("whats 2 + 2", 7),
        ("4", 3),
        ("thanks", 3),
        ("no problem!", 5),
        ("having fun?", 5),
        ("yes!", 4),
    ]
    # GPT-2's tokens of "System: …", "Human: …", "AI: …"; the line break between two lines is one more.
    messages = [System(lines[0][0])]
    messages += [user(text) if index % 2 == 0 else said(text) for index, (text, _) in enumerate(lines[1:])]
    costs = {id(message): size + 1 for message, (_, size) in zip(messages, lines, strict=True)}
    costs[id(messages[0])] -= 1  # no break before the first line
    kept = trim(messages, 45, counted(costs))
    assert [getattr(m, "text", None) or m.parts[0].text for m in kept] == [
        "you're a good assistant", "whats 2 + 2", "4", "thanks", "no problem!", "having fun?", "yes!",
    ]  # fmt: skip


def test_within_the_budget_nothing_changes():
    messages = [System("s"), user("a"), said("b"), user("c")]
    assert trim(messages, 4, lambda _: 1) == messages


def test_a_newest_question_that_does_not_fit_is_an_error_with_the_numbers():
    with pytest.raises(ContextTooSmall, match="9 tokens and 5"):
        trim([System("s"), user("long")], 8, lambda m: 3 if isinstance(m, System) else 9)


def conversation():
    def call(*ids):
        return Assistant(tuple(Call(id, "look", {}) for id in ids))

    def result(id):
        return Observation(id, "look", "ok", (Text("r"),))

    return [
        System("s"), user("1"), call("x", "y"), result("x"), result("y"), said("1"), user("2"), call("z"), result("z"),
        Notice("careful"), user("3"),
    ]  # fmt: skip


@given(sizes=st.lists(st.integers(1, 30), min_size=11, max_size=11), share=st.floats(0, 1))
def test_groups_are_whole_and_the_kept_part_starts_with_a_user(sizes, share):
    messages = conversation()
    costs = {id(message): size for message, size in zip(messages, sizes, strict=True)}
    least = costs[id(messages[0])] + costs[id(messages[-1])]
    budget = least + int((sum(sizes) - least) * share)
    kept = trim(messages, budget, counted(costs))
    assert kept[0] == messages[0]
    assert kept[-1] == messages[-1]
    assert well_formed(kept[1:])
    assert sum(map(counted(costs), kept)) <= budget


@given(share=st.floats(0, 1))
def test_a_turn_that_is_too_long_keeps_its_question_and_its_newest_calls(share):
    messages = [*conversation()[:1], user("go")]
    for n in range(6):
        messages += [Assistant((Call(f"c{n}", "look", {}),)), Observation(f"c{n}", "look", "ok", (Text("r"),))]
    budget = 2 + int(share * 12)
    kept = trim(messages, budget, lambda _: 1)
    assert kept[:2] == messages[:2]
    assert kept[2:] == messages[len(messages) - len(kept) + 2 :]
    assert well_formed(kept[1:])
    assert budget - 1 <= len(kept) <= budget
