"""One entry of a journal."""

from __future__ import annotations

from dataclasses import dataclass

from tropa.messages import JsonObject


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that is about to be appended. `body` is strict JSON."""

    kind: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it stands in a journal.

    `seq` counts from 1 in its thread. `time` is seconds since 1970 (UTC), to the microsecond.
    """

    thread: str
    seq: int
    time: float
    kind: str
    body: JsonObject
