"""Tools from raw JSON Schemas: what MCP servers and other systems give."""

from __future__ import annotations

import time

import jsonschema_rs
import pytest

from tropa.errors import InvalidArguments, ToolDefinitionError
from tropa.tool import Tool, ToolContext

pytestmark = pytest.mark.anyio
CONTEXT = ToolContext("thread", "run", "call", "key")


def make(schema, function=lambda arguments: arguments, **options) -> Tool:
    return Tool.from_schema("remote", "A remote tool.", schema, function, **options)


def refusal(made: Tool, arguments) -> str:
    with pytest.raises(InvalidArguments) as caught:
        made.validate(arguments)
    return str(caught.value)


CYCLE = {
    "type": "object",
    "properties": {"start": {"$ref": "#/definitions/A"}},
    "required": ["start"],
    "definitions": {
        "A": {"type": "object", "properties": {"name": {"type": "string"}, "b": {"$ref": "#/definitions/B"}}},
        "B": {"type": "object", "properties": {"as": {"type": "array", "items": {"$ref": "#/definitions/A"}}}},
    },
}


def test_mutual_cycles_through_definitions_work():
    """A-04."""
    started = time.perf_counter()
    made = make(CYCLE)
    assert time.perf_counter() - started < 1
    assert jsonschema_rs.meta.is_valid(made.schema)
    deep = {"start": {"name": "1", "b": {"as": [{"name": "2", "b": {"as": []}}]}}}
    assert made.validate(deep).canonical == deep
    assert "`start.b.as[0].name` is 5" in refusal(made, {"start": {"b": {"as": [{"name": 5}]}}})
    coerced = made.validate({"start": '{"b": "{\\"as\\": \\"[]\\"}"}'}).canonical
    assert coerced == {"start": {"b": {"as": []}}}


def test_references_into_properties_and_escaped_pointers_work():
    """A-04."""
    made = make(
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"$ref": "#/properties/a"},
                "c": {"$ref": "#/$defs/x~1y%20z"},
            },
            "$defs": {"x/y z": {"type": "boolean"}},
        }
    )
    assert made.validate({"a": 1, "b": "2", "c": "true"}).canonical == {"a": 1, "b": 2, "c": True}
    assert "`b` is 'x', expected an integer" in refusal(made, {"b": "x"})


def test_a_reference_to_itself_does_not_hang():
    made = make({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}, "n": {"type": "integer"}}})
    assert made.validate({"n": "3"}).canonical == {"n": 3}


@pytest.mark.parametrize(
    "reference", ["#/$defs/Nobody", "#/properties/b/items", "#nowhere", "https://schemas.invalid/x.json", "other.json"]
)
def test_a_reference_that_leads_nowhere_is_named(reference):
    """A-04: and never fetched."""
    with pytest.raises(ToolDefinitionError) as caught:
        make({"type": "object", "properties": {"a": {"$ref": reference}, "b": {"type": "array"}}})
    assert reference.strip("#") in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "dict"}}},
        {"type": "array"},
        {"type": "object", "properties": []},
        {"type": "object", "required": "a"},
    ],
)
def test_what_is_no_schema_of_arguments_is_refused(schema):
    with pytest.raises(ToolDefinitionError, match="`remote`"):
        make(schema)


async def test_a_tool_without_parameters_has_empty_properties_and_runs():
    """A-11."""
    seen = []
    made = make({"type": "object"}, seen.append)
    assert made.schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert make({}).schema == made.schema
    assert (await made.run(made.validate({}), CONTEXT)).status == "ok"
    assert seen == [{}]
    assert "leave it out" in refusal(made, {"x": 1})


