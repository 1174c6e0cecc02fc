"""The `Journal` contract on a database; what differs between the stores is in their `Database`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

from tropa.errors import Conflict, CorruptStore, StoreError, UsageError
from tropa.events import MESSAGE_KINDS, Event, NewEvent, State, fold
from tropa.journal import archive, lease, rebuild, retention, rows, verify, writing
from tropa.journal.connection import Connection, Database, Lent
from tropa.journal.protocol import Head, PendingRow, RunRow, Transaction, claimable
from tropa.journal.rows import Stored
from tropa.messages import JsonObject

_PAGE = 500
_HELD = 10_000
"""Threads whose last state is remembered while this process works on them."""


class DatabaseJournal:
    """A `Journal` that keeps its rows in `database`."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._held: dict[str, Stored] = {}

    # -- writing

    async def append(
        self,
        thread: str,
        expect: int,
        events: Sequence[NewEvent],
        *,
        owner: str | None = None,
        release: bool = False,
        durable: bool = False,
        texts: Mapping[str, str] | None = None,
    ) -> int:
        """See `Journal.append`."""
        work = writing.prepare(thread, expect, events, owner, texts, release=release)
        work.known = self._held.pop(thread, None)
        seq = await self._db.write(work.write, durable=durable, confirm=work.confirm)
        if owner is not None and not release and work.known is not None:
            if len(self._held) >= _HELD:
                self._held.clear()
            self._held[thread] = work.known
        return seq

    async def renew(self, thread: str, owner: str) -> Head:
        """See `Journal.renew`."""

        def write(db: Connection) -> Head:
            row = rows.find(db, thread, lock=True)
            if row is None or row.head.owner != owner:
                raise Conflict(f"thread {thread!r:.200} was taken over by another worker")
            until = db.micros() / 1e6 + lease.SECONDS
            db.execute("UPDATE tropa_threads SET lease=? WHERE num=?", (until, row.num))
            return row.head

        return await self._db.write(write)

    async def fork(self, thread: str, at: int, new: str) -> None:
        """See `Journal.fork`."""
        work = writing.Fork(thread, at, new)
        await self._db.write(work.write, durable=True, confirm=work.confirm)

    @asynccontextmanager
    async def transaction(self, thread: str, expect: int, owner: str) -> AsyncGenerator[Transaction]:
        """See `Journal.transaction`."""
        last: list[writing.Append] = []

        def check(db: Connection) -> None:
            row = rows.find(db, thread)
            claimable(Head(thread) if row is None else row.head, expect, owner, db.micros() / 1e6)

        def confirm(db: Connection) -> int | None:
            return last[-1].confirm(db) if last else None

        async with self._db.lend(confirm) as lent:
            await lent.run(check)
            yield _Transaction(lent, thread, expect, owner, last)
            if not last:
                raise UsageError(
                    f"a transaction on thread {thread!r:.200} ended without an event: what was done has no record,"
                    " so it was rolled back"
                )

    # -- reading

    async def head(self, thread: str) -> Head:
        """See `Journal.head`."""
        row = await self._db.read(lambda db: rows.find(db, thread))
        return Head(thread) if row is None else row.head

    async def fields(self, thread: str) -> JsonObject:
        """See `Journal.fields`."""

        def look(db: Connection) -> JsonObject:
            row = rows.find(db, thread)
            if row is None:
                return {}
            start: JsonObject = {}
            if row.base and (first := rows.oldest(db, row)).kept is not None:
                start = cast("JsonObject", rebuild.kept(db, first)["fields"])
            found = db.execute("SELECT name, seq FROM tropa_fields WHERE thread=? ORDER BY seq", (row.num,)).fetchall()
            return rebuild.values(db, row, start, found)

        return await self._db.read(look)

    async def text(self, digest: str) -> str:
        """See `Journal.text`."""
        return await self._db.read(lambda db: rows.need_text(db, digest))

    async def events(
        self,
        thread: str,
        after: int = 0,
        until: int | None = None,
        kinds: Collection[str] | None = None,
        *,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> AsyncIterator[Event]:
        """See `Journal.events`. Reads a page at a time, so a long thread takes little memory."""

        def page(db: Connection) -> tuple[list[Event], int]:
            row = rows.find(db, thread)  # anew for each page: a prune in between moves rows
            if row is None:
                return [], 0
            end = row.head.seq if high is None else min(high, row.head.seq)
            return rows.read(db, row, low, end, kinds, newest_first=newest_first, limit=size), end

        low, high, left = after, until, limit
        while left is None or left > 0:
            size = _PAGE if left is None else min(_PAGE, left)
            found, high = await self._db.read(page)
            for entry in found:
                yield entry
            if len(found) < size:
                return
            left = None if left is None else left - len(found)
            if newest_first:
                high = found[-1].seq - 1
            else:
                low = found[-1].seq

    async def state(self, thread: str, at: int | None = None) -> State:
        """See `Journal.state`."""

        def begin(db: Connection) -> tuple[int, JsonObject]:
            first = rows.oldest(db, rows.existing(db, thread))
            return first.base, {} if first.kept is None else cast("JsonObject", rebuild.kept(db, first)["fields"])

        base, fields = await self._db.read(begin)
        if at is not None and at < base:
            raise StoreError(
                f"the events of thread {thread!r:.200} up to {base} were pruned; its state can be read from {base} on"
            )
        kinds = ("field.set", *MESSAGE_KINDS)
        return fold([entry async for entry in self.events(thread, until=at, kinds=kinds)], State(fields))

    async def pending(self, thread: str | None = None, id: str | None = None) -> list[PendingRow]:
        """See `Journal.pending`."""
        return await self._db.read(lambda db: rows.pending(db, thread, id))

    async def runs(self, thread: str | None = None, limit: int = 100) -> list[RunRow]:
        """See `Journal.runs`."""
        return await self._db.read(lambda db: rows.runs(db, thread, limit))

    async def threads(self, limit: int = 100, status: str | None = None) -> list[Head]:
        """See `Journal.threads`."""
        return await self._db.read(lambda db: rows.threads(db, limit, status))

    async def verify(self, thread: str) -> int:
        """See `Journal.verify`."""
        return await self._db.read(lambda db: verify.verify(db, thread), snapshot=True)

    # -- forgetting and moving

    async def delete(self, thread: str) -> None:
        """See `Journal.delete`."""
        tried: list[bool] = []

        def work(db: Connection) -> bool:
            tried.append(True)
            retention.delete(db, thread)
            return True

        def confirm(db: Connection) -> bool | None:
            return True if tried and rows.find(db, thread) is None else None

        await self._db.write(work, durable=True, confirm=confirm)

    async def prune(self, thread: str, keep: int = 1) -> int:
        """See `Journal.prune`."""
        return await self._db.write(lambda db: retention.prune(db, thread, keep), durable=True)

    async def vacuum(self) -> int:
        """See `Journal.vacuum`."""
        removed = await self._db.write(retention.sweep, durable=True)
        await self._db.vacuum()
        return removed

    async def export(self, thread: str) -> AsyncIterator[str]:
        """See `Journal.export`."""
        told: set[str] = set()

        def begin(db: Connection) -> tuple[list[str], Head, int]:
            row = rows.existing(db, thread)
            return list(archive.header(db, thread, told)), row.head, rows.oldest(db, row).base

        lines, head, after = await self._db.read(begin)
        for line in lines:
            yield line
        while after < head.seq:
            high = min(after + _PAGE, head.seq)

            def page(db: Connection, low: int = after, high: int = high) -> list[str]:
                return archive.page(db, thread, low, high, _PAGE, told)

            for line in await self._db.read(page):
                yield line
            after = high
        yield archive.end(head)

    async def import_(self, lines: Iterable[str] | AsyncIterable[str], thread: str | None = None) -> str:
        """See `Journal.import_`."""
        given = [line async for line in lines] if isinstance(lines, AsyncIterable) else list(lines)
        work = archive.parse(given)
        name = work.row.head.thread if thread is None else thread

        def write(db: Connection) -> bool:
            try:
                work.write(db, name)
            except (CorruptStore, KeyError, ValueError, TypeError, LookupError, AttributeError) as error:
                raise CorruptStore(f"the export cannot be read: {error}; nothing was imported") from error
            return True

        await self._db.write(write, durable=True, confirm=lambda db: work.confirm(db, name))
        return name

    async def close(self) -> None:
        """See `Journal.close`."""
        await self._db.close()


class _Transaction:
    def __init__(self, lent: Lent, thread: str, expect: int, owner: str, last: list[writing.Append]) -> None:
        self._lent = lent
        self._thread = thread
        self._seq = expect
        self._owner = owner
        self._last = last
        self.connection = lent.raw

    async def append(
        self, events: Sequence[NewEvent], *, release: bool = False, texts: Mapping[str, str] | None = None
    ) -> int:
        work = writing.prepare(self._thread, self._seq, events, self._owner, texts, release=release)
        self._seq = await self._lent.run(work.write)
        self._last.append(work)
        return self._seq
