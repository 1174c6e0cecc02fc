"""The BFCL data as tools, accepted calls, and calls with one fault put in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tropa.errors import ToolDefinitionError
from tropa.messages import JsonObject
from tropa.tool import Tool

CATEGORIES = [
    "simple_python",
    "simple_java",
    "simple_javascript",
    "multiple",
    "parallel",
    "parallel_multiple",
    "irrelevance",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_relevance",
    "live_irrelevance",
]
TYPES = {
    "dict": "object",
    "HashMap": "object",
    "float": "number",
    "double": "number",
    "long": "integer",
    "tuple": "array",
    "Array": "array",
    "ArrayList": "array",
    "String": "string",
    "char": "string",
    "Boolean": "boolean",
}
UNTYPED = ("any", "")
LEFT_OUT = object()


@dataclass(frozen=True, slots=True)
class Case:
    """One accepted call: the entry of the data it is from, the tool, the arguments."""

    entry: str
    tool: Tool
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Corpus:
    """All tool schemas in file order, by entry and name; `invalid` lists those that cannot be made valid, and why."""

    names: tuple[str, ...]
    schemas: tuple[JsonObject, ...]
    tools: Mapping[tuple[str, str], Tool]
    invalid: Mapping[str, str]
    cases: tuple[Case, ...]


def read(data: Path) -> Corpus:
    """Everything single-turn under `data`, the `data` folder of the installed package."""
    names: list[str] = []
    schemas: list[JsonObject] = []
    tools: dict[tuple[str, str], Tool] = {}
    invalid: dict[str, str] = {}
    for category in CATEGORIES:
        for entry in _lines(data / f"BFCL_v4_{category}.json"):
            for function in entry["function"]:
                name, schema = function["name"], convert(function["parameters"])
                names.append(name)
                schemas.append(schema)
                try:
                    made = Tool.from_schema(name, function["description"], schema, lambda arguments: arguments)
                    tools[entry["id"], name] = made
                except ToolDefinitionError as error:
                    invalid[f"{entry['id']} {name}"] = str(error)
    return Corpus(tuple(names), tuple(schemas), tools, invalid, tuple(_cases(data, tools)))


def convert(node: Any) -> Any:
    """A schema of the data as JSON Schema: types by the type map, and a default of null makes a value nullable."""
    if not isinstance(node, dict):
        return node
    schema = {key: value for key, value in node.items() if key not in {"type", "properties", "items", "optional"}}
    if not isinstance(schema.get("required", []), list):
        del schema["required"]
    kind = node.get("type")
    if isinstance(kind, str) and kind not in UNTYPED:
        schema["type"] = TYPES.get(kind, kind)
    if isinstance(node.get("properties"), dict):
        schema["properties"] = {name: convert(part) for name, part in node["properties"].items()}
    if isinstance(node.get("items"), dict):
        schema["items"] = convert(node["items"])
    if "default" in node and node["default"] is None:
        if "type" in schema:
            schema["type"] = [schema["type"], "null"]
        if "enum" in schema and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    return schema


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _cases(data: Path, tools: Mapping[tuple[str, str], Tool]) -> Iterator[Case]:
    for category in CATEGORIES:
        answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
        if not answers.exists():
            continue
        for entry in _lines(answers):
            for call in entry["ground_truth"]:
                for name, accepted in call.items():
                    tool = tools[entry["id"], name]
                    for arguments in expand(accepted, tool.schema):
                        yield Case(entry["id"], tool, arguments)


def expand(accepted: Mapping[str, Any], schema: Mapping[str, Any]) -> list[JsonObject]:
    """Every accepted call, one change at a time: first all first choices, then each other choice on its own.

    An accepted value of "" says that the argument may be left out, which a required one may not.
    """
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    choices = {n: _choices(values, properties.get(n) or {}, n in required) for n, values in accepted.items()}
    first = {name: options[0] for name, options in choices.items()}
    calls = [first, *({**first, name: option} for name, options in choices.items() for option in options[1:])]
    present = [{name: value for name, value in call.items() if value is not LEFT_OUT} for call in calls]
    return list({json.dumps(call, sort_keys=True): call for call in present}.values())


def _choices(values: Any, schema: Mapping[str, Any], required: bool) -> list[Any]:
    if not isinstance(values, list):
        return [values]
    kept = [value for value in values if value != "" or not required] or values
    options: list[Any] = []
    for value in kept:
        options.extend([LEFT_OUT] if value == "" and not required else _inside(value, schema))
    return options or [LEFT_OUT]


def _inside(value: Any, schema: Mapping[str, Any]) -> list[Any]:
    """Objects inside an accepted value hold lists of accepted values again."""
    if isinstance(value, dict):
        return list(expand(value, schema))
    if not isinstance(value, list) or not any(isinstance(item, dict) for item in value):
        return [value]
    items = [_inside(item, schema.get("items") or {}) for item in value]
    first = [options[0] for options in items]
    others = [[*first[:i], o, *first[i + 1 :]] for i, options in enumerate(items) for o in options[1:]]
    return [first, *others]
