"""What the runtime tells a running tool. Never part of the schema, never supplied by the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tropa.messages import Json

_NO_FIELDS: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The call that a tool is running for. Annotate a parameter with it, under any name, and it is passed in.

    `key` is the idempotency key: the same for every attempt of one call, so that a service can refuse the second.
    `attempt` counts from 1. `connection` is the journal's own database connection, for a transactional tool only.
    `fields` is a read-only view of the thread's fields.
    """

    thread: str
    run: str
    call_id: str
    key: str
    attempt: int = 1
    connection: object | None = None
    fields: Mapping[str, Json] = field(default_factory=lambda: _NO_FIELDS)
