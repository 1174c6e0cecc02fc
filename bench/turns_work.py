"""The work that `bench.turns` measures, each part in a process of its own."""

from __future__ import annotations

import os
import resource
import sqlite3
import time
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import tropa
from tropa import Agent, Store, tool
from tropa.events import NewEvent, event
from tropa.journal import SqliteJournal, new_owner
from tropa.messages import Assistant, Text, User, dumps, encode
from tropa.model.profile import Profile
from tropa.model.scripted import Scripted

ANSWER = (
    "Sure, here is a short answer about the item you asked for: it ships in three sizes, the medium one is "
    "in stock today, the price is twelve euros and fifty cents before tax, delivery takes two working days, "
    "and you can return it within thirty days if it does not fit what you need at home."
)
EDGE = 20
"""Turns at each end that are compared."""
SMALL_WINDOW = Profile(context=512, max_output=128)
"""Few turns fit, so that a turn at the start is sent as much history as one at the end."""


def question(number: int) -> str:
    return f"Please tell me about item number {number} in the shop."


def clerk(profile: Profile = SMALL_WINDOW) -> Agent:
    model = Scripted(lambda _: ANSWER, profile=profile)
    return Agent("clerk", model=model, instructions="Answer in {language}.", fields={"language": "en"})


async def conversation(store: str, size: int, place: Path) -> dict[str, Any]:
    """Our `size` turns on one thread."""
    file = place / "trail.db"
    agent, cpu, wall = clerk(), list[float](), list[float]()
    async with tropa.open(file if store == "sqlite" else store) as held:
        for number in range(size):
            start, began = time.process_time(), time.perf_counter()
            await agent.run(question(number), store=held, thread="t1", language="en")
            cpu.append((time.process_time() - start) * 1e3)
            wall.append((time.perf_counter() - began) * 1e3)
            agent.setup.model.requests.clear()  # type: ignore[attr-defined]
    said = [("user", question(number)) for number in range(size)] + [("assistant", ANSWER)] * size
    text = sum(len(dumps({"role": role, "content": words})) for role, words in said)
    return _row("tropa", store, size, cpu, wall, _stored(store, file, "tropa_%")) | {"text": text}


def langgraph(store: str, size: int, place: Path, *, seeded: bool) -> dict[str, Any]:
    """LangGraph's turns on one thread; `seeded`: the thread is filled at once, and only the last turns are measured."""
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage  # noqa: PLC0415
    from langgraph.graph import END, START, StateGraph  # noqa: PLC0415
    from langgraph.graph.message import add_messages  # noqa: PLC0415
    from typing_extensions import TypedDict  # noqa: PLC0415

    State = TypedDict("State", {"messages": Annotated[list[AnyMessage], add_messages], "language": str})  # noqa: UP013
    saver = _saver(store, place)
    graph = StateGraph(State)
    graph.add_node("model", lambda state: {"messages": [AIMessage(content=ANSWER)]})
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    app: Any = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "t1"}}
    first = 0
    if seeded:
        first = size - EDGE - 5
        pairs = [(HumanMessage(question(number)), AIMessage(ANSWER)) for number in range(first)]
        app.update_state(config, {"messages": [one for pair in pairs for one in pair], "language": "en"})
    cpu, wall = list[float](), list[float]()
    for number in range(first, size):
        start, began = time.process_time(), time.perf_counter()
        app.invoke({"messages": [HumanMessage(question(number))], "language": "en"}, config)
        cpu.append((time.process_time() - start) * 1e3)
        wall.append((time.perf_counter() - began) * 1e3)
    stored = None if seeded else _stored(store, place / "peer.db", "checkpoint%")
    row = _row("langgraph", store, size, cpu, wall, stored)
    return row | ({"cpu_start_ms": None, "wall_start_ms": None} if seeded else {})


def _saver(store: str, place: Path) -> Any:
    if store == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415

        saver: Any = SqliteSaver(sqlite3.connect(place / "peer.db", check_same_thread=False))
    else:
        import psycopg  # noqa: PLC0415
        from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415
        from psycopg.rows import dict_row  # noqa: PLC0415

        saver = PostgresSaver(psycopg.connect(store, autocommit=True, prepare_threshold=0, row_factory=dict_row))  # type: ignore[arg-type]
    saver.setup()
    return saver


