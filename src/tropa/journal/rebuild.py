"""The small tables beside the journal, made anew from the events alone: what `verify` compares them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from tropa.events import Event, NewEvent, apply_field
from tropa.journal import blobs as blob
from tropa.journal import rows
from tropa.journal.connection import Connection
from tropa.journal.projection import project
from tropa.journal.protocol import Head, PendingRow, RunRow
from tropa.journal.rows import Stored
from tropa.messages import Json, JsonObject, dumps, loads_object

PROJECTED = (
    *("run.started", "run.resumed", "run.paused", "run.finished"),
    *("message.added", "window.cut", "field.set", "call.proposed", "call.decided", "call.doubted", "call.finished"),
)
"""Kinds that change more than the head's number, hash and time."""
_PAGE = 500


@dataclass(slots=True)
class Projection:
    """What the tables should hold. `fields` are (name, event) in order; `start` are the fields of a pruned past."""

    head: Head
    forked: int = 0
    runs: dict[int, RunRow] = field(default_factory=dict[int, RunRow])
    pending: dict[str, PendingRow] = field(default_factory=dict[str, PendingRow])
    fields: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    start: JsonObject = field(default_factory=dict[str, Json])

    def apply(self, event: Event) -> None:
        """Fold one event."""
        changes = project(replace(self.head, seq=event.seq - 1), [NewEvent(event.kind, event.body)], event.time)
        for name, seq, replaces in changes.fields:
            if replaces:
                self.fields = [item for item in self.fields if item[0] != name]
            self.fields.append((name, seq))
        if event.seq <= self.forked:  # the origin's: its runs and approvals, and its times, are not this thread's
            self.head = replace(changes.head, opened=self.head.opened, updated=self.head.updated)
            return
        self.head = changes.head
        for id in changes.decided:
            self.pending.pop(id, None)
        for call in changes.answered:
            self.pending = {id: row for id, row in self.pending.items() if row.call != call or row.kind != "approval"}
        self.pending |= {row.id: row for row in changes.pending}
        for seq, run in changes.runs.items():
            before = self.runs.get(seq)
            self.runs[seq] = run if before is None else replace(run, started=before.started)


def begin(db: Connection, row: Stored) -> Projection:
    """The projection of a thread before its first event that is still stored."""
    first = rows.oldest(db, row)
    head = Head(row.head.thread, first.base, first.anchor, opened=row.head.opened, updated=row.head.opened)
    start: JsonObject = {}
    if first.kept is not None:
        past = kept(db, first)
        start = cast("JsonObject", past["fields"])
        head = replace(
            head,
            status=past["status"],  # type: ignore[arg-type]
            run=past["run"],  # type: ignore[arg-type]
            window=past["window"],  # type: ignore[arg-type]
            title=past["title"],  # type: ignore[arg-type]
            updated=row.head.opened if row.forked > first.base else cast("float", past["updated"]),
        )
    return Projection(head, row.forked, start=start)


def rebuild(db: Connection, row: Stored, until: int | None = None) -> Projection:
    """The projection of a thread after event `until` (its head by default), from its events."""
    until = row.head.seq if until is None else until
    made = begin(db, row)
    after = made.head.seq
    while after < until:
        page = rows.read(db, row, after, until, PROJECTED, limit=_PAGE)
        for event in page:
            made.apply(event)
        if len(page) < _PAGE:
            break
        after = page[-1].seq
    made.head = replace(made.head, seq=until)
    return made


def kept(db: Connection, row: Stored) -> JsonObject:
    """The state that a pruned thread keeps of what came before. Raises `CorruptStore`."""
    digest = bytes(cast("bytes", row.kept)).hex()
    return loads_object(rows.need_text(db, digest))


def values(db: Connection, row: Stored, start: JsonObject, made_of: Sequence[tuple[str, int]]) -> JsonObject:
    """The values of fields from the events that they are made of, on top of those of a pruned past."""
    found = dict(start)
    for _, seq in made_of:
        for event in rows.read(db, row, seq - 1, seq):
            apply_field(found, event.body)
    return found


def keep(db: Connection, row: Stored, past: Projection) -> bytes:
    """Store the state `past` as the text that the events after it build on; returns its hash."""
    head = past.head
    value: JsonObject = {
        "status": head.status,
        "run": head.run,
        "window": head.window,
        "title": head.title,
        "updated": head.updated,
        "fields": values(db, row, past.start, past.fields),
    }
    encoded = dumps(value)
    digest = blob.sha256(encoded)
    rows.put_texts(db, [(digest, encoded)])
    return bytes.fromhex(digest)
