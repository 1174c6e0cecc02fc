"""The statements: rows in, rows out. Every function runs inside a transaction of either store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from tropa.errors import CorruptStore, StoreError, ThreadNotFound
from tropa.events import Event
from tropa.journal import blobs as blob
from tropa.journal import chain
from tropa.journal.connection import Connection
from tropa.journal.projection import Changes
from tropa.journal.protocol import Head, PendingRow, RunRow
from tropa.messages import JsonObject

ALL = 2**62
"""As a limit: no limit."""
_HEAD = "seq, hash, status, run, cut, title, opened, updated, owner, lease"
_THREAD = f"num, origin, base, anchor, forked, kept, {_HEAD}"


class Stretch(NamedTuple):
    """A part of a history: the events `low` < seq <= `high`, stored under the thread with number `num`."""

    num: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A thread's row. Its own events begin after `base`; `anchor` is the hash there.

    Earlier ones are in the thread `origin`, or are gone where there is none: then `kept` names the text that holds the
    state at `base`. No approval from `forked` or before holds here.
    """

    num: int
    origin: int | None
    base: int
    anchor: bytes
    forked: int
    kept: bytes | None
    head: Head


def raw(text: str) -> bytes:
    """Free text as stored: bytes, so that any text whatsoever can be kept and looked for."""
    return text.encode("utf-8", "surrogatepass")


def text(stored: bytes) -> str:
    """The text behind `raw`. Raises `UnicodeDecodeError` for bytes that are none."""
    return bytes(stored).decode("utf-8", "surrogatepass")


def position(num: int, seq: int) -> int:
    """An event's key: thread and sequence number in one integer, so that a thread's events lie side by side."""
    return num << 32 | seq


def find(db: Connection, thread: str, *, lock: bool = False) -> Stored | None:
    """A thread's row, kept for this transaction with `lock`."""
    suffix = db.lock if lock else ""
    row = db.execute(
        f"SELECT {_THREAD} FROM tropa_threads WHERE key=?{suffix}", (chain.genesis(raw(thread)),)
    ).fetchone()
    return None if row is None else _stored(thread, row)


def existing(db: Connection, thread: str, *, lock: bool = False) -> Stored:
    """A thread's row. Raises `ThreadNotFound`."""
    row = find(db, thread, lock=lock)
    if row is None:
        raise ThreadNotFound(f"there is no thread {thread!r:.200} in this store; `tropa trail list` shows them")
    return row


def by_num(db: Connection, num: int) -> Stored:
    """The thread with a number that another row names. Raises `CorruptStore` when there is none."""
    row = db.execute(f"SELECT {_THREAD}, id FROM tropa_threads WHERE num=?", (num,)).fetchone()
    if row is None:
        raise CorruptStore(f"the thread number {num}, whose history another thread shares, is missing")
    return _stored(text(row[-1]), row[:-1])


def _stored(thread: str, row: tuple[Any, ...]) -> Stored:
    num, origin, base, anchor, forked, kept, seq, hash, status, run, cut, title, opened, updated, owner, lease = row
    holder = None if owner is None else text(owner)
    head = Head(thread, seq, hash, status, run, cut, title, opened, updated, holder, lease)
    return Stored(num, origin, base, anchor, forked, kept, head)


def insert(db: Connection, row: Stored) -> int | None:
    """Insert a new thread and give its number; `None` when there is one with this name."""
    head, id = row.head, raw(row.head.thread)
    seal = chain.seal(id, row.base, row.anchor, row.forked, head.opened, row.kept)
    found = db.execute(
        f"INSERT INTO tropa_threads (id, key, seal, origin, base, anchor, forked, kept, {_HEAD})"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO NOTHING RETURNING num",
        (
            *(id, chain.genesis(id), seal, row.origin, row.base, row.anchor, row.forked, row.kept),
            *(head.seq, head.hash, head.status, head.run, head.window, head.title, head.opened, head.updated),
            *(None if head.owner is None else raw(head.owner), head.lease),
        ),
    ).fetchall()
    return found[0][0] if found else None


def rebase(db: Connection, row: Stored) -> None:
    """Write anew where a thread's own events begin."""
    seal = chain.seal(raw(row.head.thread), row.base, row.anchor, row.forked, row.head.opened, row.kept)
    db.execute(
        "UPDATE tropa_threads SET origin=?, base=?, anchor=?, kept=?, seal=? WHERE num=?",
        (row.origin, row.base, row.anchor, row.kept, seal, row.num),
    )


