"""Repeat detection as a pure function over steps (F-01)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropa.gate.repeat import LONGEST, check, cycle


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_a_cycle_of_up_to_four_steps_is_seen_when_it_was_gone_through_twice(length):
    once = [chr(97 + index) for index in range(length)]
    assert cycle([*"xyz", *once, *once[:-1]]) == 0
    assert cycle([*"xyz", *once, *once]) == length


def test_a_cycle_of_five_is_beyond_what_is_watched():
    assert LONGEST == 4
    assert cycle(list("abcdeabcde")) == 0


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12, unique=True))
def test_steps_that_all_differ_are_never_a_repeat(steps):
    assert check([str(step) for step in steps], 0) is None


def test_the_model_is_warned_once_and_stopped_when_it_goes_on():
    assert check(list("aa"), 0) == "warn"
    assert check(list("aa"), 2) is None
    assert check(list("aaa"), 2) == "stop"


def test_after_progress_a_new_repeat_gets_a_new_warning():
    assert check(list("aab"), 2) is None
    assert check(list("aabb"), 2) == "warn"
    assert check(list("aabbb"), 4) == "stop"
