"""Forgetting: whole threads, the past of a thread, texts that nothing names. What others share is handed on first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tropa.errors import Conflict, UsageError
from tropa.journal import lease, rows
from tropa.journal.connection import Connection
from tropa.journal.rebuild import keep, rebuild
from tropa.journal.rows import Stored
from tropa.journal.verify import digests


def delete(db: Connection, thread: str) -> None:
    """Remove a thread: no row with its name is left. Forks keep the history that they share.

    Raises `ThreadNotFound`, and `Conflict` while somebody works on it.
    """
    row = _idle(db, thread)
    db.alone()
    _hand_on(db, row)
    row = rows.existing(db, thread)
    texts = _texts_of(db, row, row.head.seq)
    for table in ("tropa_runs", "tropa_pending", "tropa_fields"):
        db.execute(f"DELETE FROM {table} WHERE thread=?", (row.num,))
    db.execute("DELETE FROM tropa_events WHERE at>? AND at<=?", (row.num << 32, (row.num << 32) + 2**32 - 1))
    db.execute("DELETE FROM tropa_threads WHERE num=?", (row.num,))
    _drop_unnamed(db, texts)


def prune(db: Connection, thread: str, runs: int) -> int:
    """Remove what came before the last `runs` runs and is not needed; returns how many events can no longer be read.

    Kept are also the window (what is sent to the model) and everything from the run on in which something waits for a
    person. What the removed events added up to is kept as one text, so that fields and the hash chain go on.

    Raises `ThreadNotFound`, and `Conflict` while somebody works on the thread.
    """
    if runs < 1:
        raise UsageError(f"at least one run must be kept, not {runs}; use `delete` to remove the whole thread")
    row = _idle(db, thread)
    db.alone()
    first = rows.oldest(db, row).base
    cut = _cut(db, row, runs)
    if cut <= first:
        return 0
    past = rebuild(db, row, cut)
    anchor, kept = rows.hash_at(db, row, cut), keep(db, row, past)
    _hand_on(db, row)
    row = rows.existing(db, thread)
    texts = _texts_of(db, row, cut)
    for num, low, high in rows.lineage(db, row, row.base):  # what the thread shares and still needs becomes its own
        if high > cut:
            db.execute(
                "INSERT INTO tropa_events SELECT at - ? + ?, time, kind, body, blobs, hash FROM tropa_events"
                " WHERE at>? AND at<=?",
                (num << 32, row.num << 32, num << 32 | max(low, cut), num << 32 | high),
            )
    db.execute("DELETE FROM tropa_events WHERE at>? AND at<=?", (row.num << 32, row.num << 32 | cut))
    db.execute("DELETE FROM tropa_runs WHERE thread=? AND seq<=?", (row.num, cut))
    db.execute("DELETE FROM tropa_fields WHERE thread=? AND seq<=?", (row.num, cut))
    rows.rebase(db, replace(row, origin=None, base=cut, anchor=anchor, kept=kept))
    _drop_unnamed(db, texts)
    return cut - first


def sweep(db: Connection) -> int:
    """Remove every text that nothing names, directly or through another text; returns how many."""
    db.alone()
    named: set[str] = set()
    for body, places in _each(db, "SELECT body, blobs, at FROM tropa_events WHERE at>? ORDER BY at LIMIT 1000"):
        named |= {*digests(body), *digests(places)}
    named.update(
        bytes(kept).hex() for (kept,) in db.execute("SELECT kept FROM tropa_threads WHERE kept IS NOT NULL").fetchall()
    )
    todo = list(named)
    while todo:
        found = db.execute("SELECT text FROM tropa_blobs WHERE hash=?", (bytes.fromhex(todo.pop()),)).fetchone()
        if found is not None:
            more = digests(bytes(found[0]).decode("utf-8", "replace")) - named
            named |= more
            todo += more
    stored = {bytes(hash).hex() for (hash,) in db.execute("SELECT hash FROM tropa_blobs").fetchall()}
    db.many("DELETE FROM tropa_blobs WHERE hash=?", [(bytes.fromhex(digest),) for digest in stored - named])
    return len(stored - named)


def _idle(db: Connection, thread: str) -> Stored:
    row = rows.existing(db, thread, lock=True)
    owner = row.head.owner
    if owner is not None and row.head.lease > db.micros() / 1e6 and not lease.dead(owner):
        raise Conflict(f"thread {thread!r:.200} is being worked on; cancel its run or wait for it to end")
    return row


def _cut(db: Connection, row: Stored, runs: int) -> int:
    """The last event that may go."""
    started = [
        event.seq for event in rows.read(db, row, 0, row.head.seq, ("run.started",), newest_first=True, limit=runs)
    ]
    if len(started) < runs:
        return 0
    cut = min(started[-1] - 1, row.head.window - 1)
    waits = db.execute("SELECT min(seq) FROM tropa_pending WHERE thread=?", (row.num,)).fetchone()
    limit = cut + 1 if waits is None or waits[0] is None else min(cut + 1, waits[0])
    begun = rows.read(db, row, 0, limit, ("run.started",), newest_first=True, limit=1)
    return begun[0].seq - 1 if begun else 0


def _hand_on(db: Connection, row: Stored) -> None:
    """Give what forks of a thread share to the one that shares most; the thread itself becomes a fork of that one.

    Nothing is copied. Afterwards nobody depends on the thread.
    """
    forks = db.execute(
        "SELECT num, base FROM tropa_threads WHERE origin=? ORDER BY base DESC, num", (row.num,)
    ).fetchall()
    # Those that share nothing of its own only share what it shares itself.
    db.execute("UPDATE tropa_threads SET origin=? WHERE origin=? AND base<=?", (row.origin, row.num, row.base))
    if not forks or forks[0][1] <= row.base:
        return
    num, base = forks[0]
    heir = rows.by_num(db, num)
    own, new = row.num << 32, num << 32
    db.execute("UPDATE tropa_events SET at=at-?+? WHERE at>? AND at<=?", (own, new, own, own | base))
    rows.rebase(db, replace(heir, origin=row.origin, base=row.base, anchor=row.anchor, kept=row.kept))
    db.execute("UPDATE tropa_threads SET origin=? WHERE origin=? AND num<>?", (num, row.num, num))
    rows.rebase(db, replace(row, origin=num, base=base, anchor=heir.anchor, kept=None))


def _texts_of(db: Connection, row: Stored, until: int) -> set[str]:
    """The texts that a thread's own events up to `until`, and its kept past, name."""
    found: set[str] = set() if row.kept is None else {bytes(row.kept).hex()}
    start = row.num << 32
    for body, places in db.execute(
        "SELECT body, blobs FROM tropa_events WHERE at>? AND at<=?", (start, start | until)
    ).fetchall():
        found |= {*digests(body), *digests(places)}
    return found


def _drop_unnamed(db: Connection, digests: Iterable[str]) -> None:
    """Remove those of `digests` that no event, no kept past and no other text names any more."""
    for digest in sorted(digests):
        hash = bytes.fromhex(digest)
        stored = db.execute("SELECT 1 FROM tropa_blobs WHERE hash=?", (hash,)).fetchone()
        if stored is None:
            continue
        named = db.execute(
            f"SELECT 1 WHERE EXISTS (SELECT 1 FROM tropa_events WHERE {db.contains('body')})"
            f" OR EXISTS (SELECT 1 FROM tropa_events WHERE {db.contains('blobs')})"
            " OR EXISTS (SELECT 1 FROM tropa_threads WHERE kept=?)",
            (digest, digest, hash),
        ).fetchone()
        if named is None:
            db.execute("DELETE FROM tropa_blobs WHERE hash=?", (hash,))


def _each(db: Connection, sql: str) -> Iterable[tuple[str, str]]:
    at = -1
    while page := db.execute(sql, (at,)).fetchall():
        for body, places, at in page:  # noqa: B007
            yield body, places
