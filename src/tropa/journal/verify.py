"""Checking a thread: every row against its hash, every small table against the events it was made from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from tropa.errors import CorruptStore
from tropa.events import Event
from tropa.journal import blobs as blob
from tropa.journal import chain, rows
from tropa.journal.connection import Connection
from tropa.journal.protocol import PendingRow, RunRow
from tropa.journal.rebuild import Projection, begin
from tropa.journal.rows import Stored

_NAMED = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_PAGE = 500


def digests(text: str) -> set[str]:
    """The stored texts that a text may name: everything in it that could be a SHA-256 in hexadecimal."""
    return set(_NAMED.findall(text))


def verify(db: Connection, thread: str) -> int:
    """Check a thread and return how many events are stored. Raises `CorruptStore`, `ThreadNotFound`."""
    row = rows.existing(db, thread)
    try:
        made = begin(db, row)
        first, link = made.head.seq, made.head.hash
        _check_seals(db, row)
        checked: set[str] = set()
        for hash, event in events(db, row, first, made.head.hash, checked):
            made.apply(event)
            link = hash
        if link != row.head.hash:
            raise CorruptStore("its newest event does not match the head")
        _check_tables(db, row, made)
    except CorruptStore as error:
        raise CorruptStore(f"thread {thread!r:.200}: {error}") from None
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise CorruptStore(f"thread {thread!r:.200}: a row cannot be read: {error}") from error
    return row.head.seq - first


def events(db: Connection, row: Stored, first: int, link: bytes, checked: set[str]) -> Iterator[tuple[bytes, Event]]:
    """Each stored event with its hash, checked against the one before. `checked` remembers texts. Raises `CorruptStore`."""
    for num, low, high in rows.lineage(db, row, row.head.seq):
        seq, start = max(low, first), num << 32
        if seq > first and link != _anchor(db, row, num):
            raise CorruptStore(f"event {seq} does not match what the fork was made from")
        while seq < high:
            page = db.execute(
                "SELECT at, time, kind, body, blobs, hash FROM tropa_events WHERE at>? AND at<=? ORDER BY at LIMIT ?",
                (start | seq, start | high, _PAGE),
            ).fetchall()
            if not page:
                raise CorruptStore(f"event {seq + 1} is missing")
            for at, micros, kind, body, places, stored in page:
                seq += 1
                if at != start | seq:
                    raise CorruptStore(f"event {seq} is missing")
                try:
                    link = chain.link(link, seq, micros, kind, body.encode(), places)
                except (AttributeError, UnicodeError, TypeError) as error:
                    raise CorruptStore(f"event {seq} cannot be read: {error}") from None
                if link != stored:
                    raise CorruptStore(f"event {seq} does not match its hash")
                _check_texts(db, kind, body, places, checked, seq)
                yield link, Event(row.head.thread, seq, micros / 1e6, kind, rows.unpack(db, body, places))


def _anchor(db: Connection, row: Stored, num: int) -> bytes:
    return row.anchor if num == row.num else rows.by_num(db, num).anchor


def _check_texts(db: Connection, kind: str, body: str, places: str, checked: set[str], seq: int) -> None:
    needed = set(blob.digests(places))
    named = digests(body) - checked
    if kind == "run.started" and named:
        needed |= {digest for digest in named if f'"agent":"{digest}"' in body}
    for digest in (named | needed) - checked:
        if rows.get_text(db, digest) is None and digest in needed:
            raise CorruptStore(f"the text {digest[:12]}… that event {seq} names is missing")
        checked.add(digest)


def _check_seals(db: Connection, row: Stored) -> None:
    while True:
        found = db.execute("SELECT id, key, seal FROM tropa_threads WHERE num=?", (row.num,)).fetchone()
        id, key, seal = (bytes(value) for value in cast("tuple[bytes, ...]", found))
        expected = chain.seal(id, row.base, row.anchor, row.forked, row.head.opened, row.kept)
        if seal != expected or key != chain.genesis(id):
            raise CorruptStore(f"the row of thread {rows.text(id)!r:.200} does not match its seal")
        if row.origin is None:
            return
        row = rows.by_num(db, row.origin)


def _check_tables(db: Connection, row: Stored, made: Projection) -> None:
    head = replace(row.head, owner=None, lease=0.0)
    if (expected := replace(made.head, hash=head.hash)) != head:
        wrong = [name for name in head.__slots__ if getattr(head, name) != getattr(expected, name)]
        raise CorruptStore(f"the head does not match its events in: {', '.join(wrong)}")
    stray = db.execute(
        "SELECT count(*) FROM tropa_events WHERE at>? AND at<=? AND NOT (at>? AND at<=?)",
        (row.num << 32, (row.num << 32) + 2**32 - 1, row.num << 32 | row.base, row.num << 32 | row.head.seq),
    ).fetchone()
    if stray != (0,):
        raise CorruptStore("there are events outside its history")
    thread = row.head.thread
    runs = db.execute(
        "SELECT seq, status, stop, started, finished, input, output, cost FROM tropa_runs WHERE thread=?", (row.num,)
    ).fetchall()
    if {one[0]: RunRow(thread, *one) for one in runs} != made.runs or len(runs) != len(made.runs):
        raise CorruptStore("the list of its runs does not match its events")
    waiting = db.execute("SELECT id, call, seq, kind, tool, time FROM tropa_pending WHERE thread=?", (row.num,))
    pending = {
        rows.text(id): PendingRow(rows.text(id), thread, rows.text(call), seq, kind, rows.text(tool), time)
        for id, call, seq, kind, tool, time in waiting.fetchall()
    }
    if pending != made.pending:
        raise CorruptStore("what waits for a person does not match its events")
    fields = db.execute("SELECT name, seq FROM tropa_fields WHERE thread=? ORDER BY seq", (row.num,)).fetchall()
    if [(rows.text(name), seq) for name, seq in fields] != made.fields:
        raise CorruptStore("the list of its fields does not match its events")
