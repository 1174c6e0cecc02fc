"""A plant whose machines fail: random work, a world that counts its effects, and a process that ends at any point.

A *point* is a place where the process could end: before and after every append to the journal (those of people who
decide, too), before and after every effect of a tool, inside and at the end of a transaction. At each point the dice
decide whether the process ends there. What lives on is the journal and the world; a new process goes on from them.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.session.history import results, well_formed
from tropa import Agent, Store, ToolContext, tool
from tropa.gate import RUN, ask_before_effects
from tropa.messages import User
from tropa.model.scripted import Scripted, calls

KINDS = ("read", "fail", "move", "free", "put", "pay")
"""read and fail only read; move asks; free runs without asking; put is idempotent; pay is transactional. The last four act."""
DECISIONS = ("approve", "edit", "reject")


class Ended(BaseException):
    """The end of the process."""


@dataclass
class Dice:
    """Ends the process at a point with the given odds, and counts the ends."""

    seed: int
    odds: float
    points: int = 0
    ends: int = 0
    inside: set[str] = field(default_factory=set)
    """Effects at which a process ended between the start and the end of their call."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.dead = False

    def point(self, inside: str | None = None) -> None:
        self.points += 1
        if self.dead or self.random.random() < self.odds:
            self.ends += not self.dead
            self.dead = True  # nothing of a process that ended does anything any more
            if inside is not None:
                self.inside.add(inside)
            raise Ended


@dataclass
class Shift:
    """One schedule: the calls of each step, and what people say to those that ask."""

    thread: str
    steps: list[list[str]]
    said: dict[str, str]
    dice: Dice
    done: Counter[str] = field(default_factory=Counter)
    keys: dict[str, set[str]] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    """What a person answered about an outcome that was in doubt."""

    def script(self, request) -> object:
        """The next line: a model keeps nothing, so it goes by how many results it reads."""
        answered = len(results(request.messages))
        for step in self.steps:
            if answered == 0:
                return calls(*((name.split("-")[0], {"name": name}) for name in step))
            answered -= len(step)
        return "All done."

    def act(self, name: str, key: str) -> str:
        self.dice.point(name)
        self.done[name] += 1
        self.keys.setdefault(name, set()).add(key)
        self.dice.point(name)
        return f"{name} done"

    def tools(self) -> list[object]:
        act = self.act

        @tool(read_only=True)
        async def read(name: str) -> str:
            self.dice.point()
            await asyncio.sleep(0)
            self.dice.point()
            return f"{name} read"

        @tool(read_only=True)
        async def fail(name: str) -> str:
            self.dice.point()
            raise ValueError(name)

        @tool
        async def move(name: str, context: ToolContext) -> str:
            return act(name, context.key)

        @tool
        async def free(name: str, context: ToolContext) -> str:
            return act(name, context.key)

        @tool(idempotent=True)
        async def put(name: str, context: ToolContext) -> str:
            return act(name, context.key)

        @tool(transactional=True)
        async def pay(name: str, context: ToolContext) -> str:
            self.dice.point()
            marks = "(%s, %s)" if "psycopg" in type(context.connection).__module__ else "(?, ?)"
            context.connection.execute(f"INSERT INTO paid VALUES {marks}", (self.thread, name))
            self.dice.point()
            return f"{name} paid"

        return [read, fail, move, free, put, pay]


def dying(journal, dice: Dice):
    """The journal, with a point before and after each append and at each end of a transaction."""
    append, transaction = journal.append, journal.transaction

    async def fused(*given, **more):
        dice.point()
        seq = await append(*given, **more)
        dice.point()
        return seq

    @asynccontextmanager
    async def fused_transaction(*given, **more):
        async with transaction(*given, **more) as open_:
            yield open_
            dice.point()
        dice.point()

    journal.append, journal.transaction = fused, fused_transaction
    return journal


def policy(proposed):
    return RUN if proposed.tool == "free" else ask_before_effects(proposed)


async def work(shift: Shift, open_: Callable[[], object]) -> None:
    """One process: start the run or go on with it, decide what waits, until it is over or the process ends."""
    store = Store(dying(open_(), shift.dice))
    agent = Agent("plant", model=Scripted(shift.script), tools=shift.tools(), policy=policy)
    head = await store.journal.head(shift.thread)
    start = agent.resume(shift.thread, store=store) if head.run else agent.run("go", store=store, thread=shift.thread)
    run = await start
    while run.status == "waiting":
        for item in run.pending:
            name = item.arguments["name"]
            if item.kind == "unknown":
                # A person looks at the world.
                shift.told[name] = "done" if shift.done[name] or shift.done[f"{name}-edited"] else "retry"
                await store.resolve(item.id, shift.told[name], by="robot")
            elif shift.said[name] == "reject":
                await store.reject(item.id, by="robot", reason="no")
            else:
                edit = {"name": f"{name}-edited"} if shift.said[name] == "edit" else None
                await store.approve(item.id, by="robot", edit=edit)
        run = await agent.resume(shift.thread, store=store)
    assert (run.status, run.answer) == ("completed", "All done."), run


def live(shift: Shift, open_: Callable[[], object], tidy: Callable[[], None]) -> None:
    """Processes, one after the other, until the work is done; after each end what must always hold is checked."""
    while True:
        shift.dice.dead = False
        try:
            asyncio.run(work(shift, open_))
        except Ended:
            shift.dice.dead = False
            asyncio.run(void(shift, open_))
        else:
            return
        finally:
            tidy()


async def void(shift: Shift, open_: Callable[[], object]) -> None:
    """What the end of a process does by itself: its claim is void. And what holds at once: the chain, the input."""
    journal = open_()
    head = await journal.head(shift.thread)
    if head.seq:
        await journal.append(shift.thread, head.seq, [], release=True)
        await journal.verify(shift.thread)
        messages = (await journal.state(shift.thread)).messages
        assert isinstance(messages[0], User), "accepted input is never lost"
    for name, times in shift.done.items():
        assert times == 1 or name.startswith("put"), f"{name} happened {times} times"


async def check(shift: Shift, open_: Callable[[], object], paid: Callable[[str], list[str]]) -> None:
    """What must hold at the end, whatever happened on the way."""
    journal = open_()
    store = Store(journal)
    assert await journal.verify(shift.thread)
    messages = (await store.thread(shift.thread)).state.messages
    assert well_formed(messages)
    assert [message.parts[0].text for message in messages if isinstance(message, User)] == ["go"]
    assert await store.pending(shift.thread) == []
    trail = await store.trail(shift.thread)
    ended = {call.id: call for run in trail.runs for call in run.calls.values()}
    rows = Counter(paid(shift.thread))
    for call in ended.values():
        name = call.arguments["name"]
        kind = name.split("-")[0]
        if kind in {"read", "fail"}:
            assert call.observation.status == ("ok" if kind == "read" else "error")
            continue
        real = f"{name}-edited" if shift.said.get(name) == "edit" and kind != "free" else name
        happened = rows[real] if kind == "pay" else shift.done[real]
        if shift.said.get(name) == "reject" and kind != "free":
            assert (call.observation.status, happened) == ("rejected", 0), (name, call, happened)
            continue
        assert call.observation.status == "ok", (name, call)
        assert happened == 1 or (kind == "put" and happened >= 1), (name, happened)
        assert len(shift.keys.get(real, {0})) == 1, "every attempt of a call carries the same key"
        if call.doubt is not None:
            assert kind in {"move", "free"}, "only what cannot be repeated is ever in doubt"
    assert sum(rows.values()) == len(rows), "no transaction happened twice"
