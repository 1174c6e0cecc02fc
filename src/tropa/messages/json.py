"""Strict JSON: the only form in which anything is stored, sent or compared."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TypeAlias, cast

from tropa.errors import NotStorable

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_escaped = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
JsonObject: TypeAlias = "dict[str, Json]"


def dumps(value: Json) -> str:
    """`value` as compact strict JSON text. Values from outside go through `storable` first, which also checks keys.

    Text that UTF-8 cannot carry (lone surrogates) is escaped, so that it survives a round trip.

    Raises `NotStorable` with the path of the first value that is not JSON: NaN, or an object.
    """
    try:
        text = _compact(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotStorable(_first_fault(value) or f"the value cannot be written as JSON: {error}") from None
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _escaped(value)
    return text


def storable(value: object, path: str) -> None:
    """Check that a value given by a program is strict JSON, keys and all.

    Raises `NotStorable` with the path (from `path` on) and the type of the first part that is not.
    """
    if fault := _first_fault(value, path):
        raise NotStorable(fault)


def loads(text: str | bytes) -> Json:
    """Parse strict JSON. Raises `ValueError` on anything else, `NaN` and `Infinity` included."""
    return cast("Json", json.loads(text, parse_constant=_refuse_constant))


def loads_object(text: str | bytes) -> JsonObject:
    """Parse a strict JSON object. Raises `ValueError` on anything else."""
    value = loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")
    return cast("JsonObject", value)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _first_fault(value: object, path: str = "value", depth: int = 0) -> str | None:
    if value is None or isinstance(value, (bool, int, str)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"`{path}` is {value!r}, which JSON cannot carry"
    if depth > 500:
        return f"`{path[:60]}…` is nested more than 500 levels deep or contains itself"
    if isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                return f"`{path}` has the key {key!r} of type `{type(key).__name__}`; JSON keys are text"
            if fault := _first_fault(item, f"{path}.{key}", depth + 1):
                return fault
        return None
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(cast("Sequence[object]", value)):
            if fault := _first_fault(item, f"{path}[{index}]", depth + 1):
                return fault
        return None
    return f"`{path}` is a `{type(value).__name__}`, which cannot be stored; give plain data instead"
