"""Agents for the tests of workers: scripted and without state, so that any process can go on with their threads.

The tools write one line for each effect to the file `effects` in the folder that YARD names. While the file `hold` is in
it, the slow ones do not end.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tropa import Agent, ToolContext, tool
from tropa.gate import RUN
from tropa.messages import Observation, User
from tropa.model import Request, Scripted, calls


def folder() -> Path:
    return Path(os.environ["YARD"])


def note(line: str) -> None:
    with (folder() / "effects").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


async def held() -> None:
    while (folder() / "hold").exists():
        await asyncio.sleep(0.02)


@tool(read_only=True)
async def weigh(crate: int) -> str:
    """Weigh a crate, slowly."""
    note(f"weigh {crate} pid {os.getpid()}")
    await held()
    return f"{crate} kg"


@tool(destructive=False)
async def lift(crate: int, context: ToolContext) -> str:
    """Lift a crate."""
    note(f"lift {crate} {context.thread}")
    return "lifted"


@tool(destructive=False)
async def ship(crate: int) -> str:
    """Ship a crate; it is gone at once, but the paper takes a while."""
    note(f"ship {crate} pid {os.getpid()}")
    await held()
    return "shipped"


@tool(destructive=False, idempotent=True)
async def pay(amount: int, context: ToolContext) -> str:
    """Pay, at a bank that knows a payment by its key."""
    note(f"try {context.key} {context.attempt} pid {os.getpid()}")
    await held()
    note(f"paid {context.key}")
    return "paid"


def results(request: Request) -> list[Observation]:
    last = max(i for i, message in enumerate(request.messages) if isinstance(message, User))
    return [item for item in request.messages[last + 1 :] if isinstance(item, Observation)]


def once(name: str, **arguments: int):
    def reply(request: Request):
        found = results(request)
        return f"{found[-1].status}: {found[-1].value}" if found else calls((name, arguments))

    return reply


async def walk(request: Request):
    """Weigh eight crates, one at a time, then lift one."""
    step = len(results(request))
    await asyncio.sleep(0.05)
    if step < 8:
        return calls(("weigh", {"crate": step}))
    return calls(("lift", {"crate": 8})) if step == 8 else f"done after {step} steps"


def free(proposed):
    return RUN


scale = Agent("scale", model=Scripted(once("weigh", crate=7)), tools=[weigh])
crane = Agent("crane", model=Scripted(once("lift", crate=7)), tools=[lift])
"""Asks before it lifts."""
brief = Agent("brief", model=Scripted(once("lift", crate=7)), tools=[lift], approval_seconds=1)
patient = Agent("patient", model=Scripted(once("lift", crate=7)), tools=[lift], approval_seconds=300)
hoist = Agent("hoist", model=Scripted(once("lift", crate=7), delay=0.2), tools=[lift], policy=free)
port = Agent("port", model=Scripted(once("ship", crate=7)), tools=[ship], policy=free)
bank = Agent("bank", model=Scripted(once("pay", amount=5)), tools=[pay], policy=free)
walker = Agent("walker", model=Scripted(walk), tools=[weigh, lift], policy=free)
ALL = ("scale", "crane", "brief", "patient", "hoist", "port", "bank", "walker")
