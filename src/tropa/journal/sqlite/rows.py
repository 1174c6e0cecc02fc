"""The statements: rows in, rows out. Every function runs inside the caller's lock or transaction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import cast

from tropa.errors import CorruptStore
from tropa.events import Event
from tropa.journal import blobs as blob
from tropa.journal import chain
from tropa.journal.projection import Changes
from tropa.journal.protocol import Head
from tropa.journal.sqlite.database import Database
from tropa.messages import JsonObject

HEAD = "seq, hash, status, run, window, title, opened, updated, owner, lease"


def key(thread: str) -> bytes:
    """A thread id as stored: bytes, so that any text whatsoever is an id."""
    return thread.encode("utf-8", "surrogatepass")


def name(stored: bytes) -> str:
    """The thread id behind `key`."""
    return stored.decode("utf-8", "surrogatepass")


def head(db: Database, thread: str) -> tuple[int | None, Head]:
    """A thread's number and head; the number is `None` when there is no such thread."""
    row = db.execute(f"SELECT num, {HEAD} FROM threads WHERE id = ?", (key(thread),)).fetchone()
    return (None, Head(thread)) if row is None else (row[0], Head(thread, *row[1:]))


def open_thread(db: Database, thread: str) -> tuple[int, Head]:
    """Insert a new thread."""
    start = Head(thread, hash=chain.genesis(key(thread)))
    cursor = db.execute(
        f"INSERT INTO threads (id, root, {HEAD}) VALUES (?,?,0,?,'idle',0,0,'',0,0,NULL,0)",
        (key(thread), key(thread), start.hash),
    )
    return cast("int", cursor.lastrowid), start


def apply(db: Database, num: int, changes: Changes, link: bytes) -> None:
    """Write what a batch of events changed beside the journal."""
    now = replace(changes.head, hash=link)
    db.execute(
        "UPDATE threads SET seq=?, hash=?, status=?, run=?, window=?, title=?, opened=?, updated=?, owner=?, lease=?"
        " WHERE num=?",
        (
            *(now.seq, now.hash, now.status, now.run, now.window, now.title, now.opened, now.updated),
            *(now.owner, now.lease, num),
        ),
    )
    for seq, row in changes.runs.items():
        db.execute(
            "INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET status=excluded.status,"
            " stop=excluded.stop, finished=excluded.finished, input=excluded.input, output=excluded.output,"
            " cost=excluded.cost",
            (num, seq, row.status, row.stop, row.started, row.finished, row.input, row.output, row.cost),
        )
    for id in changes.decided:
        db.execute("DELETE FROM pending WHERE id=?", (id,))
    for call in changes.answered:
        db.execute("DELETE FROM pending WHERE thread=? AND call=? AND kind='approval'", (num, call))
    for row in changes.pending:
        values = (row.id, num, row.call, row.seq, row.kind, row.tool, row.time)
        db.execute("INSERT OR REPLACE INTO pending VALUES (?,?,?,?,?,?,?)", values)
    for field, seq, replaces in changes.fields:
        set_field(db, num, field, seq, replaces=replaces)


def set_field(db: Database, num: int, field: str, seq: int, *, replaces: bool) -> None:
    """Note that event `seq` set a field; where it replaces the value, earlier events no longer matter."""
    if replaces:
        db.execute("DELETE FROM fields WHERE thread=? AND name=?", (num, field))
    db.execute("INSERT INTO fields VALUES (?,?,?)", (num, field, seq))


def put_text(db: Database, digest: str, text: str) -> None:
    """Store a text once, under its hash."""
    db.execute("INSERT OR IGNORE INTO blobs VALUES (?,?)", (bytes.fromhex(digest), text))


def get_text(db: Database, digest: str) -> str | None:
    """A stored text, unchecked."""
    row = db.execute("SELECT text FROM blobs WHERE hash=?", (bytes.fromhex(digest),)).fetchone()
    return None if row is None else row[0]


def lineage(db: Database, num: int, until: int) -> list[tuple[int, int, int]]:
    """The stretches that make up a thread's history, oldest first: (thread, after, until)."""
    stretches: list[tuple[int, int, int]] = []
    while True:
        origin, shared = db.execute("SELECT origin, shared FROM threads WHERE num=?", (num,)).fetchone()
        if until > shared:
            stretches.append((num, shared, until))
            until = shared
        if origin is None:
            return stretches[::-1]
        num = origin


def read(
    db: Database,
    thread: str,
    num: int,
    after: int,
    until: int,
    kinds: Collection[str] | None = None,
    *,
    newest_first: bool = False,
    limit: int = -1,
) -> list[Event]:
    """Events of a thread and of its origins. `limit` is the most rows to give; -1 is all."""
    stretches = [(part, max(low, after), min(high, until)) for part, low, high in lineage(db, num, until)]
    marks = "" if kinds is None else f" AND kind IN ({','.join('?' * len(kinds))})"
    found: list[Event] = []
    for part, low, high in reversed(stretches) if newest_first else stretches:
        left = limit if limit < 0 else limit - len(found)
        if low >= high or left == 0:
            continue
        rows = db.execute(
            f"SELECT seq, time, kind, body, blobs FROM events WHERE thread=? AND seq>? AND seq<=?{marks}"
            f" ORDER BY seq {'DESC' if newest_first else 'ASC'} LIMIT ?",
            (part, low, high, *(kinds or ()), left),
        ).fetchall()
        found += [Event(thread, seq, micros / 1e6, kind, _body(db, text, cut)) for seq, micros, kind, text, cut in rows]
    return found


def _body(db: Database, text: str, places: str) -> JsonObject:
    found = {digest: get_text(db, digest) for digest in blob.digests(places)}
    try:
        return blob.unpack(text, places, found)
    except ValueError as error:
        raise CorruptStore(f"an event in `{db.path}` cannot be read as data: {error}") from error