def test_the_top_level_is_closed_unless_the_schema_says_otherwise():
    closed = {"type": "object", "properties": {"city": {"type": "string"}}}
    assert refusal(make(closed), {"citty": "x"}) == "`citty` is not an argument; did you mean `city`?"
    assert make({**closed, "additionalProperties": {"type": "integer"}}).validate({"n": "4"}).canonical == {"n": 4}
    both = make({"allOf": [closed, {"properties": {"n": {"type": "integer"}}}]})
    assert both.validate({"city": "x", "n": 1}).canonical == {"city": "x", "n": 1}
    assert "`other`" in refusal(both, {"city": "x", "other": 1})


def test_the_same_coercion_as_for_functions():
    """A-01, A-02, A-03."""
    made = make(
        {
            "type": "object",
            "properties": {
                "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}},
                "body": {"type": "string"},
                "either": {"oneOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]},
                "limit": {"type": "integer", "default": 10},
            },
            "required": ["rows"],
        }
    )
    given = {"rows": '[{"n": "1.5"}, "{\\"n\\": 2}"]', "body": "[1]", "either": '["a"]', "limit": None}
    assert made.validate(given).canonical == {
        "rows": [{"n": 1.5}, {"n": 2}],
        "body": "[1]",
        "either": ["a"],
        "limit": 10,
    }
    assert refusal(make(made.schema, strict=True), given).startswith("`rows` is ")
    assert refusal(made, {"rows": "[1, oops"}) == "`rows` is '[1, oops', expected an array"


def test_errors_name_path_given_and_allowed():
    made = make(
        {
            "type": "object",
            "properties": {
                "unit": {"type": "string", "enum": ["kg", "t"]},
                "n": {"type": "integer", "minimum": 1},
                "who": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
                "x": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["id"]}]},
            },
            "required": ["unit"],
        }
    )
    assert refusal(made, {"unit": 3}) == "`unit` is 3, expected one of 'kg', 't'"
    assert refusal(made, {"unit": "kg", "n": 0}) == "`n` is 0, which is less than the minimum of 1"
    assert refusal(made, {"unit": "kg", "who": {}}) == "`who.id` is required and missing"
    assert refusal(made, {"unit": "kg", "x": "q"}) == "`x` is 'q', expected an integer or an object"
    assert refusal(made, {"unit": "kg", "x": {}}) == "`x.id` is required and missing"
    assert refusal(made, {}) == "`unit` is required and missing"


async def test_the_function_cannot_change_what_is_recorded():
    def greedy(arguments):
        arguments["items"].clear()
        return "done"

    made = make({"type": "object", "properties": {"items": {"type": "array"}}}, greedy)
    checked = made.validate({"items": [1, 2]})
    assert (await made.run(checked, CONTEXT)).status == "ok"
    assert checked.canonical == {"items": [1, 2]}


async def test_an_asynchronous_function_is_awaited():
    async def echo(arguments):
        return arguments

    made = make({"type": "object", "properties": {"a": {}}}, echo, read_only=True)
    assert made.hints.read_only
    assert (await made.run(made.validate({"a": {"b": [1]}}), CONTEXT)).parts[0].value == {"a": {"b": [1]}}


def test_text_that_is_not_unicode_and_large_numbers_survive():
    made = make({"type": "object", "properties": {"s": {"type": "string"}, "n": {"type": "integer"}}})
    given = {"s": "a\x00\ud800", "n": 2**70}
    assert made.validate(given).canonical == given


def test_an_older_draft_is_honoured_and_not_shown():
    made = make(
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "properties": {"n": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
        }
    )
    assert "$schema" not in made.schema
    assert "`n` is 0" in refusal(made, {"n": 0})


def test_a_password_by_its_schema_is_secret():
    """J-05."""
    made = make(
        {
            "type": "object",
            "properties": {
                "key": {"type": "string", "format": "password", "maxLength": 3},
                "auth": {"$ref": "#/$defs/a"},
            },
            "$defs": {"a": {"type": "object", "properties": {"pw": {"type": "string", "writeOnly": True}}}},
        }
    )
    assert made.secret == {"key", "auth"}
    text = refusal(made, {"key": "opensesame", "auth": {"pw": 12345}})
    assert "opensesame" not in text
    assert "12345" not in text
