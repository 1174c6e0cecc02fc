"""Messages and their parts, and the strict JSON they are made of."""

from tropa.messages.codec import decode, encode
from tropa.messages.json import Json, JsonObject, dumps, loads, loads_object, storable
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
    System,
    Text,
    User,
    user,
)

__all__ = [
    "Assistant",
    "Call",
    "Data",
    "Json",
    "JsonObject",
    "Media",
    "Message",
    "Notice",
    "Observation",
    "Part",
    "Reasoning",
    "Status",
    "System",
    "Text",
    "User",
    "decode",
    "dumps",
    "encode",
    "loads",
    "loads_object",
    "storable",
    "user",
]
