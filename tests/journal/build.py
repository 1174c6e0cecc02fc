"""Events for tests, and a journal opened up: raw statements on its rows."""

from __future__ import annotations

import hashlib

from tropa.events import NewEvent
from tropa.messages import Observation, Text, encode

DEFINITION = '{"instructions":"Keep the shelves in order.","tools":[]}'
AGENT = hashlib.sha256(DEFINITION.encode()).hexdigest()
TEXTS = {AGENT: DEFINITION}


def user(text="Where is crate 7?"):
    return NewEvent("message.added", {"message": {"role": "user", "parts": [{"type": "text", "text": text}]}})


def said(text="On shelf C."):
    return NewEvent(
        "model.replied",
        {
            "message": {"role": "assistant", "parts": [{"type": "text", "text": text}]},
            "finish": "stop",
            "usage": {"input": 9, "output": 4},
            "seconds": 0.25,
        },
    )


def field(name, value, op="set"):
    return NewEvent("field.set", {"name": name, "op": op, "value": value})


def started(run="r"):
    return NewEvent("run.started", {"run": run, "agent": AGENT, "name": "clerk"})


def finished(status="completed", stop="answered"):
    return NewEvent(
        "run.finished",
        {"status": status, "stop": stop, "usage": {"input": 9, "output": 4, "cost": 0.002}, "seconds": 0.5},
    )


def proposed(call="c1", id="p1", tool="move_crate", verdict="ask"):
    body = {"call": call, "tool": tool, "arguments": {"crate": 7}, "verdict": verdict, "digest": "d"}
    return NewEvent("call.proposed", {**body, "id": id} if verdict == "ask" else body)


def decided(call="c1", id="p1"):
    return NewEvent("call.decided", {"call": call, "id": id, "decision": "approve", "by": "ada", "digest": "d"})


def doubted(call="c1", id="u1", tool="move_crate"):
    return NewEvent("call.doubted", {"call": call, "id": id, "tool": tool, "why": "the process ended"})


def observed(call="c1", text="moved"):
    return NewEvent(
        "call.finished", {"call": call, "message": encode(Observation(call, "move_crate", "ok", (Text(text),)))}
    )


def paused(*ids):
    return NewEvent("run.paused", {"waits": list(ids)})


async def turn(journal, thread, number=0, text=None, fields=()):
    """One whole run: its events from the thread's head on. Returns the new head."""
    head = (await journal.head(thread)).seq
    opening = [NewEvent("thread.opened", {"version": 1})] if head == 0 else []
    events = [*opening, started(f"r{number}"), *fields, user(text or f"Question {number}?")]
    head = await journal.append(thread, head, events, texts=TEXTS, durable=True)
    return await journal.append(thread, head, [said(f"Answer {number}."), finished()])


async def parked(journal, thread="t", number=0, id="p1"):
    """A run that waits for an approval."""
    head = (await journal.head(thread)).seq
    events = [started(), user("Move it."), said(""), proposed(id=id), paused(id)]
    return await journal.append(thread, head, events, texts=TEXTS)


async def collect(iterator):
    return [item async for item in iterator]


def rows(journal, sql, given=()):
    """Run one statement on the rows behind a journal, whatever the store."""
    db = journal._db
    if hasattr(db, "_raw"):
        return db._raw.execute(sql, given).fetchall()

    def work():
        cursor = db._connection().execute(sql, given)
        return cursor.fetchall() if cursor.description else []

    return db._threads.submit(work).result()


async def add(journal, thread, *events, **how):
    """Append at the thread's head. Returns the new head."""
    return await journal.append(thread, (await journal.head(thread)).seq, list(events), **how)
