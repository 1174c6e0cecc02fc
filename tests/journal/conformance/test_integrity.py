"""Verification: any one changed byte, in any column of any row, is found."""

from __future__ import annotations

import random

import pytest

from tests.journal.build import TEXTS, add, decided, doubted, field, observed, parked, rows, turn
from tropa.errors import CorruptStore, ThreadNotFound
from tropa.events import NewEvent

pytestmark = pytest.mark.anyio

TABLES = {
    "tropa_threads": (("num",), ["num", "id", "key", "origin", "base", "anchor", "forked", "kept", "seal"]
                      + ["seq", "hash", "status", "run", "cut", "title", "opened", "updated"]),  # not owner, lease
    "tropa_events": (("at",), ["at", "time", "kind", "body", "blobs", "hash"]),
    "tropa_blobs": (("hash",), ["hash", "text"]),
    "tropa_runs": (("thread", "seq"), ["thread", "seq", "status", "stop", "started", "finished", "input", "output", "cost"]),
    "tropa_pending": (("thread", "id"), ["thread", "id", "call", "seq", "kind", "tool", "time"]),
    "tropa_fields": (("thread", "name", "seq"), ["thread", "name", "seq"]),
}  # fmt: skip


async def furnish(journal):
    """One thread with everything, a fork of it, and the fork pruned."""
    await turn(journal, "t", 0, fields=[field("language", "Spanish"), field("notes", ["a"], "append")])
    await turn(journal, "t", 1, text="long " * 8000, fields=[field("notes", ["b", "é"], "append")])
    await parked(journal, "t")
    await add(journal, "t", decided(), doubted(id="u9"), observed())
    await add(journal, "t", NewEvent("window.cut", {"start": 8, "tokens": 5}))
    await journal.fork("t", 13, "f")
    await turn(journal, "f", 2)
    await turn(journal, "t", 3)
    await parked(journal, "t", id="p2")
    await journal.fork("f", 17, "g")
    end = await turn(journal, "g", 4)
    await add(journal, "g", NewEvent("window.cut", {"start": end - 2, "tokens": 5}))
    assert await journal.prune("g", keep=1) > 13


async def found(journal):
    for thread in ("t", "f", "g"):
        try:
            await journal.verify(thread)
        except (CorruptStore, ThreadNotFound):
            return True
    return False


def changed(value, random):
    """The value with one bit of one byte (or one step of a number) changed."""
    if isinstance(value, bytes):
        at = random.randrange(len(value))
        return value[:at] + bytes([value[at] ^ (1 << random.randrange(8))]) + value[at + 1 :]
    if isinstance(value, str):
        if not value:
            return "x"
        at = random.randrange(len(value))
        other = chr(ord(value[at]) ^ (1 << random.randrange(5)))
        return value[:at] + (other if other.isprintable() else "~") + value[at + 1 :]
    if isinstance(value, float):
        return value + 1 / 64
    return 1 if value is None else value ^ (1 << random.randrange(3))


@pytest.mark.parametrize("table", TABLES)
async def test_one_changed_value_is_found(journal, table):
    await furnish(journal)
    assert not await found(journal)
    keys, columns = TABLES[table]
    dice = random.Random(7)
    names = rows(journal, f"SELECT {', '.join(keys)} FROM {table}")
    where = " AND ".join(f"{key}=?" for key in keys)
    tried = 0
    for column in columns:
        for name in names if len(names) < 9 else dice.sample(names, 9):
            (before,) = rows(journal, f"SELECT {column} FROM {table} WHERE {where}", name)[0]
            if before is None and column in {"cost", "stop", "finished"}:
                continue
            after = changed(before, dice)
            there = tuple(after if key == column else value for key, value in zip(keys, name))
            try:
                rows(journal, f"UPDATE {table} SET {column}=? WHERE {where}", (after, *name))
            except Exception:  # the database itself refuses it: two rows with one key
                continue
            assert await found(journal), (column, name, before, after)
            rows(journal, f"UPDATE {table} SET {column}=? WHERE {where}", (before, *there))
            tried += 1
    assert tried > 4
    assert not await found(journal)


@pytest.mark.parametrize("table", TABLES)
async def test_one_row_too_few_is_found(journal, table):
    await furnish(journal)
    keys = ", ".join(TABLES[table][0])
    rows(journal, f"DELETE FROM {table} WHERE ({keys}) = (SELECT {keys} FROM {table} ORDER BY {keys} LIMIT 1)")
    assert await found(journal)


async def test_a_row_too_many_is_found(journal):
    await turn(journal, "t")
    rows(
        journal,
        "INSERT INTO tropa_events SELECT at + 7, time, kind, body, blobs, hash FROM tropa_events WHERE kind='run.started'",
    )
    with pytest.raises(CorruptStore, match="outside"):
        await journal.verify("t")


async def test_a_changed_text_is_not_handed_out(journal):
    await turn(journal, "t", text="long " * 8000)
    rows(journal, "UPDATE tropa_blobs SET text = CAST('changed' AS BLOB)" if hasattr(journal._db, "_raw")
         else "UPDATE tropa_blobs SET text = 'changed'::bytea")  # fmt: skip
    with pytest.raises(CorruptStore, match="changed"):
        await journal.state("t")
    with pytest.raises(CorruptStore, match="changed"):
        await journal.text(next(iter(TEXTS)))


async def test_a_body_that_asks_for_an_import_is_refused_and_others_load(journal):
    """I-01: nothing in a row is ever executed."""
    await turn(journal, "t")
    await turn(journal, "other")
    rows(journal, "UPDATE tropa_events SET body = '!!python/object/apply:os.system [true]' WHERE kind = 'message.added'"
                  " AND at < 8589934592")  # fmt: skip
    with pytest.raises(CorruptStore, match="cannot be read"):
        await journal.state("t")
    with pytest.raises(CorruptStore):
        await journal.verify("t")
    assert await journal.verify("other") == 5


async def test_deep_or_strange_json_in_a_row_is_an_error_of_the_store(journal):
    await add(journal, "t", NewEvent("x.y", {"a": 1}))
    for body in ("[1]", "NaN", '{"a": Infinity}', "", "[" * 100_000):
        rows(journal, f"UPDATE tropa_events SET body = '{body}'")
        with pytest.raises(CorruptStore):
            await journal.verify("t")
        with pytest.raises(CorruptStore):
            [event async for event in journal.events("t")]
