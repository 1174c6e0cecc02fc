"""Random work, random ends: nothing is lost, nothing happens twice, what is in doubt is said to be in doubt.

`TROPA_CHAOS` is how many ends of a process each store must have lived through (2,000 unless it says otherwise).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.chaos.plant import DECISIONS, KINDS, Dice, Shift, check, live
from tropa.journal import PostgresJournal, SqliteJournal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ENDS = int(os.environ.get("TROPA_CHAOS", "2000"))
BATCH = 50
_threads = itertools.count()


@st.composite
def shifts(draw):
    """Up to four steps of up to four calls, a decision for each call, and the dice."""
    steps, said = [], {}
    for number in range(draw(st.integers(1, 4))):
        step = []
        for place in range(draw(st.integers(1, 4))):
            name = f"{draw(st.sampled_from(KINDS))}-{number}-{place}"
            said[name] = draw(st.sampled_from(DECISIONS))
            step.append(name)
        steps.append(step)
    odds = draw(st.sampled_from([0.05, 0.15, 0.3]))
    return steps, said, draw(st.integers(0, 2**32)), odds


class Place:
    """A store that outlives the processes: how to open it, and who was paid in it."""

    def __init__(self, kind, folder, url):
        self.kind = kind
        self.url = url
        self.file = folder / "chaos.db"
        self.opened = []
        self.memory = SqliteJournal(":memory:") if kind == "memory" else None
        table = "CREATE TABLE paid (thread TEXT, name TEXT)"
        if kind == "postgres":
            with psycopg.connect(url, autocommit=True) as db:
                db.execute(table)
        else:
            journal = self.open()
            with self._sqlite() as db:
                db.execute(table)
            del journal

    def open(self):
        """A journal as a new process opens it."""
        if self.memory is not None:
            fresh = SqliteJournal.__new__(SqliteJournal)
            fresh.__dict__.update({k: v for k, v in vars(self.memory).items() if k not in {"append", "transaction"}})
            return fresh
        self.opened.append(SqliteJournal(self.file) if self.kind == "sqlite" else PostgresJournal(self.url))
        return self.opened[-1]

    def paid(self, thread):
        query = "SELECT name FROM paid WHERE thread = "
        if self.kind == "postgres":
            with psycopg.connect(self.url) as db:
                return [name for (name,) in db.execute(query + "%s", (thread,))]
        with self._sqlite() as db:
            return [name for (name,) in db.execute(query + "?", (thread,))]

    def _sqlite(self):
        return sqlite3.connect(self.file) if self.memory is None else _Shared(self.memory)

    def tidy(self):
        while self.opened:
            asyncio.run(self.opened.pop().close())


class _Shared:
    """The one connection of a store in memory."""

    def __init__(self, journal):
        self._db = journal._db._raw

    def __enter__(self):
        return self._db

    def __exit__(self, *_):
        return None


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request):
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="tropa-chaos-", dir=shared if shared.is_dir() else None))
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    made = Place(request.param, folder, url)
    yield made
    made.tidy()
    shutil.rmtree(folder, ignore_errors=True)


def test_whatever_ends_and_whenever_the_work_is_done_once(place):
    lived = {"ends": 0, "points": 0, "doubts": 0}

    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(shifts())
    def shift_after_shift(drawn):
        steps, said, seed, odds = drawn
        shift = Shift(f"t{next(_threads)}", steps, said, Dice(seed, odds))
        live(shift, place.open, place.tidy)
        shift.dice.odds = 0
        asyncio.run(check(shift, place.open, place.paid))
        place.tidy()
        lived["ends"] += shift.dice.ends
        lived["points"] += shift.dice.points
        lived["doubts"] += len(shift.told)

    while lived["ends"] < ENDS:
        shift_after_shift()
    print(
        f"\n{place.kind}: {lived['ends']:,} ends at {lived['points']:,} points, {lived['doubts']:,} outcomes in doubt"
    )
    assert lived["doubts"] > ENDS // 100, "some ends fall inside calls that cannot be repeated"
