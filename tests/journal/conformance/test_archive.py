"""Export and import: loss-free between stores, and nothing else than what was exported."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from tests.journal.build import add, collect, decided, field, observed, parked, rows, turn
from tropa.errors import Conflict, CorruptStore, StoreTooNew
from tropa.events import NewEvent
from tropa.journal import SqliteJournal

pytestmark = pytest.mark.anyio


async def furnish(journal):
    odd = {"n": 2**63, "x": 0.1, "\0": "lone \ud800", "same": {"b": 1, "a": 1.0}}
    await turn(journal, "t", 0, text="long " * 8000, fields=[field("odd", odd)])
    await parked(journal, "t")
    await add(journal, "t", decided(), observed(), NewEvent("newer.kind", {"é": []}))
    await parked(journal, "t", id="p2")
    await journal.fork("t", 12, "f")
    await turn(journal, "f", 3)
    for number in range(3):
        await turn(journal, "cut", number, fields=[field("n", number)])
    await add(journal, "cut", NewEvent("window.cut", {"start": 18, "tokens": 1}))
    await journal.prune("cut")


async def test_what_is_imported_is_what_was_exported(journal, tmp_path):
    await furnish(journal)
    other = SqliteJournal(tmp_path / "other.db")
    for name in ("t", "f", "cut"):
        lines = await collect(journal.export(name))
        assert all(json.loads(line) is not None and "\n" not in line for line in lines)
        assert await other.import_(lines) == name
        assert await other.verify(name) == await journal.verify(name)
        assert await collect(other.events(name)) == await collect(journal.events(name))
        assert await other.fields(name) == await journal.fields(name)
        assert await other.state(name) == await journal.state(name)
        assert await other.pending(name) == await journal.pending(name)
        assert await other.runs(name) == await journal.runs(name)
        assert await other.head(name) == await journal.head(name)
        assert await collect(other.export(name)) == lines
        assert await journal.import_(other.export(name), thread=f"{name} again") == f"{name} again"
        await journal.verify(f"{name} again")
    await turn(other, "f", 4)
    assert await other.verify("f")
    await other.close()


async def test_a_thread_is_not_imported_over_another(journal):
    await turn(journal, "t")
    lines = await collect(journal.export("t"))
    with pytest.raises(Conflict, match="exists"):
        await journal.import_(lines)
    await turn(journal, "t", 1)
    assert await journal.verify("t") == 9


async def test_any_changed_missing_or_moved_line_is_refused_and_nothing_is_stored(journal):
    await furnish(journal)
    other = SqliteJournal(":memory:")
    dice = random.Random(3)
    for name in ("t", "f", "cut"):
        lines = await collect(journal.export(name))
        wrong = [lines[:-1], lines[1:], lines[::-1], [*lines, lines[-1]], [], ["{}"], [*lines[:-1], "null"]]
        wrong += [lines[:at] + lines[at + 1 :] for at in range(len(lines))]
        wrong += [[*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]] for at in range(1, len(lines) - 1)
                  if "sha256" not in lines[at] + lines[at + 1]]  # fmt: skip
        for at, line in enumerate(lines):
            for _ in range(6):
                place = dice.randrange(len(line))
                other_line = line[:place] + chr(ord(line[place]) ^ (1 << dice.randrange(5))) + line[place + 1 :]
                try:
                    if json.loads(other_line) == json.loads(line):
                        continue
                except ValueError:
                    pass
                wrong.append([*lines[:at], other_line, *lines[at + 1 :]])
        for attempt in wrong:
            with pytest.raises((CorruptStore, StoreTooNew)):
                await other.import_(attempt)
                pytest.fail(f"accepted: {[a for a, b in zip(attempt, lines) if a != b][:1]}")
        for table in ("threads", "events", "blobs", "runs", "pending", "fields"):
            assert rows(other, f"SELECT count(*) FROM tropa_{table}") == [(0,)]
        await other.import_(lines)
        await other.delete(name)
    await other.close()


async def test_lines_of_a_newer_version_and_added_texts_are_refused(journal):
    await turn(journal, "t")
    lines = await collect(journal.export("t"))
    header = json.loads(lines[0])
    with pytest.raises(StoreTooNew, match="upgrade"):
        await journal.import_([json.dumps(header | {"tropa": 9}), *lines[1:]], thread="u")
    import hashlib

    stray = json.dumps({"text": "stray", "sha256": hashlib.sha256(b"stray").hexdigest()})
    with pytest.raises(CorruptStore, match="no event names"):
        await journal.import_([lines[0], stray, *lines[1:]], thread="u")
    assert (await journal.head("u")).seq == 0


async def test_an_export_is_one_moment_of_a_thread_that_grows(journal):
    for number in range(260):
        await turn(journal, "t", number)
    lines = []
    async for line in journal.export("t"):
        lines.append(line)
        if len(lines) == 700:
            await asyncio.gather(turn(journal, "t", 999))
    assert await journal.import_(lines, thread="copy") == "copy"
    assert await journal.verify("copy") == 1041
