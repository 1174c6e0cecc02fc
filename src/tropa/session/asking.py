"""Asking the model: assemble, reserve, request, record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import cast

import anyio

from tropa.context import fit, render, shorten_observation
from tropa.errors import ContextTooSmall, ModelError
from tropa.events import Stop, event
from tropa.gate import Reservation, reserve
from tropa.gate.budget import CLOSING, FLOOR
from tropa.messages import (
    Assistant,
    Call,
    Json,
    JsonObject,
    Message,
    Notice,
    Observation,
    Reasoning,
    Text,
    User,
    encode,
)
from tropa.model import Count, Delta, Finish, Reply, Request, Usage
from tropa.model.arguments import parse_arguments
from tropa.model.replay import request_digest
from tropa.session.held import Held
from tropa.session.outcome import Stopped
from tropa.session.record import ReplyRecord
from tropa.tool import masked

_SHORT = 400
"""Characters of each observation in a closing request that would not fit otherwise."""
_CHARS_PER_TOKEN = 8
_SLACK = 512
"""A stream of more than eight characters for each allowed token, and these, is clearly over its limit: twice the usual."""


async def ask(session: Held) -> ReplyRecord:
    """Ask the model for the next step. See `Session.ask`."""
    setup, record = session.setup, session.record
    base = _request(session)

    async def count(messages: Sequence[Message]) -> Count:
        return _with_margin(await setup.model.count(replace(base, messages=tuple(messages))))

    window = await fit(session.shown(), setup.limit, count)
    if window.cut:
        start = session.window[window.cut].seq
        await session.note(event("window.cut", {"start": start, "tokens": window.count.tokens}))
    keep = await _closing_reserve(session) if setup.tools else Usage()
    want = min(_want(session), setup.model.profile.context - window.count.tokens)
    fits = reserve(record.budget, record.spent, window.count.tokens, want, setup.model.price, keep)
    if not isinstance(fits, Reservation):
        raise Stopped(fits)
    return await _send(session, replace(base, messages=window.messages), window.count, fits)


async def closing_answer(session: Held, stop: Stop) -> ReplyRecord | None:
    """One answer without tools from what was kept in reserve; `None` when even that does not fit.

    The request is made smaller until it fits: whole, then with short observations, then the question alone.
    """
    setup, record = session.setup, session.record
    if stop in {"cancelled", "error", "refused", "max_seconds"}:
        return None
    base = _request(session, closing=True)
    notice = Notice(f"Answer now with what you know; no more tool calls can be made ({stop}).")
    whole = session.shown()
    question = [message for message in whole if isinstance(message, User)][-1:]
    short = [shorten_observation(item, _SHORT) if isinstance(item, Observation) else item for item in whole]
    for messages in (whole, short, question):
        request = replace(base, messages=(*messages, notice))
        counted = _with_margin(await setup.model.count(request))
        want = min(_want(session), setup.model.profile.context - counted.tokens)
        if want < FLOOR:
            continue
        fits = reserve(record.budget, record.spent, counted.tokens, want, setup.model.price)
        if isinstance(fits, Reservation):
            try:
                return await _send(session, request, counted, fits, closing=stop)
            except (ModelError, ContextTooSmall):
                return None
    return None


def _request(session: Held, *, closing: bool = False) -> Request:
    setup = session.setup
    system = render(setup.instructions, session.fields)
    tools = () if closing else setup.tools
    return Request(system, (), tools, None if closing else setup.output, options=setup.options)


def _want(session: Held) -> int:
    return session.setup.max_output or session.setup.model.profile.max_output


def _with_margin(count: Count) -> Count:
    """An estimate is taken with a tenth on top; an exact count as it is."""
    return count if count.exact else Count(count.tokens + count.tokens // 10 + 8, exact=False)


async def _closing_reserve(session: Held) -> Usage:
    """What a closing answer takes at least: the instruction, the question, and room to answer."""
    record = session.record
    if record.budget.tokens is None and record.budget.cost is None:
        return Usage()
    question = [message for message in session.shown() if isinstance(message, User)][-1:]
    base = _request(session, closing=True)
    counted = _with_margin(await session.setup.model.count(replace(base, messages=(*question, Notice("x" * 80)))))
    # A small budget keeps a small reserve: no more than a fifth of it goes to the closing words.
    room = CLOSING if record.budget.tokens is None else max(FLOOR, min(CLOSING, record.budget.tokens // 5))
    return Usage(counted.tokens, min(room, _want(session)))


async def _send(
    session: Held, request: Request, counted: Count, fits: Reservation, *, closing: Stop | None = None
) -> ReplyRecord:
    model = session.setup.model
    request = replace(request, max_output=fits.max_output)
    reserved: JsonObject = {} if model.price is None else {"cost": model.price.of(Usage(fits.tokens, fits.max_output))}
    if closing:
        reserved["closing"] = closing
    await session.note(
        event(
            "model.requested",
            {
                "digest": request_digest(request, _known(session, request)),
                "tokens": counted.tokens,
                "exact": counted.exact,
                "max_output": fits.max_output,
                **reserved,  # type: ignore[typeddict-item]
            },
        )
    )
    started = time.monotonic()
    said: list[Delta] = []
    limit = asyncio.timeout(_seconds_left(session))
    try:
        async with limit:
            reply = await _stream(session, request, said, counted)
    except TimeoutError as error:
        if not limit.expired():
            raise ModelError(f"`{model.name}` did not answer in time: {error!r}", retryable=True) from error
        await _record(session, _partial(said, counted, "cancelled"), time.monotonic() - started, counted)
        raise Stopped("max_seconds") from None
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await _record(session, _partial(said, counted, "cancelled"), time.monotonic() - started, counted)
        raise
    await _record(session, reply, time.monotonic() - started, counted)
    return session.record.replies[-1]


async def _stream(session: Held, request: Request, said: list[Delta], counted: Count) -> Reply:
    reply: Reply | None = None
    most = (request.max_output or 0) * _CHARS_PER_TOKEN + _SLACK
    stream = session.setup.model.ask(request)
    try:
        async for item in stream:
            if isinstance(item, Reply):
                reply = item
                continue
            said.append(item)
            if session.watch is not None and not (item.kind == "call" and session.setup.has_secrets):
                session.watch(item)
            most -= len(item.text)
            if most < 0:
                warning = f"the model went on past max_output={request.max_output}; its stream was broken off"
                return replace(_partial(said, counted, "length"), warnings=(warning,))
    finally:
        if isinstance(stream, AsyncGenerator):
            await cast("AsyncGenerator[Delta | Reply]", stream).aclose()
    if reply is None:
        raise ModelError(f"`{session.setup.model.name}` ended its stream without a reply; ask again", retryable=True)
    return reply


def _known(session: Held, request: Request) -> dict[int, bytes]:
    """The digests at hand, by object: of the window's messages, and of the tools."""
    return {id(item.shown): item.digest for item in session.window} | {
        id(session.setup.tools): session.setup.tools_digest
    }


