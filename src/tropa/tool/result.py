"""What came of running a tool, as parts of a message."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Literal, TypeAlias, cast
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from tropa.errors import NotStorable
from tropa.messages import Data, Json, Media, Text, dumps

Parts: TypeAlias = "tuple[Text | Data | Media, ...]"

_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one run. `unknown`: it was cut off, and whether it took effect cannot be said.

    `error` is the name of the exception, for the trail; the parts hold the text for the model.
    """

    status: Literal["ok", "error", "cancelled", "unknown"]
    parts: Parts
    error: str | None = None


def to_parts(value: object) -> Parts:
    """What a tool returned, as message parts: text as it is, media as bytes with a type, the rest as strict JSON.

    A list that holds media becomes one part an item. NaN and the infinities become the texts "NaN", "Infinity" and
    "-Infinity". Raises `NotStorable` naming the path and type of what cannot be described.
    """
    if isinstance(value, str) and not isinstance(value, Enum):
        return (Text(str(value)),)
    if isinstance(value, Media):
        return (value,)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return (_file(bytes(cast("bytes", value))),)
    if isinstance(value, (list, tuple)) and any(
        isinstance(item, (Media, bytes)) for item in cast("list[object]", value)
    ):
        parts = [_item(item, f"result[{index}]") for index, item in enumerate(cast("Sequence[object]", value))]
        return tuple(part for some in parts for part in some)
    return _with_media(cast("object", value), "result")


def _item(value: object, path: str) -> Parts:
    if isinstance(value, str) and not isinstance(value, Enum):
        return (Text(str(value)),)
    return to_parts(value) if isinstance(value, (Media, bytes)) else _with_media(value, path)


def _with_media(value: object, path: str) -> Parts:
    media: list[Media] = []
    plain = _plain(value, path, media, ())
    return (Data(plain), *media)


def _file(value: bytes) -> Media:
    return Media("application/octet-stream", value)


def _plain(value: object, path: str, media: list[Media], above: tuple[int, ...]) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _plain(value.value, path, media, above)
    if isinstance(value, (str, int, float)):
        return _scalar(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID, PurePath)):
        return str(value)
    if isinstance(value, (Media, bytes, bytearray, memoryview)):
        found = value if isinstance(value, Media) else _file(bytes(cast("bytes", value)))
        media.append(found)
        return f"[attached: {found.name or found.media_type}]"
    if id(value) in above or len(above) > _DEPTH:
        raise NotStorable(f"`{_cut(path)}` contains itself or is nested over {_DEPTH} levels deep")
    above = (*above, id(value))
    if isinstance(value, BaseModel):
        return _object(value.model_dump(), path, media, above)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {field.name: cast("object", getattr(value, field.name)) for field in dataclasses.fields(value)}
        return _object(members, path, media, above)
    if isinstance(value, Mapping):
        return _object(cast("Mapping[object, object]", value), path, media, above)
    if isinstance(value, AbstractSet):
        items = [_plain(item, f"{path}{{}}", media, above) for item in cast("AbstractSet[object]", value)]
        return sorted(items, key=dumps)
    if isinstance(value, Sequence):
        return [_plain(v, f"{path}[{i}]", media, above) for i, v in enumerate(cast("Sequence[object]", value))]
    return _foreign(value, path, media, above)


def _scalar(value: str | float) -> Json:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _object(
    members: Mapping[object, object] | Mapping[str, object], path: str, media: list[Media], above: tuple[int, ...]
) -> Json:
    plain: dict[str, Json] = {}
    for key, item in members.items():
        name = _key(key, path)
        if name in plain:
            raise NotStorable(f"`{_cut(path)}` has two keys that are both the text {name!r:.60}; name them apart")
        plain[name] = _plain(item, f"{path}.{name}", media, above)
    return plain


def _key(key: object, path: str) -> str:
    plain = (
        _plain(key, f"{path}.<key>", [], ())
        if not isinstance(key, tuple)
        else [str(k) for k in cast("tuple[object, ...]", key)]
    )
    if isinstance(plain, str):
        return plain
    return ", ".join(str(part) for part in plain) if isinstance(plain, list) else dumps(plain)


def _foreign(value: object, path: str, media: list[Media], above: tuple[int, ...]) -> Json:
    """Types of other libraries: arrays and their scalars by `tolist`, the rest as pydantic writes them."""
    listed = getattr(value, "tolist", None)
    if callable(listed) and not isinstance(value, type):
        return _plain(listed(), path, media, above)
    lazy = isinstance(value, Iterator)
    if not lazy:
        try:
            return _plain(to_jsonable_python(value, inf_nan_mode="constants"), path, media, above)
        except (PydanticSerializationError, ValueError, RecursionError):
            pass
    raise NotStorable(
        f"`{_cut(path)}` is of type `{type(value).__module__}.{type(value).__qualname__}`, which is not data"
    )


def _cut(path: str) -> str:
    return path if len(path) <= 120 else f"{path[:60]}…{path[-59:]}"
