"""The running window: it cuts rarely, far, and only at a question."""

from __future__ import annotations

import pytest

from tests.session.history import well_formed
from tropa.context import fit, shorten
from tropa.context.window import LOW_WATER, readable
from tropa.errors import ContextTooSmall
from tropa.messages import Assistant, Call, Data, Media, Observation, Text, user
from tropa.model import Count

pytestmark = pytest.mark.anyio


async def each_ten(messages):
    return Count(10 * len(messages), exact=True)


def talk(turns):
    return [part for n in range(turns) for part in (user(str(n)), Assistant((Text("ok"),)))]


async def test_what_fits_is_sent_whole_and_the_same():
    messages = talk(5)
    window = await fit(messages, 100, each_ten)
    assert list(window.messages) == messages
    assert window.cut == 0


async def test_a_cut_goes_down_to_the_low_water_mark_so_that_it_is_rare():
    messages, cuts, start = [], 0, 0
    for n in range(100):
        messages += talk(1)
        window = await fit(messages[start:], 200, each_ten)
        if window.cut:
            cuts += 1
            start += window.cut
            assert window.count.tokens <= 200 * LOW_WATER
        assert window.messages[0] in (user(str(k)) for k in range(n + 1))
    assert cuts <= 100 / 4


async def test_one_endless_turn_keeps_its_question_and_its_newest_calls():
    messages = [user("go")]
    for n in range(30):
        messages += [Assistant((Call(f"c{n}", "look", {}),)), Observation(f"c{n}", "look", "ok", (Text("r"),))]
    window = await fit(messages, 100, each_ten)
    assert window.messages[0] == messages[0]
    assert window.messages[-1] == messages[-1]
    assert well_formed(window.messages)
    assert window.count.tokens <= 100


async def test_a_question_that_alone_is_too_long_says_what_to_do():
    async def count(messages):
        return Count(500, exact=True)

    with pytest.raises(ContextTooSmall, match="shorten the message"):
        await fit([user("x")], 100, count)


def test_a_long_observation_shows_head_and_tail_and_how_much_is_missing_and_pictures_stay():
    picture = Media("image/png", b"\x89PNG" * 1000)
    long = Observation("c", "read", "ok", (Text("a" * 5000 + "z" * 5000), Data(["q" * 9000]), picture))
    text, data, kept = readable(long, 1000).parts
    assert text.text.startswith("aaa")
    assert text.text.endswith("zzz")
    assert "of 10000 characters left out" in text.text
    assert "left out" in data.text
    assert kept is picture
    short = Observation("c", "read", "ok", (Text("a"),))
    assert readable(short, 1000) is short


def test_shortening_leaves_short_text_alone():
    assert shorten("abc", 3) == "abc"
    assert len(shorten("x" * 10_000, 900)) < 1000
