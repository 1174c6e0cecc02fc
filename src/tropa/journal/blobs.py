"""Large texts leave the event and are stored once, by their hash.

The event's row then lists where they belong: `[[path, sha256], …]`. Nothing in the body marks the place, so no data
of a user or a tool can be taken for a reference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import cast

from tropa.errors import CorruptStore
from tropa.messages import Json, JsonObject, dumps, loads, loads_object

LARGE = 32 * 1024
"""Bytes from which a text is stored apart."""


def sha256(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def pack(body: JsonObject) -> tuple[str, str, dict[str, str]]:
    """A body as `(text, blob list, blobs by hash)`; the list is empty text where nothing is large."""
    text = dumps(body)
    if len(text) < LARGE // 4 or len(text.encode()) <= LARGE:
        return text, "", {}
    blobs: dict[str, str] = {}
    places: list[Json] = []
    kept: Json = _cut(body, [], blobs, places)
    return dumps(kept), dumps(places), blobs


def _cut(value: Json, path: list[Json], blobs: dict[str, str], places: list[Json]) -> Json:
    if isinstance(value, str):
        text = value
        if len(text) < LARGE // 4 or len(dumps(text).encode()) <= LARGE:
            return value
    elif isinstance(value, dict) and (not path or _has_large_text(value)):
        return {key: _cut(item, [*path, key], blobs, places) for key, item in value.items()}
    elif isinstance(value, list) and _has_large_text(value):
        return [_cut(item, [*path, index], blobs, places) for index, item in enumerate(value)]
    else:
        text = dumps(value)
        if len(text.encode()) <= LARGE:
            return value
    encoded = dumps(value)
    digest = sha256(encoded)
    blobs[digest] = encoded
    places.append([list(path), digest])
    return None


def _has_large_text(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) > LARGE // 4
    if isinstance(value, dict):
        return any(_has_large_text(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_large_text(item) for item in value)
    return False


def digests(places: str) -> Iterator[str]:
    """The hashes that a blob list names."""
    if places:
        for place in cast("list[list[Json]]", loads(places)):
            yield cast("str", place[1])


def unpack(text: str | bytes, places: str, blobs: Mapping[str, str | None]) -> JsonObject:
    """The body that `pack` took apart. Raises `CorruptStore` when a blob is missing or was changed."""
    body = loads_object(text)
    if not places:
        return body
    for place in cast("list[list[Json]]", loads(places)):
        path, digest = cast("list[str | int]", place[0]), cast("str", place[1])
        encoded = blobs.get(digest)
        if encoded is None or sha256(encoded) != digest:
            raise CorruptStore(f"the blob {digest[:12]}… is {'missing' if encoded is None else 'changed'}")
        target = cast("dict[str | int, Json]", body)
        for step in path[:-1]:
            target = cast("dict[str | int, Json]", target[step])
        target[path[-1]] = loads(encoded)
    return body
