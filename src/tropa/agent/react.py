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

_ENDS: dict[str, Stop] = {"length": "truncated", "filter": "refused", "cancelled": "cancelled"}
"""How a reply ended that is no whole answer, and the stop that this means."""


async def react(session: Session, check: Check | None = None, leave: Callable[[], bool] | None = None) -> Run:
    """Run the session until it ends or waits. Starting it again on the same thread goes on where it was.

    `leave` is looked at between steps: once it says so, the run is parked for another worker.
    """
    faults = 0
    try:
        while not (stop := await session.stop()):
            if leave is not None and leave():
                return await session.park()
            reply = await session.ask()
            if reply.calls:
                while not await session.call(reply.calls):
                    if (parked := await session.pause()) is not None:
                        return parked
                continue
            if (end := _ENDS.get(reply.finish)) is not None:
                return await session.finish(end, reply)
            try:
                output = _answer(reply, check)
            except InvalidArguments as error:
                faults += 1
                if faults <= RETRIES:
                    await session.notice(str(error))
                elif reply.text.strip():
                    return await session.finish("error", reply, error=f"no valid answer in {faults} replies: {error}")
                else:
                    return await session.finish("empty_reply", reply)
            else:
                return await session.finish("answered", reply, output)
    except Stopped as limit:
        stop = limit.stop
    return await session.close(stop)


def _answer(reply: ReplyRecord, check: Check | None) -> Json:
    """The structured answer, where one is wanted. Raises `InvalidArguments` when the reply is no answer."""
    if not reply.text.strip():
        raise InvalidArguments("Your last reply was empty. Answer in words, or call a tool.")
    return None if check is None else check(reply.text)
