"""The loop: decide, call, observe, until something stops it (spec §4)."""

from __future__ import annotations

from collections.abc import Callable

from tropa.errors import InvalidArguments
from tropa.events import Stop
from tropa.messages import Json
from tropa.session import ReplyRecord, Run, Session, Stopped

RETRIES = 2
"""How often an empty reply, or an answer that does not fit its type, is asked for again."""

Check = Callable[[str], Json]
"""Reads a structured answer and gives it as JSON. Raises `InvalidArguments` with words for the model."""


async def react(session: Session, check: Check | None = None) -> Run:
    """Run the session until it ends or waits. Starting it again on the same thread goes on where it was."""
    faults = 0
    try:
        while not (stop := await session.stop()):
            reply = await session.ask()
            if reply.calls:
                while not await session.call(reply.calls):
                    if (parked := await session.pause()) is not None:
                        return parked
                continue
            output: Json = None
            fault = _fault(reply)
            if fault is None and check is not None:
                try:
                    output = check(reply.text)
                except InvalidArguments as error:
                    fault = str(error)
            if fault is None:
                return await session.finish(_stop_of(reply), reply, output)
            faults += 1
            if faults > RETRIES:
                return await session.finish("error" if reply.text else "empty_reply", reply)
            await session.notice(fault)
    except Stopped as limit:
        stop = limit.stop
    return await session.close(stop)


def _fault(reply: ReplyRecord) -> str | None:
    if not reply.text.strip() and reply.finish not in {"filter", "length"}:
        return "Your last reply was empty. Answer in words, or call a tool."
    return None


def _stop_of(reply: ReplyRecord) -> Stop:
    ends: dict[str, Stop] = {"length": "truncated", "filter": "refused", "cancelled": "cancelled"}
    return ends.get(reply.finish, "answered")
