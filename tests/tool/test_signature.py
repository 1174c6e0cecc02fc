"""Schemas from signatures: all of the signature, or an error that names the parameter."""

from __future__ import annotations

import enum
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field, SecretStr

from tests.tool import postponed
from tests.tool.postponed_types import Inner, Target
from tropa.errors import InvalidArguments, ToolDefinitionError
from tropa.tool import Tool, Toolbox, ToolContext, tool

pytestmark = pytest.mark.anyio
CONTEXT = ToolContext("thread-7", "run", "call", "key")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Branch(BaseModel):
    label: str
    twigs: list[Branch] = []


class Options(TypedDict):
    depth: int
    quick: NotRequired[bool]


def test_every_kind_of_annotation_is_in_the_schema():
    @tool
    def everything(
        maybe: Optional[int],
        either: int | str,
        colour: Colour,
        mode: Literal["a", "b"],
        tree: Branch,
        target: Target,
        options: Options,
        day: date,
        anything: Any,
        bounded: Annotated[int, Field(ge=1, le=9, description="One to nine.")] = 3,
    ): ...

    properties = everything.schema["properties"]
    assert list(properties) == [
        "maybe", "either", "colour", "mode", "tree", "target", "options", "day", "anything", "bounded",
    ]  # fmt: skip
    assert everything.schema["required"] == list(properties)[:-1]
    assert everything.schema["additionalProperties"] is False
    assert properties["maybe"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert properties["bounded"] == {
        "type": "integer", "minimum": 1, "maximum": 9, "default": 3, "description": "One to nine.",
    }  # fmt: skip
    assert properties["day"] == {"type": "string", "format": "date"}
    assert everything.schema["$defs"]["Colour"]["enum"] == ["red", "blue"]
    assert jsonschema_rs.meta.is_valid(everything.schema)


def test_native_values_have_the_declared_types():
    @tool
    def everything(colour: Colour, tree: Branch, target: Target, options: Options, day: date): ...

    checked = everything.validate(
        {
            "colour": "red",
            "tree": {"label": "a", "twigs": [{"label": "b"}]},
            "target": {"port": "HH", "inner": {"dock": 2}},
            "options": {"depth": 1},
            "day": "2024-02-29",
        }
    )
    assert checked.native == {
        "colour": Colour.RED,
        "tree": Branch(label="a", twigs=[Branch(label="b")]),
        "target": Target("HH", Inner(2)),
        "options": {"depth": 1},
        "day": date(2024, 2, 29),
    }


def test_self_referential_model_is_registered_quickly_and_its_schema_holds_together():
    """A-04."""
    started = time.perf_counter()

    @tool
    def grow(root: Branch): ...

    assert time.perf_counter() - started < 1
    validator = jsonschema_rs.validator_for(grow.schema)
    deep = {"root": {"label": "1", "twigs": [{"label": "2", "twigs": [{"label": "3"}]}]}}
    assert validator.is_valid(deep)
    assert grow.validate(deep).native["root"].twigs[0].twigs[0].label == "3"
    assert not validator.is_valid({"root": {"label": "1", "twigs": [5]}})
    with pytest.raises(InvalidArguments, match=r"root\.twigs\[0\]"):
        grow.validate({"root": {"label": "1", "twigs": [5]}})


def test_a_self_referential_arguments_model_is_an_object_at_the_top():
    """A-04."""

    @tool(arguments=Branch)
    def grow(root: Branch) -> str:
        return root.label

    assert grow.schema["type"] == "object"
    assert set(grow.schema["properties"]) == {"label", "twigs"}
    assert grow.validate({"label": "x", "twigs": [{"label": "y"}]}).native["root"].twigs[0].label == "y"


def test_postponed_annotations_are_resolved_in_the_function_s_own_module():
    """A-09."""
    made = tool(postponed.ship)
    assert set(made.schema["properties"]) == {"target", "mode", "when"}
    assert made.schema["properties"]["mode"]["enum"] == ["sea", "rail"]
    native = made.validate(
        {"target": {"port": "RTM", "inner": {"dock": 4}}, "mode": "sea", "when": "2024-05-01T10:00:00+02:00"}
    ).native
    assert native["target"] == Target("RTM", Inner(4))
    assert native["when"].utcoffset().total_seconds() == 7200
    assert native["when"] == datetime(2024, 5, 1, 8, tzinfo=UTC)


def test_postponed_type_that_cannot_be_resolved_is_refused_by_parameter_name():
    """A-09."""
    with pytest.raises(ToolDefinitionError, match=r"`second`.*OnlyForCheckers"):
        tool(postponed.unresolvable)


def test_postponed_local_types_are_found():
    class Local(BaseModel):
        x: int

    @tool
    def use(local: Local) -> int:
        return local.x

    class Holder:
        @tool
        def method(self, local: Local) -> int:
            return local.x

    assert use.validate({"local": {"x": 1}}).native["local"] == Local(x=1)
    assert Holder().method.validate({"local": {"x": 1}}).native["local"] == Local(x=1)


@pytest.mark.parametrize("function", [postponed.whoami, postponed.maybe])
async def test_context_is_injected_and_never_the_model_s(function):
    """A-08: also postponed, optional, and imported for type checkers only."""
    made = tool(function)
    assert set(made.schema["properties"]) == {"q"}
    result = await made.run(made.validate({"q": "x"}), CONTEXT)
    assert result.parts[0].text == "x thread-7"
    name = "who" if function is postponed.whoami else "ctx"
    with pytest.raises(InvalidArguments, match=f"`{name}` is not an argument"):
        made.validate({"q": "x", name: {"thread": "root"}})


async def test_context_is_injected_beside_an_explicit_arguments_model():
    """A-08."""

    class Query(BaseModel):
        q: str = Field(min_length=2)

    @tool(arguments=Query)
    def whoami(q: str, ctx: Annotated[ToolContext | None, "injected"]) -> str:
        return f"{q} {ctx.thread}"

    assert set(whoami.schema["properties"]) == {"q"}
    assert (await whoami.run(whoami.validate({"q": "xy"}), CONTEXT)).parts[0].text == "xy thread-7"
    for arguments in ({"q": "xy", "ctx": {"user": "root"}}, {"q": "x"}):
        with pytest.raises(InvalidArguments):
            whoami.validate(arguments)


def test_an_arguments_model_that_does_not_fit_the_function_is_refused():
    class Query(BaseModel):
        q: str

    with pytest.raises(ToolDefinitionError, match="`limit`"):

        @tool(arguments=Query)
        def more(q: str, limit: int): ...

    with pytest.raises(ToolDefinitionError, match=r"`Query\.q`"):

        @tool(arguments=Query)
        def less(): ...


class Opaque: ...


def _untyped(good: int, bad): ...
def _args(*bad: int): ...
def _kwargs(**bad: int): ...
def _callback(good: int, bad: Callable[[], int]): ...
def _half_callback(good: int, bad: int | Callable[[], int]): ...
def _opaque(bad: Opaque): ...
def _nested_opaque(bad: dict[str, list[Opaque]]): ...


@pytest.mark.parametrize(
    "function", [_untyped, _args, _kwargs, _callback, _half_callback, _opaque, _nested_opaque], ids=lambda f: f.__name__
)
def test_what_a_model_cannot_be_told_is_refused_by_parameter_name(function):
    with pytest.raises(ToolDefinitionError, match="bad"):
        tool(function)


def test_generators_and_lambdas_and_nonsense_are_refused():
    def numbers():
        yield 1

    for wrong in (numbers, lambda: 1, 5):
        with pytest.raises(ToolDefinitionError):
            tool(wrong)
    for options in ({"timeout": 0}, {"timeout": float("inf")}, {"secret": ["nobody"]}, {"name": " "}):
        with pytest.raises(ToolDefinitionError):
            tool(**options)(_named)
    with pytest.raises(ToolDefinitionError, match="example"):
        tool(examples=[{"model_config": "x"}])(_named)


def _named(model_config: int, copy: str, schema: int = 1, _private: int = 2, /, json: int = 0):
    return model_config, copy, schema, _private, json


async def test_parameter_names_that_clash_with_pydantic_and_positional_only_ones_work():
    made = tool(_named)
    assert set(made.schema["properties"]) == {"model_config", "copy", "schema", "_private", "json"}
    result = await made.run(made.validate({"model_config": 3, "copy": "c", "json": 9}), CONTEXT)
    assert result.parts[0].value == [3, "c", 1, 2, 9]


def test_a_parameter_called_title_keeps_its_place_and_no_titles_are_invented():
    @tool
    def book(title: str, tree: Branch): ...

    assert book.schema["properties"]["title"] == {"type": "string"}
    assert "title" not in book.schema["$defs"]["Branch"]


def test_an_alias_is_what_the_model_sees():
    @tool
    def move(from_: Annotated[str, Field(alias="from")]) -> str:
        return from_

    assert set(move.schema["properties"]) == {"from"}
    assert move.validate({"from": "a"}).native == {"from_": "a"}


def test_descriptions_come_from_the_docstring():
    @tool
    def weigh(item: str, grams: Annotated[int, Field(description="From the annotation.")] = 1):
        """Weigh an item.

        Args:
            item: What to weigh,
                by name.
            grams: Loses against the annotation.
        """

    assert weigh.description == "Weigh an item."
    assert weigh.schema["properties"]["item"]["description"] == "What to weigh, by name."
    assert weigh.schema["properties"]["grams"]["description"] == "From the annotation."


def test_a_decorated_function_is_still_a_function():
    @tool
    def double(x: int) -> int:
        """Twice."""
        return 2 * x

    assert double(4) == 8
    assert double.__doc__ == "Twice."
    assert double.__name__ == "double"


async def test_methods_of_an_instance_are_tools_with_its_state():
    class Base:
        @tool(read_only=True)
        def count(self, extra: int) -> int:
            return self.n + extra

    class Shop(Base):
        def __init__(self, n: int):
            self.n = n

        @property
        def trap(self):
            raise AssertionError("a property is never evaluated")

        @tool
        async def add(self, amount: int) -> int:
            self.n += amount
            return self.n

        @tool
        @staticmethod
        def version() -> str:
            return "v1"

    shop = Shop(2)
    box = Toolbox([shop])
    assert [one.name for one in box] == ["count", "add", "version"]
    add, count = box.get("add"), box.get("count")
    assert (await add.run(add.validate({"amount": 5}), CONTEXT)).parts[0].value == 7
    assert (await count.run(count.validate({"extra": 1}), CONTEXT)).parts[0].value == 8
    assert shop.count(3) == 10
    assert Shop(100).count(1) == 101
    assert Toolbox([shop.count]).get("count").function(0) == 7
    with pytest.raises(ToolDefinitionError, match="instance"):
        Toolbox([Shop])
    with pytest.raises(ToolDefinitionError, match="instance"):
        Toolbox([Shop.count])


async def test_a_class_with_state_is_a_tool_through_its_instances():
    @tool(read_only=True)
    class WebSearch:
        """Search the web."""

        def __init__(self, suffix: str):
            self.suffix = suffix

        def __call__(self, query: str) -> str:
            return query + self.suffix

    class Other:
        @tool
        def __call__(self, query: str) -> str:
            return query

    class Plain:
        def __call__(self, query: str) -> str:
            """Plainly."""
            return query

    box = Toolbox([WebSearch("!"), Other(), Plain()])
    assert [one.name for one in box] == ["web_search", "other", "plain"]
    search = box.get("web_search")
    assert search.description == "Search the web."
    assert search.hints.read_only
    assert (await search.run(search.validate({"query": "a"}), CONTEXT)).parts[0].text == "a!"
    assert WebSearch("?")("b") == "b?"
    assert Other()("c") == "c"
    assert box.get("plain").description == "Plainly."


async def test_partial_and_wrapped_functions_are_tools():
    def add(a: int, b: int) -> int:
        return a + b

    @functools.wraps(add)
    def wrapper(*args, **kwargs):
        return add(*args, **kwargs) * 10

    made = tool(functools.partial(add, b=2))
    assert (await made.run(made.validate({"a": 1}), CONTEXT)).parts[0].value == 3
    wrapped = tool(wrapper)
    assert set(wrapped.schema["properties"]) == {"a", "b"}
    assert (await wrapped.run(wrapped.validate({"a": 1, "b": 2}), CONTEXT)).parts[0].value == 30


def test_the_digest_follows_what_a_human_was_told_and_nothing_else():
    def look(x: int):
        """Look."""

    base = tool(look).digest
    assert tool(look).digest == base
    assert tool(timeout=3)(look).digest == base
    for change in ({"read_only": True}, {"version": "2"}, {"description": "Looks"}, {"name": "see"}):
        assert tool(**change)(look).digest != base
    first = Tool.from_schema("t", "", {"type": "object", "properties": {"a": {"type": "string", "title": "A"}}}, print)
    second = Tool.from_schema("t", "", {"properties": {"a": {"title": "A", "type": "string"}}, "type": "object"}, print)
    assert first.digest == second.digest


def test_dataclass_defaults_and_non_json_defaults_do_not_break_the_schema():
    @dataclass
    class Limits:
        low: int = 1

    unique = object()

    @tool
    def use(limits: Limits = Limits(3), key: str = unique): ...  # noqa: RUF009

    assert use.schema["properties"]["limits"]["default"] == {"low": 3}
    assert "default" not in use.schema["properties"]["key"]
    assert use.validate({}).native == {"limits": Limits(3), "key": unique}


def test_a_secret_string_is_a_secret_parameter():
    @tool
    def login(user: str, password: SecretStr): ...

    assert login.secret == {"password"}
