"""The store: threads, inbox and trails in one handle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from tropa.errors import Conflict, ThreadNotFound, UsageError
from tropa.events import Decision, NewEvent
from tropa.gate import Proposal
from tropa.journal import Head, Journal, RunRow, SqliteJournal
from tropa.messages import JsonObject
from tropa.model.replay import Replay
from tropa.session import Memory, Run, load_record, proposals, recorded, repair, run_of
from tropa.store.decide import decide
from tropa.store.thread import Thread, read
from tropa.trail import Trail, trail_of

_PATIENCE = 10.0
"""Seconds that a cancellation waits for the worker of the run."""
_POLL = 0.05


class Store:
    """What people and programs hold to look at threads and to decide. Agents run on it."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.memory = Memory()
        self.wake: Callable[[str], Awaitable[None]] | None = None
        """Told of each thread that a decision sets free, where workers listen."""

    # -- the inbox

    async def pending(self, thread: str | None = None) -> list[Proposal]:
        """What waits for a person, oldest first; of one thread, or of all."""
        return await proposals(self.journal, await self.journal.pending(thread))

    async def proposal(self, id: str) -> Proposal:
        """One proposal. Raises `ApprovalError` when nothing waits under `id`."""
        from tropa.errors import ApprovalError  # noqa: PLC0415

        rows = await self.journal.pending(id=id)
        if not rows:
            raise ApprovalError(f"nothing waits under {id!r}: it is unknown or was decided; `tropa inbox` lists all")
        return (await proposals(self.journal, rows))[0]

    async def approve(self, id: str, *, by: str, edit: JsonObject | None = None, reason: str | None = None) -> Proposal:
        """Let exactly this call run, once; with `edit`, with these arguments instead. See `decide`."""
        decision: Literal["approve", "edit"] = "approve" if edit is None else "edit"
        return await self._decide(id, decision, by=by, edit=edit, reason=reason)

    async def reject(self, id: str, *, by: str, reason: str | None = None) -> Proposal:
        """Do not let the call run; the model is told the reason. See `decide`."""
        return await self._decide(id, "reject", by=by, reason=reason)

    async def resolve(
        self, id: str, outcome: Literal["done", "not_done", "retry"], *, by: str, reason: str | None = None
    ) -> Proposal:
        """Say what became of a call whose outcome is unknown. See `decide`."""
        return await self._decide(id, outcome, by=by, reason=reason)

    async def _decide(
        self, id: str, decision: Decision, *, by: str, reason: str | None, edit: JsonObject | None = None
    ) -> Proposal:
        proposal = await decide(self.journal, id, decision, by=by, edit=edit, reason=reason)
        if self.wake is not None:
            await self.wake(proposal.thread)
        return proposal

    # -- threads, runs, trails

    async def thread(self, id: str) -> Thread:
        """A thread with its state. Raises `ThreadNotFound`."""
        return await read(self.journal, id)

    async def threads(self, limit: int = 100, status: str | None = None) -> list[Head]:
        """Threads, the one that changed last first."""
        return await self.journal.threads(limit, status)

    async def run(self, thread: str) -> Run:
        """The latest run of a thread as it stands. Raises `ThreadNotFound`."""
        return await run_of(self.journal, thread)

    async def runs(self, thread: str | None = None, limit: int = 100) -> list[RunRow]:
        """Runs, newest first."""
        return await self.journal.runs(thread, limit)

    async def trail(self, thread: str) -> Trail:
        """Everything that happened on a thread. Raises `ThreadNotFound`."""
        if not (await self.journal.head(thread)).seq:
            raise ThreadNotFound(f"there is no thread {thread!r} in this store; `tropa trail list` shows them")
        return trail_of(thread, [entry async for entry in self.journal.events(thread)])

    async def replay(self, thread: str, run: int | None = None) -> Replay:
        """A model that answers as a recorded run was answered, as long as the same is asked.

        `run` is the run's first event; the latest run by default. Raises `ThreadNotFound`.
        """
        return Replay(await recorded(self.journal, thread, run), name=f"replay:{thread}")

    async def cancel(self, thread: str, *, by: str) -> Run:
        """End the thread's run. A parked run ends here and now; one that is worked on is told to stop and waited for.

        Harmless when the run is over. Open approvals are closed as not run. Returns the run as it stands, `running` only
        where its worker does not answer within seconds. Raises `ThreadNotFound`.
        """
        while True:
            head = await self.journal.head(thread)
            if not head.run:
                raise ThreadNotFound(f"thread {thread!r} has no run in this store")
            if head.status not in {"running", "waiting"}:
                return await run_of(self.journal, thread)
            record = await load_record(self.journal, thread, head.run)
            closing = repair.close_calls(thread, record, f"cancelled by {by}")
            owner = f"|||cancel by {by}"
            try:
                await self.journal.append(
                    thread,
                    head.seq,
                    [*closing, repair.finished(record, "cancelled", record.last)],
                    owner=owner,
                    release=True,
                    durable=True,
                )
            except Conflict:
                if head.owner is None:
                    continue
                wish = NewEvent("run.cancelling", {"by": by})
                try:
                    await self.journal.append(thread, head.seq, [wish], durable=True)
                except Conflict:
                    continue
                await self._until_over(thread, head.run)
            return await run_of(self.journal, thread)

    async def _until_over(self, thread: str, run: int) -> None:
        for _ in range(round(_PATIENCE / _POLL)):
            head = await self.journal.head(thread)
            if head.run != run or head.status != "running":
                return
            await asyncio.sleep(_POLL)

    async def close(self) -> None:
        """Let go of the journal; harmless when called twice."""
        await self.journal.close()


def connect(url: str | Path) -> Store:
    """A store by its URL: `sqlite:///trail.db`, a path, `:memory:`, or `postgresql://…`. `open` is the usual way.

    Raises as `open` does.
    """
    text = str(url)
    if text == ":memory:":
        return Store(SqliteJournal(text))
    scheme, colon, rest = text.partition("://")
    if not colon:
        return Store(SqliteJournal(text))
    if scheme == "sqlite":
        # sqlite:///relative.db and sqlite:////absolute.db, as SQLAlchemy writes them
        return Store(SqliteJournal(rest.removeprefix("/") or ":memory:"))
    if scheme in {"postgresql", "postgres"}:
        # A file's journal does without the driver and its pool.
        from tropa.journal.postgres import PostgresJournal  # noqa: PLC0415

        return Store(PostgresJournal(text))
    raise UsageError(
        f"cannot open a store of the kind `{scheme}`: use `sqlite:///FILE`, a file's path, `:memory:`, or"
        " `postgresql://USER@HOST/DATABASE`"
    )


@asynccontextmanager
async def open(url: str | Path) -> AsyncGenerator[Store]:
    """Open a store, and close it at the end: `async with tropa.open("sqlite:///trail.db") as store`.

    Raises `UsageError` for a URL of another kind, `StoreError` when the store cannot be opened, `MissingExtra` when the
    driver for Postgres is not installed.
    """
    store = connect(url)
    try:
        yield store
    finally:
        await store.close()
