"""Where each value of a proposed call comes from."""

from __future__ import annotations

from tropa.gate import trace
from tropa.messages import Data, Observation, Text, user

SAID = [user("Move 40 of A-113 to Rotterdam"), Observation("c1", "stock", "ok", (Data({"shelf": "R7", "left": 1200}),))]


def kinds(arguments, messages=SAID, instructions="Write to ops@example.org."):
    return {path: (origin.kind, origin.source) for path, origin in trace(arguments, messages, instructions).items()}


def test_values_are_found_in_the_users_words_the_instructions_and_observations():
    found = kinds({"sku": "a-113", "n": 40, "to": {"mail": "ops@example.org"}, "shelf": ["R7", "R8"], "x": 1200})
    assert found == {
        "sku": ("user", None),
        "n": ("user", None),
        "to.mail": ("instructions", None),
        "shelf[0]": ("observation", "stock"),
        "shelf[1]": ("invented", None),
        "x": ("observation", "stock"),
    }


def test_a_part_of_a_word_or_number_is_not_a_source():
    assert kinds({"n": 4, "sku": "A-11", "city": "Rotter", "m": 113.5}) == {
        "n": ("invented", None),
        "sku": ("invented", None),
        "city": ("invented", None),
        "m": ("invented", None),
    }


def test_the_user_wins_over_an_observation_that_says_the_same():
    messages = [user("pay 7"), Observation("c", "read", "ok", (Text("pay 7"),))]
    assert kinds({"n": 7}, messages, "") == {"n": ("user", None)}


def test_text_that_looks_like_a_pattern_is_taken_literally():
    assert kinds({"q": "a.*"}, [user("abc")], "") == {"q": ("invented", None)}
    assert kinds({"q": "a.*"}, [user("find a.* now")], "") == {"q": ("user", None)}
