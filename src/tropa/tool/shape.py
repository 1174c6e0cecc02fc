"""JSON Schema as far as choosing needs it: which branch a value means, and what coercion makes of it.

The verdict on a call is never given here. A validator gives it; this module only proposes a value worth a second try
(`coerce`), and finds arguments that no schema names (`stray`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TypeAlias, cast
from urllib.parse import unquote

from tropa.messages import Json, JsonObject, loads

Path: TypeAlias = "tuple[str | int, ...]"
Schema: TypeAlias = "Mapping[str, Json] | bool"

_INTEGER = re.compile(r"[+-]?\d{1,400}(\.0+)?")
_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")
_DEPTH = 120
_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


def resolve(root: JsonObject, schema: Json) -> Schema:
    """`schema` with its local references followed. Raises `LookupError` naming a reference that leads nowhere."""
    for _ in range(_DEPTH):
        if not isinstance(schema, dict):
            return schema is not False
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        target = follow(root, reference)
        siblings = {key: value for key, value in schema.items() if key not in {"$ref", "description", "default"}}
        if siblings and isinstance(target, dict):
            return {"allOf": [target, siblings]}
        schema = target
    return True


def follow(root: JsonObject, reference: str) -> Json:
    """What a reference such as `#/$defs/Name` or `#` points to. Raises `LookupError` naming the reference."""
    node: Json = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            raise LookupError(reference)
    return node


def types_of(schema: Mapping[str, Json]) -> frozenset[str]:
    """The JSON types that `schema` allows at its own level; all of them where it does not say."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, list):
        return frozenset(str(name) for name in declared)
    if "enum" in schema:
        return frozenset(type_of(value) for value in cast("list[Json]", schema["enum"]))
    if "const" in schema:
        return frozenset({type_of(schema["const"])})
    if "properties" in schema:
        return frozenset({"object"})
    if "items" in schema or "prefixItems" in schema:
        return frozenset({"array"})
    return frozenset(_TYPES)


def declared_secret(root: JsonObject) -> frozenset[str]:
    """The top-level members that hold a password by their own schema: `writeOnly`, or the format `password`."""

    def holds(node: Json, seen: frozenset[str]) -> bool:
        if isinstance(node, list):
            return any(holds(part, seen) for part in node)
        if not isinstance(node, dict):
            return False
        if node.get("writeOnly") is True or node.get("format") == "password":
            return True
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#") and reference not in seen:
            return holds(follow(root, reference), seen | {reference})
        return any(
            holds(part, seen) for key, part in node.items() if key not in {"default", "enum", "const", "examples"}
        )

    return frozenset(name for name, part in cast("JsonObject", root["properties"]).items() if holds(part, frozenset()))


def type_of(value: Json) -> str:
    """The JSON type of a value: `integer` for a whole number written as one, else `number`."""
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"


def same(left: Json, right: Json) -> bool:
    """Equality as JSON has it: `true` is not 1."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def fits(root: JsonObject, schema: Json, value: Json, *, closed: bool = True, depth: int = 0) -> bool:
    """Whether the shape of `value` is that of `schema`: types, members, required names. Ranges and patterns are not seen.

    With `closed` false, names that an object does not declare are overlooked.
    """
    if depth > _DEPTH:
        return True
    node = resolve(root, schema)
    if isinstance(node, bool):
        return node
    kind, types = type_of(value), types_of(node)
    if kind not in types and not (kind == "integer" and "number" in types):
        return False
    if "enum" in node and not any(same(value, option) for option in cast("list[Json]", node["enum"])):
        return False
    if "const" in node and not same(value, node["const"]):
        return False

    def inner(part: Json, item: Json) -> bool:
        return fits(root, part, item, closed=closed, depth=depth + 1)

    for keyword in ("anyOf", "oneOf"):
        if keyword in node and not any(inner(part, value) for part in cast("list[Json]", node[keyword])):
            return False
    if not all(inner(part, value) for part in cast("list[Json]", node.get("allOf", []))):
        return False
    if isinstance(value, list):
        return all(inner(item_schema(node, index), item) for index, item in enumerate(value))
    if isinstance(value, dict):
        properties = cast("JsonObject", node.get("properties", {}))
        if any(name not in value for name in cast("list[str]", node.get("required", []))):
            return False
        rest = node.get("additionalProperties", True)
        if rest is False and (not closed or "patternProperties" in node):
            rest = True
        return all(inner(properties.get(name, rest), item) for name, item in value.items())
    return True


def item_schema(node: Mapping[str, Json], index: int) -> Json:
    """The schema of an array's item; both the 2020 and the older spelling of tuples."""
    items = node.get("items", True)
    first = node.get("prefixItems", items if isinstance(items, list) else [])
    if isinstance(first, list) and index < len(first):
        return first[index]
    return node.get("additionalItems", True) if isinstance(items, list) else items


def coerce(root: JsonObject, schema: Json, value: Json, depth: int = 0) -> Json:
    """The value that was meant, by the declared type: a value that already fits is returned as it is.

    Text that holds JSON becomes the list or object that is declared; `null` for a member that has a default, or need
    not be there, becomes the default or goes; numbers and booleans are read from text, and a whole `5.0` is an integer.
    """
    if depth > _DEPTH or fits(root, schema, value):
        return value
    node = resolve(root, schema)
    if isinstance(node, bool):
        return value
    for keyword in ("anyOf", "oneOf"):
        for part in cast("list[Json]", node.get(keyword, [])):
            candidate = coerce(root, part, value, depth + 1)
            if fits(root, part, candidate):
                return candidate
    for part in cast("list[Json]", node.get("allOf", [])):
        value = coerce(root, part, value, depth + 1)
    types = types_of(node)
    if isinstance(value, str) and "string" not in types:
        value = _from_text(value, types)
    elif isinstance(value, float) and "integer" in types and "number" not in types and value.is_integer():
        return int(value)
    if isinstance(value, list) and "array" in types:
        return [coerce(root, item_schema(node, index), item, depth + 1) for index, item in enumerate(value)]
    if isinstance(value, dict) and "object" in types:
        return _members(root, node, value, depth)
    return value


def _members(root: JsonObject, node: Mapping[str, Json], value: JsonObject, depth: int) -> JsonObject:
    properties = cast("JsonObject", node.get("properties", {}))
    required = cast("list[str]", node.get("required", []))
    rest = node.get("additionalProperties", True)
    members: JsonObject = {}
    for name, item in value.items():
        part = properties.get(name, rest)
        if item is None and name in properties and name not in required and not fits(root, part, None):
            default = part.get("default") if isinstance(part, dict) else None
            if default is not None:
                members[name] = default
            continue
        members[name] = coerce(root, part, item, depth + 1)
    return members


def _from_text(text: str, types: frozenset[str]) -> Json:
    stripped = text.strip()
    if types & {"array", "object"} and stripped[:1] in {"[", "{"}:
        try:
            parsed = loads(stripped)
        except (ValueError, RecursionError):
            return text
        return parsed if type_of(parsed) in types else text
    if "boolean" in types and stripped.lower() in {"true", "false"}:
        return stripped.lower() == "true"
    if "null" in types and stripped == "null":
        return None
    if types & {"integer", "number"} and _INTEGER.fullmatch(stripped):
        return int(stripped.partition(".")[0])
    if "number" in types and _NUMBER.fullmatch(stripped) and math.isfinite(number := float(stripped)):
        return number
    return text
