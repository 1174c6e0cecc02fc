"""The instruction template."""

from __future__ import annotations

import pytest

from tropa.context import names, render
from tropa.errors import UsageError


def test_fields_are_filled_in_and_braces_can_be_written():
    assert (
        render("Answer in {language}. {{raw}} {n}", {"language": "Spanish", "n": [1, "a"]})
        == 'Answer in Spanish. {raw} [1,"a"]'
    )


def test_what_is_filled_in_is_never_a_template_again():
    assert render("{a}", {"a": "{b} {{x}}", "b": "secret"}) == "{b} {{x}}"


def test_a_field_without_a_value_is_named_with_those_there_are():
    with pytest.raises(UsageError, match="`speed`.*`language`"):
        render("{speed}", {"language": "en"})


def test_json_in_an_instruction_is_not_a_field():
    assert names('{"a": 1} {b} {{c}}') == ["b"]
