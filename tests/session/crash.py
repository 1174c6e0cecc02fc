"""A run with everything in it, a world that counts what happened to it, and what must hold after any crash."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

from tests.session.history import results, well_formed
from tropa import Agent, Store, tool
from tropa.gate import RUN, ask_before_effects
from tropa.journal import SqliteJournal
from tropa.messages import Observation, User
from tropa.model.scripted import Scripted, calls


class Killed(BaseException):
    """Stands for the end of the process."""


def by_signal():
    """The real end of the process."""
    os.kill(os.getpid(), signal.SIGKILL)


def by_exception():
    """The end of everything that runs, in a process that goes on."""
    raise Killed


class Fuse:
    """Counts the points that a run passes and ends the process at point `at` (0: never). A dead process stays dead."""

    def __init__(self, at, kill):
        self.at = at
        self.kill = kill
        self.passed = 0

    def point(self):
        self.passed += 1
        if self.at and self.passed >= self.at:
            self.kill()


class World:
    """A folder in which each effect leaves a line: what happened is on disk whatever becomes of the process."""

    def __init__(self, folder, fuse):
        self.path = Path(folder) / "world.log"
        self.fuse = fuse

    def happen(self, what, key):
        with self.path.open("a") as file:
            file.write(json.dumps([what, key]) + "\n")

    def happened(self):
        return [tuple(json.loads(line)) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def tools(self):
        world = self

        def act(what, key):
            world.fuse.point()
            world.happen(what, key)
            world.fuse.point()
            return f"{what} done"

        from tropa import ToolContext

        @tool(read_only=True)
        def read(name: str, context: ToolContext) -> str:
            return act(f"read {name}", context.key)

        @tool
        def move(name: str, context: ToolContext) -> str:
            return act(f"move {name}", context.key)

        @tool
        def free(name: str, context: ToolContext) -> str:
            return act(f"free {name}", context.key)

        @tool(idempotent=True)
        def put(name: str, context: ToolContext) -> str:
            return act(f"put {name}", context.key)

        return [read, move, free, put]


SCRIPT = [
    calls(("read", {"name": "one"})),
    calls(("read", {"name": "a"}), ("read", {"name": "b"}), ("move", {"name": "x"}), ("free", {"name": "y"})),
    calls(("put", {"name": "k"}), ("move", {"name": "z"})),
    "All done.",
]
EFFECTS = ["move x", "free y", "put k", "move z"]


def said(request):
    """Which line of the script answers a request: a model keeps nothing, so it goes by what it reads."""
    answered = [message for message in request.messages if isinstance(message, Observation)]
    return SCRIPT[{0: 0, 1: 1, 5: 2, 7: 3}[len(answered)]]


def policy(proposed):
    return RUN if proposed.tool == "free" else ask_before_effects(proposed)


class FusedJournal(SqliteJournal):
    """A journal that passes two points at each append: before anything is written, and after all of it is."""

    def __init__(self, path, fuse):
        super().__init__(path)
        self.fuse = fuse

    async def append(self, *args, **more):
        self.fuse.point()
        seq = await super().append(*args, **more)
        self.fuse.point()
        return seq


async def work(folder, fuse, decide="approve"):
    """Start the run or go on with it, decide whatever waits, until it is over. Returns the run."""
    world = World(folder, fuse)
    store = Store(FusedJournal(Path(folder) / "crash.db", fuse))
    agent = Agent("mover", model=Scripted(said), tools=world.tools(), policy=policy)
    try:
        head = await store.journal.head("t")
        run = await (agent.resume("t", store=store) if head.run else agent.run("do it all", store=store, thread="t"))
        while run.status == "waiting":
            for item in run.pending:
                if item.kind == "approval":
                    await store.approve(item.id, by="robot")
                else:
                    await resolve(store, world, item)
            run = await agent.resume("t", store=store)
        return run
    finally:
        await store.close()


async def resolve(store, world, item):
    """A person looks at the world: done, or tried again."""
    doubted = f"{item.tool} {item.arguments['name']}"
    happened = [what for what, _ in world.happened()]
    await store.resolve(item.id, "done" if doubted in happened else "retry", by="robot")


async def release(folder):
    """What the end of a process does by itself: its claim is void. Only for a process that lives on."""
    journal = SqliteJournal(Path(folder) / "crash.db")
    head = await journal.head("t")
    if head.seq:
        await journal.append("t", head.seq, [], release=True)
    await journal.close()


async def check(folder):
    """What must hold at the end, whatever happened on the way."""
    journal = SqliteJournal(Path(folder) / "crash.db")
    store = Store(journal)
    try:
        await journal.verify("t")
        run = await store.run("t")
        assert (run.status, run.answer) == ("completed", "All done."), run
        messages = (await store.thread("t")).state.messages
        assert well_formed(messages)
        assert [m.parts[0].text for m in messages if isinstance(m, User)] == ["do it all"]
        assert all(item.ok for item in results(messages))
        assert len(results(messages)) == 7
        assert await store.pending() == []
        happened = World(folder, Fuse(0, by_exception)).happened()
        times = [what for what, _ in happened]
        for effect in ("move x", "free y", "move z"):
            assert times.count(effect) == 1, (effect, happened)
        keys = {key for what, key in happened if what == "put k"}
        assert len(keys) == 1, "every attempt of an idempotent call carries the same key"
        trail = await store.trail("t")
        doubts = [entry.body["tool"] for entry in trail.events if entry.kind == "call.doubted"]
        assert set(doubts) <= {"move", "free"}
        return doubts, [entry.kind for entry in trail.events]
    finally:
        await store.close()


def alive(folder):
    """Whether the accepted input is there whenever the run had been opened."""

    async def look():
        journal = SqliteJournal(Path(folder) / "crash.db")
        try:
            head = await journal.head("t")
            if not head.seq:
                return True
            state = await journal.state("t")
            return isinstance(state.messages[0], User) and state.messages[0].parts[0].text == "do it all"
        finally:
            await journal.close()

    return asyncio.run(look())
