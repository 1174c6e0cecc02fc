"""A thread as JSON lines: a header, the events with the texts that they name before them, an end.

The lines carry the hashes, so that what is read back is what was written, on whatever store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import cast

from tropa.errors import Conflict, CorruptStore, NotStorable, StoreTooNew
from tropa.journal import blobs as blob
from tropa.journal import chain, rows
from tropa.journal.connection import Connection
from tropa.journal.projection import Changes
from tropa.journal.protocol import Head
from tropa.journal.rebuild import begin
from tropa.journal.rows import Stored
from tropa.journal.verify import digests, events
from tropa.journal.writing import check_kind
from tropa.messages import JsonObject, dumps, loads_object

FORMAT = 1
"""Version of the lines, in the header as `tropa`."""


def header(db: Connection, thread: str, told: set[str]) -> Iterator[str]:
    """The first lines. `told` takes in the texts that were given. Raises `ThreadNotFound`."""
    row = rows.existing(db, thread)
    first = rows.oldest(db, row)
    kept = None if first.kept is None else bytes(first.kept).hex()
    sealed = chain.seal(rows.raw(thread), first.base, first.anchor, row.forked, row.head.opened, first.kept)
    yield dumps(
        {
            "tropa": FORMAT,
            "thread": thread,
            "base": first.base,
            "anchor": first.anchor.hex(),
            "forked": row.forked,
            "opened": row.head.opened,
            "kept": kept,
            "seal": sealed.hex(),
        }
    )
    if kept is not None:
        yield from _texts(db, {kept}, told)


def page(db: Connection, thread: str, after: int, until: int, limit: int, told: set[str]) -> list[str]:
    """The lines of some events and, before each, those of the texts that it names."""
    row, lines = rows.existing(db, thread), list[str]()
    for num, low, high in rows.lineage(db, row, until):
        start = num << 32
        if high <= after or limit <= 0:
            continue
        found = db.execute(
            "SELECT at, time, kind, body, blobs, hash FROM tropa_events WHERE at>? AND at<=? ORDER BY at LIMIT ?",
            (start | max(low, after), start | high, limit),
        ).fetchall()
        limit -= len(found)
        for at, micros, kind, body, places, link in found:
            lines += _texts(db, digests(body) | digests(places), told)
            entry: JsonObject = {"seq": at - start, "time": micros, "kind": kind, "body": loads_object(body)}
            if places:
                entry["blobs"] = places
            lines.append(dumps({**entry, "hash": bytes(link).hex()}))
    return lines


def end(head: Head) -> str:
    """The last line: a file without it was cut short."""
    return dumps({"end": head.seq, "hash": head.hash.hex()})


def _texts(db: Connection, names: set[str], told: set[str]) -> Iterator[str]:
    todo = sorted(names - told)
    while todo:
        digest = todo.pop()
        told.add(digest)
        text = rows.get_text(db, digest)
        if text is not None:
            yield dumps({"text": text, "sha256": digest})
            todo += sorted(digests(text) - told)


@dataclass(slots=True)
class Import:
    """Lines that were read and agree with their hashes so far; nothing is stored before all of them do."""

    row: Stored
    seal: str
    texts: dict[str, str] = field(default_factory=dict[str, str])
    events: list[tuple[int, int, str, str, str, bytes]] = field(
        default_factory=list[tuple[int, int, str, str, str, bytes]]
    )
    ended: bool = False

    def write(self, db: Connection, name: str) -> None:
        """Store the thread under `name`. Raises `Conflict` when there is one, `CorruptStore` when lines do not agree."""
        head = replace(self.row.head, thread=name)
        num = rows.insert(db, replace(self.row, head=head))
        if num is None:
            raise Conflict(f"thread {name!r:.200} exists already; import it under another name")
        start = num << 32
        rows.put_texts(db, list(self.texts.items()))
        db.many("INSERT INTO tropa_events VALUES (?,?,?,?,?,?)", [(start | seq, *rest) for seq, *rest in self.events])
        row = replace(self.row, num=num, head=head)
        made, checked = begin(db, row), set[str]()
        for _, event in events(db, row, row.base, row.anchor, checked):
            made.apply(event)
        if row.kept is not None:
            checked.add(row.kept.hex())
        if self.texts.keys() - checked - _reachable(self.texts, checked):
            raise CorruptStore("a text that no event names was added")
        for run in made.runs.values():
            rows.apply(db, num, Changes(head, runs={run.seq: run}))
        final = replace(made.head, hash=head.hash)
        changes = Changes(final, pending=list(made.pending.values()))
        changes.fields = [(name, seq, False) for name, seq in made.fields]
        rows.apply(db, num, changes)
        rows.move(db, row, final)

    def confirm(self, db: Connection, name: str) -> bool | None:
        """Whether the last try was stored after all."""
        row = rows.find(db, name)
        return True if row is not None and row.head.hash == self.row.head.hash else None


def parse(lines: Iterable[str]) -> Import:
    """Read lines. Raises `StoreTooNew`, and `CorruptStore` with the number of a line that was changed or is missing."""
    made: Import | None = None
    number = 0
    for number, line in enumerate(lines, 1):
        try:
            value = loads_object(line)
            made = _header(value) if made is None else _line(made, value)
        except StoreTooNew:
            raise
        except (CorruptStore, NotStorable, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise CorruptStore(f"line {number} is not as it was exported ({error}); nothing was imported") from None
    if made is None or not made.ended:
        raise CorruptStore(f"the export ends after line {number} without its last line; nothing was imported")
    return made


def _header(value: JsonObject) -> Import:
    if cast("int", value["tropa"]) > FORMAT:
        raise StoreTooNew(f"the export has format {value['tropa']}, this Tropa knows up to {FORMAT}; upgrade Tropa")
    thread, base, anchor, forked, opened, kept, seal = (
        value[name] for name in ("thread", "base", "anchor", "forked", "opened", "kept", "seal")
    )
    stored = Stored(
        0,
        None,
        cast("int", base),
        bytes.fromhex(cast("str", anchor)),
        cast("int", forked),
        None if kept is None else bytes.fromhex(cast("str", kept)),
        Head(
            cast("str", thread),
            cast("int", base),
            bytes.fromhex(cast("str", anchor)),
            opened=cast("float", opened),
            updated=cast("float", opened),
        ),
    )
    own = chain.seal(
        rows.raw(stored.head.thread), stored.base, stored.anchor, stored.forked, stored.head.opened, stored.kept
    )
    if own.hex() != seal or len(value) != 8:
        raise CorruptStore("the header does not match its seal")
    return Import(stored, own.hex())


def _line(made: Import, value: JsonObject) -> Import:
    if made.ended:
        raise CorruptStore("it stands after the end")
    head = made.row.head
    if value.keys() == {"end", "hash"}:
        if value["end"] != head.seq or value["hash"] != head.hash.hex():
            raise CorruptStore("the end does not match the events")
        made.ended = True
    elif value.keys() == {"text", "sha256"}:
        text, digest = cast("str", value["text"]), cast("str", value["sha256"])
        if blob.sha256(text) != digest:
            raise CorruptStore("the text does not match its hash")
        made.texts[digest] = text
    elif value.keys() - {"blobs"} == {"seq", "time", "kind", "body", "hash"}:
        seq, micros, kind = cast("int", value["seq"]), cast("int", value["time"]), cast("str", value["kind"])
        body, places = dumps(value["body"]), cast("str", value.get("blobs", ""))
        check_kind(kind)
        link = chain.link(head.hash, seq, micros, kind, body.encode(), places)
        if seq != head.seq + 1 or link.hex() != value["hash"]:
            raise CorruptStore("the event does not match its hash")
        made.events.append((seq, micros, kind, body, places, link))
        made.row = replace(made.row, head=replace(head, seq=seq, hash=link))
    else:
        raise CorruptStore(f"it is no line of an export: {', '.join(value)[:80]}")
    return made


def _reachable(texts: dict[str, str], named: set[str]) -> set[str]:
    """The texts that the named ones name in turn."""
    found: set[str] = set()
    todo = [digest for digest in named if digest in texts]
    while todo:
        more = digests(texts[todo.pop()]) & texts.keys() - found - named
        found |= more
        todo += more
    return found
