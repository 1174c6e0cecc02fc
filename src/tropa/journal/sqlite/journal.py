"""The `Journal` contract on a `Database`. A statement takes microseconds, so it runs on the event loop."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from tropa.errors import Conflict, CorruptStore, StoreError, ThreadNotFound
from tropa.events import MESSAGE_KINDS, Event, NewEvent, State, apply_field, fold
from tropa.journal import blobs as blob
from tropa.journal import chain, lease
from tropa.journal.projection import project
from tropa.journal.protocol import Head, PendingRow, RunRow, claimable
from tropa.journal.sqlite import rows
from tropa.journal.sqlite.database import Database
from tropa.messages import JsonObject

_PAGE = 500
_PROJECTED = ("run.started", "run.resumed", "run.paused", "run.finished", "window.cut", "field.set")


class SqliteJournal:
    """A `Journal` in the file `path`, created where it is missing; `":memory:"` keeps it in this process.

    `patience` is how many seconds an append waits for other writers of the file.

    Raises:
        StoreTooNew: a newer Tropa wrote the file.
        StoreError: the file cannot be opened or is no journal.
    """

    def __init__(self, path: str | Path, *, patience: float = 60.0) -> None:
        self._db = Database(str(path), patience)
        self._texts: set[str] = set()

    @property
    def path(self) -> str:
        """The file, as it was given."""
        return self._db.path

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
        packed = [(entry.kind, *blob.pack(entry.body)) for entry in events]
        unseen = {digest: text for digest, text in (texts or {}).items() if digest not in self._texts}

        def write() -> int:
            micros = time.time_ns() // 1000
            num, head = rows.head(self._db, thread)
            claimable(head, expect, owner, micros / 1e6)
            if num is None:
                num, head = rows.open_thread(self._db, thread)
            for digest, text in unseen.items():
                rows.put_text(self._db, digest, text)
            link, inserts = head.hash, list[tuple[int, int, int, str, str, str, bytes]]()
            for seq, (kind, text, places, large) in enumerate(packed, head.seq + 1):
                for digest, encoded in large.items():
                    rows.put_text(self._db, digest, encoded)
                link = chain.link(link, seq, micros, kind, text.encode(), places)
                inserts.append((num, seq, micros, kind, text, places, link))
            self._db.executemany("INSERT INTO events VALUES (?,?,?,?,?,?,?)", inserts)
            changes = project(head, events, micros / 1e6)
            if release:
                changes.head = replace(changes.head, owner=None, lease=0.0)
            elif owner is not None:
                changes.head = replace(changes.head, owner=owner, lease=micros / 1e6 + lease.SECONDS)
            rows.apply(self._db, num, changes, link)
            return changes.head.seq

        seq = await self._db.transact(write, durable=durable)
        self._texts.update(unseen)
        return seq

    async def renew(self, thread: str, owner: str) -> Head:
        """See `Journal.renew`."""

        def write() -> Head:
            num, head = rows.head(self._db, thread)
            if head.owner != owner:
                raise Conflict(f"thread {thread!r} was taken over by another worker")
            self._db.execute("UPDATE threads SET lease = ? WHERE num = ?", (time.time() + lease.SECONDS, num))
            return head

        return await self._db.transact(write)

    async def fork(self, thread: str, at: int, new: str) -> None:
        """See `Journal.fork`."""

        def write() -> None:
            num, origin = self._existing(thread)
            if not 1 <= at <= origin.seq:
                raise StoreError(f"thread {thread!r} has events 1 to {origin.seq}; it cannot be forked at {at}")
            if rows.head(self._db, new)[0] is not None:
                raise Conflict(f"thread {new!r} exists already; choose another name for the fork")
            source = next(part for part, low, high in rows.lineage(self._db, num, at) if low < at <= high)
            (link,) = self._db.execute("SELECT hash FROM events WHERE thread=? AND seq=?", (source, at)).fetchone()
            (root,) = self._db.execute("SELECT root FROM threads WHERE num=?", (num,)).fetchone()
            fork, head = rows.open_thread(self._db, new)
            self._db.execute("UPDATE threads SET origin=?, shared=?, root=? WHERE num=?", (num, at, root, fork))
            head, now = replace(head, title=origin.title), time.time()
            for entry in rows.read(self._db, new, fork, 0, at, _PROJECTED):
                changes = project(replace(head, seq=entry.seq - 1), [NewEvent(entry.kind, entry.body)], now)
                head = changes.head
                for field, seq, replaces in changes.fields:
                    rows.set_field(self._db, fork, field, seq, replaces=replaces)
            rows.apply(self._db, fork, project(replace(head, seq=at, opened=now), [], now), link)

        await self._db.transact(write, durable=True)

    # -- reading

    async def head(self, thread: str) -> Head:
        """See `Journal.head`."""
        with self._db.lock:
            return rows.head(self._db, thread)[1]

    async def fields(self, thread: str) -> JsonObject:
        """See `Journal.fields`."""
        values: JsonObject = {}
        with self._db.lock:
            num, _ = rows.head(self._db, thread)
            seqs = self._db.execute("SELECT seq FROM fields WHERE thread=? ORDER BY seq", (num,)).fetchall()
            for (seq,) in seqs:
                for entry in rows.read(self._db, thread, cast("int", num), seq - 1, seq):
                    apply_field(values, entry.body)
        return values

    async def text(self, digest: str) -> str:
        """See `Journal.text`."""
        with self._db.lock:
            text = rows.get_text(self._db, digest)
        if text is None or blob.sha256(text) != digest:
            raise CorruptStore(f"the stored text {digest[:12]}… is {'missing' if text is None else 'changed'}")
        return text

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
        with self._db.lock:
            num, head = rows.head(self._db, thread)
        if num is None:
            return
        until = head.seq if until is None else min(until, head.seq)
        while after < until and (limit is None or limit > 0):
            size = _PAGE if limit is None else min(_PAGE, limit)
            with self._db.lock:
                page = rows.read(self._db, thread, num, after, until, kinds, newest_first=newest_first, limit=size)
            for entry in page:
                yield entry
            if len(page) < size:
                return
            limit = None if limit is None else limit - len(page)
            after, until = (after, page[-1].seq - 1) if newest_first else (page[-1].seq, until)

    async def state(self, thread: str, at: int | None = None) -> State:
        """See `Journal.state`."""
        with self._db.lock:
            self._existing(thread)
        return fold([entry async for entry in self.events(thread, until=at, kinds=("field.set", *MESSAGE_KINDS))])

    async def pending(self, thread: str | None = None, id: str | None = None) -> list[PendingRow]:
        """See `Journal.pending`."""
        where, given = "", list[object]()
        if thread is not None:
            where, given = " AND t.id = ?", [rows.key(thread)]
        if id is not None:
            where, given = where + " AND p.id = ?", [*given, id]
        with self._db.lock:
            found = self._db.execute(
                "SELECT p.id, t.id, p.call, p.seq, p.kind, p.tool, p.time FROM pending p JOIN threads t"
                f" ON t.num = p.thread WHERE 1=1{where} ORDER BY p.time, p.thread, p.seq",
                given,
            ).fetchall()
        return [PendingRow(row[0], rows.name(row[1]), *row[2:]) for row in found]

    async def runs(self, thread: str | None = None, limit: int = 100) -> list[RunRow]:
        """See `Journal.runs`."""
        where, given = ("", []) if thread is None else (" WHERE t.id = ?", [rows.key(thread)])
        with self._db.lock:
            found = self._db.execute(
                "SELECT t.id, r.seq, r.status, r.stop, r.started, r.finished, r.input, r.output, r.cost"
                f" FROM runs r JOIN threads t ON t.num = r.thread{where} ORDER BY r.started DESC, r.seq DESC LIMIT ?",
                [*given, limit],
            ).fetchall()
        return [RunRow(rows.name(row[0]), *row[1:]) for row in found]

    async def threads(self, limit: int = 100, status: str | None = None) -> list[Head]:
        """See `Journal.threads`."""
        where, given = ("", []) if status is None else (" WHERE status = ?", [status])
        with self._db.lock:
            found = self._db.execute(
                f"SELECT id, {rows.HEAD} FROM threads{where} ORDER BY updated DESC LIMIT ?", [*given, limit]
            ).fetchall()
        return [Head(rows.name(row[0]), *row[1:]) for row in found]

    async def verify(self, thread: str) -> int:
        """See `Journal.verify`."""
        with self._db.lock:
            num, head = self._existing(thread)
            (root,) = self._db.execute("SELECT root FROM threads WHERE num=?", (num,)).fetchone()
            lineage = rows.lineage(self._db, num, head.seq)
        expected = chain.genesis(root)
        for source, low, high in lineage:
            for seq in range(low + 1, high + 1):
                with self._db.lock:
                    row = self._db.execute(
                        "SELECT time, kind, CAST(body AS BLOB), blobs, hash FROM events WHERE thread=? AND seq=?",
                        (source, seq),
                    ).fetchone()
                if row is None:
                    raise CorruptStore(f"thread {thread!r}: event {seq} is missing")
                expected = chain.link(expected, seq, *row[:4])
                if expected != row[4]:
                    raise CorruptStore(f"thread {thread!r}: event {seq} does not match its hash")
                for digest in blob.digests(row[3]):
                    await self.text(digest)
        if expected != head.hash:
            raise CorruptStore(f"thread {thread!r}: its newest event does not match the head")
        return head.seq

    async def close(self) -> None:
        """See `Journal.close`."""
        self._db.close()

    def _existing(self, thread: str) -> tuple[int, Head]:
        num, head = rows.head(self._db, thread)
        if num is None:
            raise ThreadNotFound(f"there is no thread {thread!r} in this store; `tropa trail list` shows them")
        return num, head
