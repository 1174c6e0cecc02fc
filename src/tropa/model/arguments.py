"""What a model wrote as the arguments of a call, read strictly: an object, or a fault the model can act on."""

from __future__ import annotations

import json
from typing import cast

from tropa.errors import NotStorable
from tropa.messages import JsonObject, dumps
from tropa.model.protocol import RawCall

DEPTH = 200
"""Levels of nesting that are read; a journal entry wraps a few more around them."""


def parse_arguments(call: RawCall) -> tuple[JsonObject, str | None, str | None]:
    """The arguments of `call`, its raw text where that says more, and what is wrong with it, if anything is.

    Nothing given (missing, blank, `null`) is no arguments. Text that is not exactly one strict JSON object is a fault:
    the arguments are then empty and the raw text is kept. A key given twice is a fault too, since which one was meant
    cannot be known. Never raises.
    """
    given: object = call.arguments
    if given is None:
        return {}, None, None
    if isinstance(given, str):
        text = given
        if text.strip() in ("", "null"):
            return {}, None, None
    else:
        # a program outside may hand over what its own parser let through: NaN, or what is no JSON at all
        try:
            text = dumps(given)
        except NotStorable as error:
            return {}, repr(given), f"the arguments of `{call.name}` are not JSON: {error}"
    try:
        value = _parse(text)
        if not isinstance(value, dict):
            raise ValueError(f"expected one JSON object, got {_kind(value)}")
        if _deeper(cast("object", value), DEPTH):
            raise ValueError(f"nested more than {DEPTH} levels deep")
        arguments = cast("JsonObject", value)
        dumps(arguments)  # a number such as 1e999 is read as infinity, which JSON cannot carry
    except json.JSONDecodeError as error:
        what = "there is more after the JSON object" if error.msg == "Extra data" else error.msg.removesuffix(" at")
        return {}, text, f"the arguments of `{call.name}` are not one JSON object: {what} at character {error.pos}"
    except RecursionError:
        return {}, text, f"the arguments of `{call.name}` are not usable: nested too deep"
    except (NotStorable, ValueError) as error:
        return {}, text, f"the arguments of `{call.name}` are not usable: {error}"
    return arguments, None, None


def is_cut(text: str) -> bool:
    """Whether JSON text ends inside a string, a list or an object: the mark of a reply that was cut."""
    open_brackets = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "{[":
            open_brackets += 1
        elif character in "}]":
            open_brackets -= 1
    return quoted or open_brackets > 0


def _parse(text: str) -> object:
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_pairs)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key!r} is given twice")
            seen.add(key)
    return fields


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    names = {list: "a list", str: "text", int: "a number", float: "a number"}
    return names.get(cast("type[list[object]]", type(value)), type(value).__name__)


def _deeper(value: object, levels: int) -> bool:
    layer: list[object] = [value]
    while layer and levels:
        levels -= 1
        inner: list[object] = []
        for item in layer:
            if isinstance(item, dict):
                inner += cast("dict[str, object]", item).values()
            elif isinstance(item, list):
                inner += cast("list[object]", item)
        layer = inner
    return bool(layer)