def _partial(said: Sequence[Delta], counted: Count, finish: Finish) -> Reply:
    """What had been said when the request was broken off. Half a call is no call."""
    text = "".join(delta.text for delta in said if delta.kind == "text")
    reasoning = "".join(delta.text for delta in said if delta.kind == "reasoning")
    spoken = sum(len(delta.text) for delta in said)
    return Reply(text, (), reasoning, finish, Usage(counted.tokens, spoken // 3 + 1, estimated=True))


def _priced(session: Held, reply: Reply, counted: Count) -> Reply:
    """Fill in what the server did not say: a budget never counts an unknown as 0."""
    usage = reply.usage
    if not usage.tokens:
        spoken = len(reply.text) + len(reply.reasoning) + sum(len(str(call.arguments)) for call in reply.calls)
        usage = Usage(counted.tokens, spoken // 3 + 1, estimated=True)
    if usage.cost is None and session.setup.model.price is not None:
        usage = replace(usage, cost=session.setup.model.price.of(usage))
    return replace(reply, usage=usage)


async def _record(session: Held, reply: Reply, seconds: float, counted: Count) -> None:
    reply = _priced(session, reply, counted)

    def build() -> list[object]:
        seq = session.seq + 1
        calls, ids = _calls(session, reply, seq)
        parts: list[Text | Reasoning | Call] = [Reasoning(reply.reasoning)] if reply.reasoning else []
        parts += [Text(reply.text)] if reply.text else []
        body: JsonObject = {
            "message": encode(Assistant((*parts, *calls))),
            "finish": reply.finish,
            "usage": reply.usage.to_json(),
            "seconds": round(seconds, 6),
        }
        if reply.model and reply.model != session.setup.model.name:
            body["model"] = reply.model
        if any(ids):
            body["ids"] = ids
        if reply.warnings:
            body["warnings"] = list(reply.warnings)
        return [event("model.replied", cast("object", body))]  # type: ignore[arg-type]

    await session.write(build, later=True)  # type: ignore[arg-type]


def _calls(session: Held, reply: Reply, seq: int) -> tuple[list[Call], list[Json]]:
    """The reply's calls under ids of our own: a provider may number each round anew, or not at all."""
    calls: list[Call] = []
    for index, raw in enumerate(reply.calls):
        arguments, text, fault = parse_arguments(raw)
        tool = session.setup.toolbox.get(raw.name)
        call = Call(f"c{seq}_{index}", raw.name, arguments, text, fault)
        if tool is not None and tool.secret:
            session.setup.keep_secret(session.thread, call.id, arguments)
            call = replace(call, arguments=masked(tool, arguments), raw=None)
        calls.append(call)
    return calls, [raw.id for raw in reply.calls]


def _seconds_left(session: Held) -> float | None:
    limit = session.record.budget.seconds
    return None if limit is None else max(0.0, limit - session.record.seconds(time.time()))
