"""A recorded run as a model that answers again: the prompts are rebuilt from the journal, none was stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from tropa.context import render
from tropa.context.window import readable
from tropa.errors import ThreadNotFound
from tropa.events import Event, State, apply_field, in_call_order, message_of
from tropa.journal import Journal
from tropa.messages import Assistant, JsonObject, Message, User
from tropa.model import Finish, RawCall, Reply, Request, ToolSpec, Usage
from tropa.model.replay import Recorded, describe, request_digest


async def recorded(journal: Journal, thread: str, run: int | None = None) -> list[Recorded]:
    """The asks of a run (the latest by default; `run` is its first event): what was asked, and the reply.

    Where a prompt cannot be rebuilt to the digest that was journaled (a very long turn, a closing answer in short form),
    the digest stands alone. Raises `ThreadNotFound`.
    """
    head = await journal.head(thread)
    start = head.run if run is None else run
    if not start:
        raise ThreadNotFound(f"thread {thread!r} has no run in this store; `tropa trail list` shows the threads")
    definition: JsonObject = {}
    state = State()
    seen: list[tuple[int, Message]] = []
    asks: list[Recorded] = []
    asked: Event | None = None
    async for entry in journal.events(thread):
        if entry.kind == "run.started":
            if entry.seq > start:
                break
            definition = cast("JsonObject", json.loads(await journal.text(cast("str", entry.body["agent"]))))
        elif entry.kind == "field.set":
            apply_field(state.fields, entry.body)
        elif entry.kind == "window.cut":
            seen = [item for item in seen if item[0] >= cast("int", entry.body["start"])]
        elif entry.kind == "model.requested":
            asked = entry
        elif entry.kind == "model.replied" and asked is not None and entry.seq > start:
            asks.append(_ask(definition, state.fields, [message for _, message in seen], asked, entry))
        if (message := message_of(entry)) is not None:
            seen.append((entry.seq, message))
    return asks


def _ask(
    definition: JsonObject, fields: JsonObject, messages: Sequence[Message], asked: Event, replied: Event
) -> Recorded:
    digest = cast("str", asked.body["digest"])
    request = rebuild(definition, fields, messages, asked.body)
    same = request_digest(request) == digest
    return Recorded(digest, _reply(replied), describe(request) if same else None)


def rebuild(definition: JsonObject, fields: JsonObject, messages: Sequence[Message], asked: JsonObject) -> Request:
    """The request that `model.requested` speaks of, from the agent's definition and the state before it."""
    closing = asked.get("closing")
    values = {**cast("JsonObject", definition.get("fields", {})), **fields}
    tools = tuple(
        ToolSpec(cast("str", spec["name"]), cast("str", spec["description"]), cast("JsonObject", spec["schema"]))
        for spec in cast("list[JsonObject]", definition["tools"])
    )
    limit = cast("int", definition["limit"])
    shown = tuple(readable(message, limit) for message in in_call_order(list(messages)))
    while shown and not isinstance(shown[0], User):
        shown = shown[1:]
    request = Request(
        render(cast("str", definition["instructions"]), values),
        shown,
        () if closing else tools,
        None if closing else cast("JsonObject | None", definition.get("output")),
        options=cast("JsonObject", definition["options"]),
    )
    return replace(request, max_output=cast("int", asked["max_output"]))


def _reply(entry: Event) -> Reply:
    body = entry.body
    message = cast("Assistant", message_of(entry))
    ids = cast("list[str | None]", body.get("ids", [None] * len(message.calls)))
    calls = tuple(
        RawCall(call.tool, call.arguments if call.raw is None else call.raw, id)
        for call, id in zip(message.calls, ids, strict=True)
    )
    return Reply(
        message.text,
        calls,
        message.reasoning,
        cast("Finish", body["finish"]),
        Usage.from_json(cast("JsonObject", body["usage"])),
        cast("str", body.get("model", "")),
    )