def _row(who: str, store: str, size: int, cpu: list[float], wall: list[float], stored: int | None) -> dict[str, Any]:
    return {
        "who": who,
        "store": store if store == "sqlite" else "postgres",
        "n": size,
        "cpu_start_ms": median(cpu[1 : EDGE + 1]),
        "cpu_end_ms": median(cpu[-EDGE:]),
        "wall_start_ms": median(wall[1 : EDGE + 1]),
        "wall_end_ms": median(wall[-EDGE:]),
        "bytes": stored,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _stored(store: str, file: Path, tables: str) -> int:
    """Bytes on disk, once everything is in the file."""
    if store == "sqlite":
        db = sqlite3.connect(file)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        return file.stat().st_size
    import psycopg  # noqa: PLC0415

    with psycopg.connect(store) as db:
        row = db.execute(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relname LIKE %s",
            (tables,),
        ).fetchone()
    return 0 if row is None else row[0]


async def long_thread(store: str, size: int, place: Path) -> dict[str, Any]:
    """A thread of `size` turns, opened anew for one more turn."""
    file = place / "long.db"
    await _fill(file, size)
    agent = clerk()
    await agent.run("Warm up.")  # what a process loads once is no cost of a thread
    start = time.process_time()
    async with tropa.open(file) as held:
        run = await agent.run("And now?", store=held, thread="t1", language="en")
        opened = (time.process_time() - start) * 1e3
        assert run.answer == ANSWER
        thread = held.journal
        start = time.process_time()
        entries = [entry async for entry in thread.events("t1", newest_first=True, limit=10)]
        history = (time.process_time() - start) * 1e3
        assert len(entries) == 10
    return {"open_100k_ms": opened, "history10_ms": history}


async def _fill(file: Path, size: int) -> None:
    journal, seq = SqliteJournal(file), 0
    definition = dumps({"fields": {"language": "en"}})
    digest = _digest(definition)
    reply = {"finish": "stop", "usage": {"input": 200, "output": 70}, "seconds": 0.01}
    end = {"status": "completed", "stop": "answered", "usage": {"input": 200, "output": 70}, "seconds": 0.01}
    for first in range(0, size, 100):
        events: list[NewEvent] = []
        for number in range(first, first + 100):
            at = seq + len(events) + 1
            events += [
                event("run.started", {"run": f"r{at}", "agent": digest, "name": "clerk"}),
                event("message.added", {"message": encode(User((Text(question(number)),)))}),
                event("model.requested", {"digest": digest, "tokens": 200, "exact": True, "max_output": 128}),
                NewEvent("model.replied", {"message": encode(Assistant((Text(ANSWER),))), **reply}),
                NewEvent("run.finished", {**end, "answer": at + 3}),
            ]
        events.append(event("window.cut", {"start": seq + 496, "tokens": 80}))
        seq = await journal.append("t1", seq, events, texts={digest: definition})
    await journal.close()


def _digest(text: str) -> str:
    import hashlib  # noqa: PLC0415

    return hashlib.sha256(text.encode()).hexdigest()


@tool(read_only=True)
async def stock(sku: int) -> int:
    """How many are in stock.

    Args:
        sku: the item's number.
    """
    return sku * 3


async def many_threads(store: str, size: int, place: Path) -> dict[str, Any]:
    """`size` threads at once, each a run of ten calls that read, and an answer."""
    import asyncio  # noqa: PLC0415

    def script(request: Any) -> Any:
        asked = sum(1 for message in request.messages if type(message).__name__ == "Observation")
        return [("stock", {"sku": asked})] if asked < 10 else "done"

    agent = Agent("reader", model=Scripted(script), tools=[stock])
    async with tropa.open(place / "many.db") as held:
        await agent.run("warm up", store=held, thread="warm")
        began = time.perf_counter()
        runs = await asyncio.gather(*(_one(agent, held, number) for number in range(size)))
        seconds = time.perf_counter() - began
    return {"steps_per_s": sum(2 * steps - 1 for steps in runs) / seconds}


async def _one(agent: Agent, store: Store, number: int) -> int:
    run = await agent.run("Read ten.", store=store, thread=f"t{number}")
    assert run.status == "completed", run
    return run.steps


@tool(destructive=False)
async def order(sku: int) -> str:
    """Order one more.

    Args:
        sku: the item's number.
    """
    return "ordered"


async def waiting(store: str, size: int, place: Path) -> dict[str, Any]:
    """`size` runs that wait for approval: what the process holds for them, beside the file."""
    import resource  # noqa: PLC0415
    import threading  # noqa: PLC0415

    agent = Agent("buyer", model=Scripted(lambda _: [("order", {"sku": 7})]), tools=[order])
    model: Any = agent.setup.model
    async with tropa.open(place / "waiting.db") as held:
        for number in range(size):
            run = await agent.run("Order one.", store=held, thread=f"t{number}")
            assert run.status == "waiting", run
            model.requests.clear()
        assert len(await held.journal.pending()) == size
        assert threading.active_count() == 1
    return {"waiting_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


async def floor(store: str, size: int, place: Path) -> dict[str, Any]:
    """Our append and a bare transaction of the same bytes, in turn, one in three fsynced. Medians of whole batches."""
    body = {"message": encode(Assistant((Text(ANSWER),))), "finish": "stop", "usage": {"input": 9}, "seconds": 0.01}
    row = (1_700_000_000_000_000, "model.replied", dumps(body), "", os.urandom(32))
    bare = sqlite3.connect(place / "bare.db", isolation_level=None)
    bare.execute("PRAGMA journal_mode=WAL").fetchall()
    bare.execute("PRAGMA synchronous=NORMAL")
    bare.execute("CREATE TABLE events (at INTEGER PRIMARY KEY, time, kind, body, blobs, hash)")
    journal, owner = SqliteJournal(place / "ours.db"), new_owner()
    seq = await journal.append("t1", 0, [NewEvent("thread.opened", {"version": 1})], owner=owner)
    ours, theirs, at = list[float](), list[float](), 0
    for _ in range(size // 30):
        began = time.perf_counter()
        for number in range(30):
            durable = number % 3 == 0
            seq = await journal.append("t1", seq, [NewEvent("model.replied", body)], owner=owner, durable=durable)
        middle = time.perf_counter()
        for number in range(30):
            at += 1
            if number % 3 == 0:
                bare.execute("PRAGMA synchronous=FULL")
            bare.execute("BEGIN IMMEDIATE")
            bare.execute("INSERT INTO events VALUES (?,?,?,?,?,?)", (at, *row))
            bare.execute("COMMIT")
            if number % 3 == 0:
                bare.execute("PRAGMA synchronous=NORMAL")
        ours.append(middle - began)
        theirs.append(time.perf_counter() - middle)
    await journal.close()
    return {"append_over_floor": median(ours) / median(theirs)}
