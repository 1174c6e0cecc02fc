"""Members that their object does not declare: refused at any depth, where pydantic would drop them in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from tropa.messages import Json, JsonObject
from tropa.tool.shape import Path, fits, item_schema, resolve

Closed: TypeAlias = "Callable[[Json], bool]"

_DEPTH = 120


def closed_below(root: JsonObject) -> Closed | None:
    """A quick test that says whether every member of a value is declared; `None` where nothing nested is closed.

    The top level is left to the validator. `stray` then says which member it is.
    """
    known: dict[str, Closed | None] = {}

    def build(schema: Json) -> Closed | None:
        if not isinstance(schema, dict):
            return None
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference not in known:
                # A recursive reference meets this entry, which looks up the finished test when it is asked.
                known[reference] = lambda value: (test := known[reference]) is None or test(value)
                known[reference] = build(cast("Json", resolve(root, schema)))
            return known[reference]
        parts = [part for key in ("anyOf", "oneOf") for part in cast("list[Json]", schema.get(key, []))]
        tests = [test for part in parts if (test := build(part))]
        if len(tests) > 1 or (tests and len(parts) > 1 and not _nullable(root, parts)):
            return lambda value: stray(root, schema, value) is None
        if tests:
            return tests[0]
        if "items" in schema or "prefixItems" in schema:
            return _items(build, schema)
        return _members(build, schema)

    tests = {name: test for name, part in cast("JsonObject", root["properties"]).items() if (test := build(part))}
    return _object(None, tests) if tests else None


def _nullable(root: JsonObject, parts: list[Json]) -> bool:
    return len(parts) == 2 and any(fits(root, part, None) for part in parts)


def _items(build: Callable[[Json], Closed | None], schema: JsonObject) -> Closed | None:
    first = cast("list[Json]", schema.get("prefixItems", []))
    tests = [build(part) for part in [*first, schema.get("items", True)]]
    if not any(tests):
        return None

    def test(value: Json) -> bool:
        if not isinstance(value, list):
            return True
        asked = (tests[min(index, len(first))] for index in range(len(value)))
        return all(one is None or one(item) for one, item in zip(asked, value, strict=True))

    return test


def _members(build: Callable[[Json], Closed | None], schema: JsonObject) -> Closed | None:
    properties = cast("JsonObject", schema.get("properties", {}))
    tests = {name: one for name, part in properties.items() if (one := build(part))}
    rest = schema.get("additionalProperties", True)
    if rest is False and "patternProperties" not in schema:
        return _object(frozenset(properties), tests)
    others = build(rest)
    if others is None:
        return _object(None, tests) if tests else None

    def test(value: Json) -> bool:
        return not isinstance(value, dict) or all(tests.get(name, others)(item) for name, item in value.items())

    return test


def _object(names: frozenset[str] | None, tests: dict[str, Closed]) -> Closed:
    inner = tuple(tests.items())

    def test(value: Json) -> bool:
        if not isinstance(value, dict):
            return True
        if names is not None and not names.issuperset(value):
            return False
        return all(name not in value or one(value[name]) for name, one in inner)

    return test


def stray(root: JsonObject, schema: Json, value: Json, path: Path = ()) -> tuple[Path, list[str]] | None:
    """The first member that its object does not declare, with the declared names; `None` where there is none.

    Where a value fits several members of a union, it is stray only if it is in all of them.
    """
    if not isinstance(value, (dict, list)) or len(path) > _DEPTH:
        return None
    node = resolve(root, schema)
    if isinstance(node, bool):
        return None
    for keyword in ("anyOf", "oneOf"):
        parts = [p for p in cast("list[Json]", node.get(keyword, [])) if fits(root, p, value, closed=False)]
        found = [stray(root, part, value, path) for part in parts]
        if found and all(found):
            return found[0]
    if isinstance(value, list):
        pairs = [(index, item_schema(node, index), item) for index, item in enumerate(value)]
    else:
        properties = cast("JsonObject", node.get("properties", {}))
        rest = node.get("additionalProperties", True)
        for name in value:
            if rest is False and name not in properties and "patternProperties" not in node:
                return (*path, name), list(properties)
        pairs = [(name, properties.get(name, rest), item) for name, item in value.items()]
    for step, part, item in pairs:
        if found_inside := stray(root, part, item, (*path, step)):
            return found_inside
    return None
