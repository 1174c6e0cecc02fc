"""Foreign text is shown, never interpreted."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropa.cli.plain import call_line, one_line, plain, shorten


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("over\rwritten", "over\\rwritten"),
        ("back\x08space", "back\\x08space"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2066a\u2069\u200f\u061c", "\\u2066a\\u2069\\u200f\\u061c"),
        ("pay\U000e0070\U000e0061", "pay\\U000e0070\\U000e0061"),
        ("a\u200bb\ufeff\u2028", "a\\u200bb\\ufeff\\u2028"),
        ("\u3164\U000e0101", "\\u3164\\U000e0101"),
        ("\ud800", "\\ud800"),
        ("\x00", "\\x00"),
        ("Größe 漢字 é 🙂️\tx\ny", "Größe 漢字 é 🙂️\tx\ny"),
    ],
)
def test_characters_that_act_or_hide_are_escaped_and_the_others_are_not(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_line_stays_one_line() -> None:
    assert plain("a\nb\tc", lines=False) == "a\\nb\\tc"


@given(st.text(st.characters(codec=None, exclude_categories=[])))
def test_nothing_that_is_shown_can_act_on_a_terminal(text: str) -> None:
    for one in plain(text, lines=False):
        assert unicodedata.category(one) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_printable_ascii_is_itself(text: str) -> None:
    assert plain(text) == text


def test_calls_are_written_as_people_write_them() -> None:
    assert call_line("move", {"sku": "A\n1", "n": 4, "to": None}) == 'move(sku="A\\n1", n=4, to=null)'
    assert call_line("move\x1b", {"\x1b": "\x1b"}) == 'move\\x1b(\\x1b="\\u001b")'


def test_long_values_are_cut_with_a_mark() -> None:
    assert shorten("abcdef", 4) == "abc…"
    assert one_line("x" * 10, 5) == '"xxx…'
    assert shorten("abcd", 4) == "abcd"
