"""Opening a session: a new run of a thread, or the one that was interrupted, paused or ended early."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from tropa.errors import Conflict, ThreadNotFound, ThreadWaiting
from tropa.events import NewEvent, apply_field, event
from tropa.gate import Budget
from tropa.journal import Head, Journal, claimable, new_owner
from tropa.messages import Json, JsonObject, Media, Text, User, encode
from tropa.session import repair
from tropa.session.fields import field_events, migrate
from tropa.session.memory import Memory, remember
from tropa.session.session import Session, Watcher
from tropa.session.setup import Setup
from tropa.session.view import load_record

_POLL = 0.05
Input = str | Sequence[Text | Media]


async def begin(
    journal: Journal,
    thread: str,
    setup: Setup,
    input: Input,
    *,
    fields: Mapping[str, Json] | None = None,
    budget: Budget | None = None,
    dry: bool = False,
    start: bool = True,
    wait: float = 0.0,
    watch: Watcher | None = None,
    memory: Memory | None = None,
) -> Session:
    """Accept a request. A run that was interrupted is brought in order first.

    The input is on disk with the first thing that the session writes, before anything runs; only that write tells for
    certain that nobody else was faster (`Conflict`). Without `start` the run is parked at once, for a worker to take up.

    Raises:
        ThreadWaiting: a person must decide first.
        Conflict: somebody works on the thread, and did not end within `wait` seconds. Nothing was written.
        UsageError: a field that the agent does not declare.
    """
    deadline = time.monotonic() + wait
    while True:
        try:
            return await _begin(
                journal, thread, setup, input, fields or {}, budget, dry=dry, start=start, watch=watch, memory=memory
            )
        except ThreadWaiting:
            raise
        except Conflict:
            if time.monotonic() >= deadline:
                raise
            await asyncio.sleep(_POLL)


async def reopen(
    journal: Journal,
    thread: str,
    setup: Setup,
    *,
    budget: Budget | None = None,
    watch: Watcher | None = None,
    memory: Memory | None = None,
) -> Session | None:
    """Go on with the thread's latest run; `None` when there is nothing to go on with (answered, or still waiting).

    Raises `ThreadNotFound`, and `Conflict` when another process works on it.
    """
    head = await journal.head(thread)
    if not head.run:
        raise ThreadNotFound(f"thread {thread!r} has no run in this store; `tropa trail list` shows the threads")
    record = await load_record(journal, thread, head.run)
    if record.finished is not None and record.finished["stop"] == "answered":
        return None
    if head.status == "waiting" and not repair.can_go_on(record, await _inbox(journal, thread)):
        return None
    session = Session(journal, thread, setup, new_owner(), watch=watch)
    session.memory = memory
    body: JsonObject = {} if budget is None else {"budget": budget.to_json()}
    moved = migrate(setup, await journal.fields(thread), record.fields_version)
    if setup.fields_version > 1:
        body["fields"] = setup.fields_version
    resumed = event("run.resumed", body)  # type: ignore[arg-type]
    await journal.append(thread, head.seq, [resumed, *moved], owner=session.owner)
    session.born = True
    past = await remember(journal, head, setup.limit, head.run - 1)
    session.window = list(past.window)
    async for entry in journal.events(thread, after=head.run - 1):
        session.fold(entry)
        if entry.seq > head.seq:
            session.opening.append(entry)
    session.stored, session.saved = past.fields, session.seq
    return session


async def _begin(
    journal: Journal,
    thread: str,
    setup: Setup,
    input: Input,
    fields: Mapping[str, Json],
    budget: Budget | None,
    *,
    dry: bool,
    start: bool,
    watch: Watcher | None,
    memory: Memory | None,
) -> Session:
    past = None if memory is None else memory.recall(thread)
    sure = past is not None and past.over and past.limit == setup.limit
    head = Head(thread, past.seq) if past is not None and sure else await journal.head(thread)
    events: list[NewEvent] = []
    if head.seq == 0:
        events.append(event("thread.opened", {"version": 1}))
    elif head.status in {"running", "waiting"}:
        events += await _put_in_order(journal, head)
    limits = budget or setup.budget
    digest, definition = setup.definition
    if past is None or past.seq != head.seq or past.limit != setup.limit:
        past = await remember(journal, head, setup.limit)
    moved = migrate(setup, past.fields, past.version) if head.seq else []
    run: JsonObject = {"run": f"r{head.seq + len(events) + 1}", "agent": digest, "name": setup.name}
    if limits.to_json():
        run["budget"] = limits.to_json()
    if dry:
        run["dry"] = True
    if setup.fields_version > 1:
        run["fields"] = setup.fields_version
    events.append(event("run.started", run))  # type: ignore[arg-type]
    events += moved
    stored = dict(past.fields)
    for entry in moved:
        apply_field(stored, entry.body)
    events += field_events(setup, stored, fields)
    parts = (Text(input),) if isinstance(input, str) else tuple(input)
    events.append(event("message.added", {"message": encode(User(parts))}))
    session = Session(journal, thread, setup, new_owner(), watch=watch)
    session.seq = session.saved = head.seq
    session.memory = memory
    session.window, session.stored = list(past.window), dict(past.fields)
    session.put_off(events, durable=True, texts={digest: definition})
    if not start:
        await session.write(lambda: [repair.parked(session.record)], release=True)
    return session


async def _put_in_order(journal: Journal, head: Head) -> list[NewEvent]:
    """End a run whose process died. Raises `ThreadWaiting` where it waits for a person, `Conflict` where it is alive."""
    claimable(head, head.seq, new_owner(), time.time())
    record = await load_record(journal, head.thread, head.run)
    if waits := await _inbox(journal, head.thread) & set(repair.waiting(record)):
        raise ThreadWaiting(
            f"thread {head.thread!r} waits for a decision on {', '.join(sorted(waits))}; "
            "decide with `tropa inbox` (or cancel the run), then go on"
        )
    if head.status == "waiting" and not repair.waiting(record):
        raise ThreadWaiting(
            f"thread {head.thread!r} has a run that is free to go on (decided, or parked for a worker);"
            " resume it, or cancel it, before it takes a new message"
        )
    closing = repair.close_calls(head.thread, record, "the process ended")
    return [*closing, repair.finished(record, "cancelled", record.last)]


async def _inbox(journal: Journal, thread: str) -> set[str]:
    return {row.id for row in await journal.pending(thread)}
