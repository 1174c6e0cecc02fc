"""Agents for the tests of the command line: scripted, without state, so that any process can resume them.

The tools write to the file that WORKSHOP names, one line for each effect.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from tropa import Agent, ToolFailed, tool
from tropa.messages import Assistant, Notice, Observation, User
from tropa.model import Count, Delta, Profile, Reply, Request, Scripted, Usage, calls


def note(line: str) -> None:
    with Path(os.environ["WORKSHOP"]).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


@tool(destructive=True, idempotent=False, open_world=False)
def drill(part: str, holes: int) -> str:
    """Drill holes into a part.

    Args:
        part: Which part.
        holes: How many.
    """
    if holes > 50:
        raise ToolFailed("the part would fall apart")
    note(f"drill {part} {holes}")
    return f"{holes} holes in {part}"


@tool(read_only=True)
async def measure(part: str) -> str:
    """Measure a part, slowly."""
    note(f"measure {part}")
    await asyncio.sleep(30)
    return "12 mm"


@tool(read_only=True)
async def brood() -> str:
    """Think, and listen to nobody."""
    note("brood")
    while True:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            note("not listening")


@tool
def weld(part: str) -> str:
    """Weld a part. It takes a while, and cannot be undone."""
    note(f"weld {part}")
    time.sleep(float(os.environ.get("WELDING", "30")))
    return "welded"


def turn(request: Request) -> list[object]:
    """What came after the newest user message."""
    last = max(i for i, message in enumerate(request.messages) if isinstance(message, User))
    return list(request.messages[last + 1 :])


def said(request: Request) -> str:
    users = [message for message in request.messages if isinstance(message, User)]
    return "".join(getattr(part, "text", "") for part in users[-1].parts)


def results(request: Request) -> list[Observation]:
    return [item for item in turn(request) if isinstance(item, Observation)]


def one_drill(request: Request):
    found = results(request)
    if found:
        return f"Outcome: {found[-1].status}, {found[-1].value}"
    return calls(("drill", {"part": "lid", "holes": 4}))


def echo(request: Request):
    users = [m for m in request.messages if isinstance(m, User)]
    return f"turn {len(users)}: {said(request)}"


def two_drills(request: Request):
    found = results(request)
    if found:
        return "; ".join(f"{one.status} {one.value}" for one in found)
    return calls(("drill", {"part": "lid", "holes": 1}), ("drill", {"part": "box", "holes": 2}))


def stubborn(request: Request):
    return calls(("drill", {"part": "lid", "holes": 4}))


def one_weld(request: Request):
    found = results(request)
    return f"Outcome: {found[-1].status}" if found else calls(("weld", {"part": "frame"}))


def two_measures(request: Request):
    if "again" in said(request):
        return "measured nothing, all is well"
    return calls(("measure", {"part": "lid"}), ("measure", {"part": "box"}))


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\u202c [red]m[/red] \U000e0041\u200bend"


@tool(read_only=True)
def page() -> str:
    """A page of a stranger."""
    return HOSTILE


def hostile(request: Request):
    found = results(request)
    if not found:
        return calls(("page", {}))
    if len(found) == 1:
        return Reply("", tuple(calls(("drill", {"part": HOSTILE, "holes": 4}))), reasoning=HOSTILE, finish="calls")
    return HOSTILE


class Talker:
    """A model that streams a word every tenth of a second, twenty of them; to "again" it answers at once."""

    name = "talker:slow"
    profile = Profile()
    price = None

    async def ask(self, request: Request) -> AsyncIterator[Delta | Reply]:
        # A real server refuses a conversation in which roles or calls are not in order; so does this one.
        assert isinstance(request.messages[0], User)
        answered = [m for m in request.messages if isinstance(m, (Assistant, Notice))]
        if "again" in said(request):
            yield Reply(f"after {len(answered)} earlier messages", usage=Usage(5, 5))
            return
        words = [f"word{number} " for number in range(60)]
        for word in words:
            await asyncio.sleep(0.1)
            yield Delta("text", word)
        yield Reply("".join(words), usage=Usage(5, 60))

    async def count(self, request: Request) -> Count:
        return Count(10, exact=True)

    async def close(self) -> None:
        return None


def driller() -> Agent:
    return Agent("driller", model=Scripted(one_drill), tools=[drill])


def pair() -> Agent:
    return Agent("pair", model=Scripted(two_drills), tools=[drill])


def mule() -> Agent:
    return Agent("mule", model=Scripted(stubborn), tools=[drill])


def welder() -> Agent:
    return Agent("welder", model=Scripted(one_weld), tools=[weld])


def gauge() -> Agent:
    return Agent("gauge", model=Scripted(two_measures), tools=[measure])


def rock() -> Agent:
    return Agent(
        "rock", model=Scripted(lambda r: "over" if "again" in said(r) else calls(("brood", {}))), tools=[brood]
    )


def parrot() -> Agent:
    return Agent("parrot", model=Scripted(echo))


def stranger() -> Agent:
    return Agent("stranger", model=Scripted(hostile), tools=[page, drill])


talker = Agent("talker", model=Talker())