def move(db: Connection, before: Stored, now: Head) -> bool:
    """Write a thread's new head, if the thread still stands, and is still held, as it was `before`.

    The hash covers all that was appended, so one comparison says whether anything happened meanwhile.
    """
    sets, listed = "seq=?, hash=?, owner=?, lease=?", ()
    if _listed(before.head) != _listed(now):  # else no index changes, and fewer pages are written
        sets, listed = f"{sets}, status=?, run=?, cut=?, title=?, updated=?", _listed(now)
    held = before.head.owner
    owner = None if now.owner is None else raw(now.owner)
    given = (now.seq, now.hash, owner, now.lease, *listed, before.num, before.head.seq, before.head.hash)
    where = "num=? AND seq=? AND hash=?"
    if held is None:
        return db.update(f"UPDATE tropa_threads SET {sets} WHERE {where} AND owner IS NULL", given) == 1
    return db.update(f"UPDATE tropa_threads SET {sets} WHERE {where} AND owner=?", (*given, raw(held))) == 1


def apply(db: Connection, num: int, changes: Changes) -> None:
    """Write what a batch of events changed in the small tables, the thread's row excepted."""
    for seq, run in changes.runs.items():
        db.execute(
            "INSERT INTO tropa_runs VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (thread, seq) DO UPDATE SET"
            " status=excluded.status, stop=excluded.stop, finished=excluded.finished, input=excluded.input,"
            " output=excluded.output, cost=excluded.cost",
            (num, seq, run.status, run.stop, run.started, run.finished, run.input, run.output, run.cost),
        )
    for id in changes.decided:
        db.execute("DELETE FROM tropa_pending WHERE thread=? AND id=?", (num, raw(id)))
    for call in changes.answered:
        db.execute("DELETE FROM tropa_pending WHERE thread=? AND call=? AND kind='approval'", (num, raw(call)))
    for row in changes.pending:
        db.execute(
            "INSERT INTO tropa_pending VALUES (?,?,?,?,?,?,?) ON CONFLICT (thread, id) DO UPDATE SET"
            " call=excluded.call, seq=excluded.seq, kind=excluded.kind, tool=excluded.tool, time=excluded.time",
            (num, raw(row.id), raw(row.call), row.seq, row.kind, raw(row.tool), row.time),
        )
    for field, seq, replaces in changes.fields:
        name = raw(field)
        if replaces:
            db.execute("DELETE FROM tropa_fields WHERE thread=? AND name=?", (num, name))
        db.execute("INSERT INTO tropa_fields VALUES (?,?,?)", (num, name, seq))


def _listed(head: Head) -> tuple[object, ...]:
    """The part of the head that a batch in the middle of a run leaves as it is."""
    return (head.status, head.run, head.window, head.title, head.updated)


def put_texts(db: Connection, texts: Collection[tuple[str, str]]) -> None:
    """Store texts once, each under its hash; in one order for all writers, so that none waits for another in a ring."""
    for digest, value in sorted(texts):
        db.execute("INSERT INTO tropa_blobs VALUES (?,?) ON CONFLICT DO NOTHING", (bytes.fromhex(digest), raw(value)))


def get_text(db: Connection, digest: str) -> str | None:
    """A stored text; `None` when it is missing. Raises `CorruptStore` when it was changed."""
    row = db.execute("SELECT text FROM tropa_blobs WHERE hash=?", (bytes.fromhex(digest),)).fetchone()
    if row is None:
        return None
    try:
        value = text(row[0])
    except (UnicodeDecodeError, TypeError):
        value = ""
    if blob.sha256(value) != digest:
        raise CorruptStore(f"the stored text {digest[:12]}… was changed")
    return value


def need_text(db: Connection, digest: str) -> str:
    """A text that must be there. Raises `CorruptStore`."""
    value = get_text(db, digest)
    if value is None:
        raise CorruptStore(f"the stored text {digest[:12]}… is missing")
    return value


def lineage(db: Connection, row: Stored, until: int) -> list[Stretch]:
    """The stretches that make up a thread's history up to event `until`, oldest first."""
    stretches: list[Stretch] = []
    num, origin, base = row.num, row.origin, row.base
    seen: set[int] = set()
    while True:
        if until > base:
            stretches.append(Stretch(num, base, until))
            until = base
        if origin is None:
            return stretches[::-1]
        num = origin
        _once(seen, num)
        found = db.execute("SELECT origin, base FROM tropa_threads WHERE num=?", (num,)).fetchone()
        if found is None:
            raise CorruptStore(f"thread {row.head.thread!r:.200}: the thread whose history it shares is missing")
        origin, base = cast("tuple[int | None, int]", found)


