"""What an append and a fork write, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tropa.errors import Conflict, CorruptStore, NotStorable, StoreError
from tropa.events import NewEvent
from tropa.journal import blobs as blob
from tropa.journal import chain, lease, rows
from tropa.journal.connection import Connection
from tropa.journal.projection import Changes, project
from tropa.journal.protocol import Head, claimable
from tropa.journal.rebuild import rebuild
from tropa.journal.rows import Stored

_Insert = tuple[int, int, str, str, str, bytes]
_INSERT = "INSERT INTO tropa_events VALUES (?,?,?,?,?,?)"


@dataclass(slots=True)
class Append:
    """One append, ready to be written: bodies are text already, so that what cannot be stored is refused before.

    Raises `NotStorable`.
    """

    thread: str
    expect: int
    events: Sequence[NewEvent]
    owner: str | None
    release: bool
    packed: list[tuple[str, str, str]]
    texts: list[tuple[str, str]]
    known: Stored | None = None
    """The thread as this process left it, if it holds it; after `write`: as it is now."""

    def write(self, db: Connection) -> int:
        """Write it and return the new head. Raises `Conflict`."""
        micros, known = db.micros(), self.known
        # Mostly nothing happened since our last append: then the row need not be read at all.
        if known is not None and known.head.seq == self.expect and known.head.owner == self.owner is not None:
            changes, inserts = self._follow(known, micros)
            if rows.move(db, known, changes.head):
                return self._store(db, known, changes, inserts)
        row = rows.find(db, self.thread, lock=True)
        now = micros / 1e6
        claimable(Head(self.thread) if row is None else row.head, self.expect, self.owner, now)
        row = row or _opened(db, self.thread, now)
        changes, inserts = self._follow(row, micros)
        if not rows.move(db, row, changes.head):
            raise CorruptStore(f"the row of thread {self.thread!r:.200} cannot be changed")
        return self._store(db, row, changes, inserts)

    def _follow(self, row: Stored, micros: int) -> tuple[Changes, list[_Insert]]:
        """What the events are and change, when they follow on `row`."""
        link, start = row.head.hash, row.num << 32
        inserts: list[_Insert] = []
        for seq, (kind, text, places) in enumerate(self.packed, row.head.seq + 1):
            link = chain.link(link, seq, micros, kind, text.encode(), places)
            inserts.append((start | seq, micros, kind, text, places, link))
        changes = project(row.head, self.events, micros / 1e6)
        head = changes.head
        owner, until = head.owner, head.lease
        if self.release:
            owner, until = None, 0.0
        elif self.owner is not None:
            owner, until = self.owner, micros / 1e6 + lease.SECONDS
        changes.head = Head(
            *(head.thread, head.seq, link, head.status, head.run, head.window, head.title, head.opened, head.updated),
            *(owner, until),
        )
        return changes, inserts

    def _store(self, db: Connection, row: Stored, changes: Changes, inserts: list[_Insert]) -> int:
        if self.texts:
            rows.put_texts(db, self.texts)
        if len(inserts) == 1:
            db.execute(_INSERT, inserts[0])
        else:
            db.many(_INSERT, inserts)
        rows.apply(db, row.num, changes)
        self.known = Stored(row.num, row.origin, row.base, row.anchor, row.forked, row.kept, changes.head)
        return changes.head.seq

    def confirm(self, db: Connection) -> int | None:
        """Whether the last try was stored after all: the new head, or `None`."""
        row = rows.find(db, self.thread, lock=True)  # waits for a commit that is still on its way
        seq = self.expect + len(self.events)
        if row is None or row.head.seq < seq or not self.events:
            return None
        return seq if self.known and rows.hash_at(db, row, seq) == self.known.head.hash else None


def prepare(
    thread: str,
    expect: int,
    events: Sequence[NewEvent],
    owner: str | None,
    texts: Mapping[str, str] | None,
    *,
    release: bool,
) -> Append:
    """An append whose bodies are text. Raises `NotStorable`."""
    packed: list[tuple[str, str, str]] = []
    stored = [] if texts is None else list(texts.items())
    for entry in events:
        text, places, large = blob.pack(entry.body)
        check_kind(entry.kind)
        packed.append((entry.kind, text, places))
        if large:
            stored += large.items()
    return Append(thread, expect, events, owner, release, packed, stored)


def check_kind(kind: str) -> None:
    """Refuse a kind that is no name. Raises `NotStorable`."""
    if not kind.isascii() or not kind.isprintable() or not 0 < len(kind) <= 200:
        raise NotStorable(f"{kind!r:.80} is no kind of event: it takes 1 to 200 printable ASCII characters")


def _opened(db: Connection, thread: str, now: float) -> Stored:
    anchor = chain.genesis(rows.raw(thread))
    row = Stored(0, None, 0, anchor, 0, None, Head(thread, hash=anchor, opened=now, updated=now))
    num = rows.insert(db, row)
    if num is None:
        raise Conflict(f"thread {thread!r:.200} was opened by somebody else just now; read it and try again")
    return replace(row, num=num)


@dataclass(slots=True)
class Fork:
    """A new thread that shares the history of another up to event `at`."""

    thread: str
    at: int
    new: str
    tried: list[float] = field(default_factory=list[float])
    """When it was tried: by its opening time a fork is known as ours."""

    def write(self, db: Connection) -> bool:
        """Write it. Raises `Conflict`, `StoreError`, `ThreadNotFound`."""
        source = rows.existing(db, self.thread, lock=True)
        first = rows.oldest(db, source).base + 1
        if not first <= self.at <= source.head.seq:
            raise StoreError(
                f"thread {self.thread!r:.200} has events {first} to {source.head.seq}; it cannot be forked at {self.at}"
            )
        opened = db.micros() / 1e6
        link = rows.hash_at(db, source, self.at)
        head, fields = _state(db, source, self.at)
        head = replace(head, thread=self.new, hash=link, opened=opened, updated=opened, owner=None, lease=0.0)
        num = rows.insert(db, Stored(0, source.num, self.at, link, self.at, None, head))
        if num is None:
            if self.confirm(db):
                return True
            raise Conflict(f"thread {self.new!r:.200} exists already; choose another name for the fork")
        rows.apply(db, num, Changes(head, fields=[(name, seq, False) for name, seq in fields]))
        self.tried.append(opened)
        return True

    def confirm(self, db: Connection) -> bool | None:
        """Whether the last try was stored after all."""
        row = rows.find(db, self.new)
        return True if row is not None and row.forked == self.at and row.head.opened in self.tried else None


def _state(db: Connection, row: Stored, at: int) -> tuple[Head, list[tuple[str, int]]]:
    """The head and the events that the fields are made of, as they were after event `at`."""
    if at == row.head.seq:
        found = db.execute("SELECT name, seq FROM tropa_fields WHERE thread=? ORDER BY seq", (row.num,)).fetchall()
        return row.head, [(rows.text(name), seq) for name, seq in found]
    past = rebuild(db, row, at)
    return past.head, past.fields
