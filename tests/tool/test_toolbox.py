"""The tools of an agent, under names that a provider accepts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropa.errors import ToolDefinitionError
from tropa.tool import Tool, Toolbox, ToolContext, tool
from tropa.tool.toolbox import expose

pytestmark = pytest.mark.anyio
NAMES = ["files.read", "files_read", "naïve/ÿ", "---", "…", "q" * 64 + "1" * 20, "q" * 64 + "2" * 20, "q" * 64]


def remote(name: str) -> Tool:
    return Tool.from_schema(name, f"Is {name}.", {"type": "object"}, lambda arguments: name)


async def test_every_exposed_name_is_legal_distinct_and_reaches_its_tool():
    """A-05."""
    box = Toolbox([remote(name) for name in NAMES])
    exposed = [spec.name for spec in box.specs()]
    assert len(set(exposed)) == len(NAMES)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in exposed)
    for spec in box.specs():
        found = box.get(spec.name)
        assert spec.description == f"Is {found.name}."
        result = await found.run(found.validate({}), ToolContext("t", "r", "c", "k"))
        assert result.parts[0].text == found.name
    assert {box.get(name).name for name in exposed} == set(NAMES)
    assert box.get("files.read").name == "files.read"
    assert box.exposed(box.get("files.read")) != "files_read"


@given(st.permutations(NAMES))
def test_exposed_names_do_not_depend_on_the_order(names):
    """A-05."""
    assert expose(names) == expose(NAMES)
    boxes = [Toolbox([remote(name) for name in order]) for order in (names, NAMES)]
    assert [spec.name for spec in boxes[0].specs()] == [spec.name for spec in boxes[1].specs()]


def test_exposed_names_stay_the_same_across_versions():
    assert expose(["files.read", "ls"]) == {"files.read": "files_read_601e4eb6", "ls": "ls"}


@given(st.lists(st.text(min_size=1), unique=True))
def test_any_names_become_legal_and_distinct(names):
    exposed = expose(names)
    assert set(exposed) == set(names)
    assert len(set(exposed.values())) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in exposed.values())
    assert expose(list(exposed.values())) == {name: name for name in exposed.values()}


def test_a_name_made_to_collide_with_a_hashed_one_takes_nothing_away():
    hashed = expose(["a.b"])["a.b"]
    both = expose(["a.b", hashed])
    assert both[hashed] == hashed
    assert both["a.b"] != hashed


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ToolDefinitionError, match="`x`"):
        Toolbox([remote("x"), remote("x")])


def test_what_is_no_tool_is_refused():
    for wrong in (5, object(), int):
        with pytest.raises(ToolDefinitionError):
            Toolbox([wrong])


def test_a_plain_function_is_a_tool_with_side_effects():
    def look(kind: str, source: int) -> str:
        """Look somewhere."""
        return kind

    [found] = Toolbox([look])
    assert (found.name, found.description, found.hints.read_only) == ("look", "Look somewhere.", False)


def test_unknown_names_get_the_near_real_ones_shortly():
    """B-09."""
    box = Toolbox([remote("central_get_sites"), remote("run"), remote("bank.pay")])
    assert box.get("central_list_sites") is None
    text = box.unknown("central_list_sites")
    assert text == "There is no tool `central_list_sites`. Did you mean `central_get_sites`?"
    assert "`run`" in box.unknown("functions.run")
    assert "`central_get_sites`" in box.unknown("Central_Get_Sites")
    listed = box.unknown("zzz")
    assert all(f"`{spec.name}`" in listed for spec in box.specs())
    assert "permission" not in listed
    many = Toolbox([remote(f"tool{i}") for i in range(300)])
    assert len(many.unknown("w" * 5000)) < 400
    assert "no tools" in Toolbox().unknown("x")


def test_examples_are_shown_with_secrets_masked():
    @tool(examples=[{"user": "bob", "password": "hunt3r"}], secret=["password"])
    def login(user: str, password: str):
        """Log in."""

    [spec] = Toolbox([login]).specs()
    assert spec.description == 'Log in.\n\nExample: {"user":"bob","password":"•••"}'


def test_listing_and_length():
    box = Toolbox([remote("b"), remote("a")])
    assert len(box) == 2
    assert [one.name for one in box] == ["b", "a"]
    assert [spec.name for spec in box.specs()] == ["a", "b"]