def oldest(db: Connection, row: Stored) -> Stored:
    """The row where a thread's history begins: itself, or the origin of its origins."""
    seen: set[int] = set()
    while row.origin is not None:
        _once(seen, row.origin)
        row = by_num(db, row.origin)
    return row


def _once(seen: set[int], num: int) -> None:
    if num in seen:
        raise CorruptStore(f"the thread number {num} shares its history with itself")
    seen.add(num)


def hash_at(db: Connection, row: Stored, seq: int) -> bytes:
    """The hash after event `seq` of a thread. Raises `StoreError` when that event is gone or never was."""
    for num, low, high in lineage(db, row, seq):
        if low < seq <= high:
            found = db.execute("SELECT hash FROM tropa_events WHERE at=?", (position(num, seq),)).fetchone()
            if found is not None:
                return bytes(found[0])
    raise StoreError(f"thread {row.head.thread!r:.200} has no event {seq}")


def read(
    db: Connection,
    row: Stored,
    after: int,
    until: int,
    kinds: Collection[str] | None = None,
    *,
    newest_first: bool = False,
    limit: int = ALL,
) -> list[Event]:
    """Events `after` < seq <= `until` of a thread and of its origins, at most `limit`."""
    stretches = [Stretch(row.num, row.base, until)] if after >= row.base else lineage(db, row, until)
    marks = "" if kinds is None else f" AND kind IN ({','.join('?' * len(kinds))})"
    order = "DESC" if newest_first else "ASC"
    found: list[Event] = []
    for num, low, high in reversed(stretches) if newest_first else stretches:
        low, high = max(low, after), min(high, until)  # noqa: PLW2901
        if low >= high or len(found) >= limit:
            continue
        start = num << 32
        given: Sequence[object] = (start | low, start | high, *(kinds or ()), limit - len(found))
        for at, micros, kind, body, places in db.execute(
            f"SELECT at, time, kind, body, blobs FROM tropa_events WHERE at>? AND at<=?{marks} ORDER BY at {order} LIMIT ?",
            given,
        ).fetchall():
            found.append(Event(row.head.thread, at - start, micros / 1e6, kind, unpack(db, body, places)))
    return found


def unpack(db: Connection, body: str, places: str) -> JsonObject:
    """A body with its large texts. Raises `CorruptStore` when it is no data, or a text is missing or changed."""
    try:
        return blob.unpack(body, places, {digest: get_text(db, digest) for digest in blob.digests(places)})
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise CorruptStore(f"an event cannot be read as data: {error}; `tropa trail verify` says which") from error


def runs(db: Connection, thread: str | None, limit: int) -> list[RunRow]:
    """Runs, newest first."""
    where, given = ("", []) if thread is None else (" WHERE t.key=?", [chain.genesis(raw(thread))])
    found = db.execute(
        "SELECT t.id, r.seq, r.status, r.stop, r.started, r.finished, r.input, r.output, r.cost FROM tropa_runs r"
        f" JOIN tropa_threads t ON t.num=r.thread{where} ORDER BY r.started DESC, r.seq DESC LIMIT ?",
        [*given, limit],
    ).fetchall()
    return [RunRow(text(row[0]), *row[1:]) for row in found]


def pending(db: Connection, thread: str | None, id: str | None) -> list[PendingRow]:
    """What waits for a person, oldest first."""
    where, given = "", list[object]()
    if thread is not None:
        where, given = " AND t.key=?", [chain.genesis(raw(thread))]
    if id is not None:
        where, given = where + " AND p.id=?", [*given, raw(id)]
    found = db.execute(
        "SELECT p.id, t.id, p.call, p.seq, p.kind, p.tool, p.time FROM tropa_pending p JOIN tropa_threads t"
        f" ON t.num=p.thread WHERE 1=1{where} ORDER BY p.time, p.thread, p.seq",
        given,
    ).fetchall()
    return [
        PendingRow(text(own), text(of), text(call), seq, kind, text(tool), time)
        for own, of, call, seq, kind, tool, time in found
    ]


def threads(db: Connection, limit: int, status: str | None) -> list[Head]:
    """Threads, the one that changed last first."""
    where, given = ("", []) if status is None else (" WHERE status=?", [status])
    if status not in {None, "idle", "completed"}:
        where += " AND status NOT IN ('idle', 'completed')"  # in the words of the index, which leaves most threads out
    found = db.execute(
        f"SELECT {_THREAD}, id FROM tropa_threads{where} ORDER BY updated DESC, num DESC LIMIT ?", [*given, limit]
    ).fetchall()
    return [_stored(text(row[-1]), row[:-1]).head for row in found]
