"""A recorded run answers again, and anything that is asked differently is reported precisely."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from tropa.errors import ReplayMismatch
from tropa.messages import Assistant, Json, JsonObject, Message, Observation, dumps, encode
from tropa.model.profile import Profile
from tropa.model.protocol import Count, Delta, Reply, Request, ToolSpec
from tropa.model.scripted import prompt_tokens
from tropa.model.usage import Price

SHOWN = 80
"""Characters of each side that a mismatch shows."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One ask of a recorded run: the digest of its request, the reply, and the request as `describe` gives it."""

    digest: str
    reply: Reply
    asked: JsonObject | None = None


def describe(request: Request) -> JsonObject:
    """All that a request asks, as plain JSON. The ids of calls are left out: they differ from thread to thread."""
    return {
        "system": request.system,
        "messages": [_said(message) for message in request.messages],
        "tools": [
            {"name": tool.name, "description": tool.description, "schema": tool.schema} for tool in request.tools
        ],
        "output_schema": request.output_schema,
        "max_output": request.max_output,
        "options": request.options,
    }


def request_digest(request: Request, known: Mapping[int, bytes] | None = None) -> str:
    """SHA-256, in hex, over a request's parts. Equal requests have equal digests.

    `known` holds digests that were made before, of messages and of the tuple of tools, by `id` of the object: a long
    conversation is then not hashed anew at each ask.
    """
    known = known or {}
    head = {
        "system": request.system,
        "output": request.output_schema,
        "max": request.max_output,
        "set": request.options,
    }
    total = hashlib.sha256(_digest(head))
    total.update(known.get(id(request.tools)) or tools_digest(request.tools))
    for message in request.messages:
        total.update(known.get(id(message)) or message_digest(message))
    return total.hexdigest()


def message_digest(message: Message) -> bytes:
    """SHA-256 of one message, without the ids of its calls."""
    return _digest(_said(message))


def tools_digest(tools: Sequence[ToolSpec]) -> bytes:
    """SHA-256 of the tools as a model sees them."""
    return _digest([[tool.name, tool.description, tool.schema] for tool in tools])


def _said(message: Message) -> JsonObject:
    encoded = encode(message)
    if isinstance(message, Observation):
        del encoded["call"]
    elif isinstance(message, Assistant):
        for part in cast("list[JsonObject]", encoded["parts"]):
            part.pop("id", None)
    return encoded


def _digest(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


class Replay:
    """A `Model` that answers the k-th ask with the k-th recorded reply, as long as the same is asked."""

    name: str
    profile: Profile
    price: Price | None

    def __init__(
        self,
        records: Sequence[Recorded | tuple[str, Reply]],
        *,
        name: str = "replay:recorded",
        profile: Profile | None = None,
        price: Price | None = None,
    ) -> None:
        """Answer from `records`; a pair is a digest and a reply."""
        self.name = name
        self.profile = profile or Profile()
        self.price = price
        self._records = [record if isinstance(record, Recorded) else Recorded(*record) for record in records]
        self._asked = 0

    @property
    def remaining(self) -> int:
        """How many recorded replies were not asked for."""
        return len(self._records) - self._asked

    async def ask(self, request: Request) -> AsyncIterator[Delta | Reply]:
        """Give the next recorded reply. Raises `ReplayMismatch` with the first difference when something else is asked."""
        number = self._asked + 1
        if number > len(self._records):
            raise ReplayMismatch(f"ask {number} is one more than the {len(self._records)} that were recorded")
        record = self._records[self._asked]
        digest = request_digest(request)
        if digest != record.digest:
            raise ReplayMismatch(f"ask {number} differs from the recorded one: {_difference(record, request, digest)}")
        self._asked = number
        if record.reply.reasoning:
            yield Delta("reasoning", record.reply.reasoning)
        if record.reply.text:
            yield Delta("text", record.reply.text)
        yield record.reply

    async def count(self, request: Request) -> Count:
        """An estimate by the scripted ruler: the model that was recorded is not here."""
        return Count(prompt_tokens(request, self.profile.image_tokens), exact=False)

    async def close(self) -> None:
        """Nothing to let go of."""


def first_difference(recorded: Json, asked: Json, path: str = "request") -> str | None:
    """Where two JSON values first differ, with both sides shortened; `None` when they are equal."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for key in [*recorded, *(key for key in asked if key not in recorded)]:
            if key not in asked:
                return f"`{path}.{key}` was {_short(recorded[key])} and is missing"
            if key not in recorded:
                return f"`{path}.{key}` is {_short(asked[key])} and was not there"
            if found := first_difference(recorded[key], asked[key], f"{path}.{key}"):
                return found
        return None
    if isinstance(recorded, list) and isinstance(asked, list):
        for index, (was, now) in enumerate(zip(recorded, asked, strict=False)):
            if found := first_difference(was, now, f"{path}[{index}]"):
                return found
        if len(recorded) != len(asked):
            more = (
                [*recorded, *asked][min(len(recorded), len(asked))]
                if len(recorded) > len(asked)
                else asked[len(recorded)]
            )
            return f"`{path}` had {len(recorded)} items and has {len(asked)}; the first unmatched is {_short(more)}"
        return None
    if dumps(recorded) == dumps(asked):
        return None
    if isinstance(recorded, str) and isinstance(asked, str):
        at = next(
            (i for i, (a, b) in enumerate(zip(recorded, asked, strict=False)) if a != b), min(len(recorded), len(asked))
        )
        start = max(0, at - 20)
        return f"`{path}` at character {at}: was {_short(recorded[start:])}, is {_short(asked[start:])}"
    return f"`{path}` was {_short(recorded)}, is {_short(asked)}"


def _difference(record: Recorded, request: Request, digest: str) -> str:
    if record.asked is None:
        return f"its digest is {digest[:12]}… and was {record.digest[:12]}…; the recorded request was not kept"
    return first_difference(record.asked, describe(request)) or "only the digest differs; the record was changed"


def _short(value: Json) -> str:
    text = dumps(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
