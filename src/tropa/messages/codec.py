"""Messages to strict JSON and back. A tool's own data is kept under one key and never interpreted."""

from __future__ import annotations

import base64
from typing import cast

from tropa.errors import CorruptStore
from tropa.messages.json import Json, JsonObject
from tropa.messages.message import (
    Assistant,
    Call,
    Data,
    Media,
    Message,
    Notice,
    Observation,
    Part,
    Reasoning,
    Status,
    Text,
    User,
)


def encode(message: Message) -> JsonObject:
    """The stored form of a message."""
    match message:
        case User(parts):
            return {"role": "user", "parts": [encode_part(part) for part in parts]}
        case Notice(text):
            return {"role": "notice", "text": text}
        case Assistant(parts):
            return {"role": "assistant", "parts": [encode_part(part) for part in parts]}
        case Observation(call_id, tool, status, parts):
            return {
                "role": "tool",
                "call": call_id,
                "tool": tool,
                "status": status,
                "parts": [encode_part(part) for part in parts],
            }


def decode(data: JsonObject) -> Message:
    """A message from its stored form. Raises `CorruptStore` on a shape this version does not know."""
    try:
        return _decode(data)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptStore(f"a stored message cannot be read: {error!r}; its role is {data.get('role')!r}") from error


def _decode(data: JsonObject) -> Message:
    role = data["role"]
    if role == "notice":
        return Notice(cast("str", data["text"]))
    parts = tuple(decode_part(cast("JsonObject", part)) for part in cast("list[Json]", data["parts"]))
    if role == "user":
        return User(cast("tuple[Text | Media, ...]", parts))
    if role == "assistant":
        return Assistant(cast("tuple[Text | Reasoning | Call, ...]", parts))
    if role == "tool":
        return Observation(
            cast("str", data["call"]),
            cast("str", data["tool"]),
            cast("Status", data["status"]),
            cast("tuple[Text | Data | Media, ...]", parts),
        )
    raise ValueError(f"unknown role {role!r}")


def encode_part(part: Part) -> JsonObject:
    """The stored form of one part."""
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Reasoning(text):
            return {"type": "reasoning", "text": text}
        case Data(value):
            return {"type": "data", "value": value}
        case Media(media_type, data, name):
            encoded: JsonObject = {"type": "media", "media": media_type, "base64": base64.b64encode(data).decode()}
            return encoded if name is None else {**encoded, "name": name}
        case Call(id, tool, arguments, raw, fault):
            call: JsonObject = {"type": "call", "id": id, "tool": tool, "arguments": arguments}
            if raw is not None:
                call["raw"] = raw
            if fault is not None:
                call["fault"] = fault
            return call


def decode_part(data: JsonObject) -> Part:
    """One part from its stored form. Raises `ValueError`, `KeyError` or `TypeError` on an unknown shape."""
    kind = data["type"]
    if kind == "text":
        return Text(cast("str", data["text"]))
    if kind == "reasoning":
        return Reasoning(cast("str", data["text"]))
    if kind == "data":
        return Data(data["value"])
    if kind == "media":
        content = base64.b64decode(cast("str", data["base64"]))
        return Media(cast("str", data["media"]), content, cast("str | None", data.get("name")))
    if kind == "call":
        return Call(
            cast("str", data["id"]),
            cast("str", data["tool"]),
            cast("JsonObject", data["arguments"]),
            cast("str | None", data.get("raw")),
            cast("str | None", data.get("fault")),
        )
    raise ValueError(f"unknown part type {kind!r}")
