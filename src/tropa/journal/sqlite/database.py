"""One SQLite file: opening it, and transactions that wait for other writers without blocking the event loop.

Write-ahead log; a durable transaction is fsynced before it returns, the others may lag until the next durable one
(the process may die at any time and loses nothing; only the machine's power could take the lagging ones).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from tropa.errors import StoreError, StoreTooNew

VERSION = 1
"""Version of the schema, kept in the file's `user_version`."""
_APPLICATION = 0x74726F70  # "trop"
_T = TypeVar("_T")


class Database:
    """A connection to the file `path` (or `":memory:"`), shared by the threads of this process under `lock`.

    `patience` is how many seconds a transaction waits for other writers of the file.
    """

    def __init__(self, path: str, patience: float) -> None:
        self.path = path
        self.patience = patience
        self.lock = threading.RLock()
        place = path
        try:
            if path != ":memory:":
                full = Path(path).expanduser()
                full.parent.mkdir(parents=True, exist_ok=True)
                place = str(full)
            self._db = sqlite3.connect(
                place, isolation_level=None, check_same_thread=False, timeout=0, cached_statements=256
            )
            self.execute = self._db.execute
            self.executemany = self._db.executemany
            self._patiently(self._prepare)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"cannot open the journal `{path}`: {error}; give another --store") from error

    async def transact(self, work: Callable[[], _T], *, durable: bool = False) -> _T:
        """Run `work` in one write transaction, whole or not at all. Raises `StoreError` when it cannot be written."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return self._once(work, durable=durable)
            except sqlite3.Error as error:
                if not _busy(error):
                    raise StoreError(f"the journal `{self.path}` could not be written: {error}") from error
                if time.monotonic() > deadline:
                    raise StoreError(
                        f"the journal `{self.path}` was locked by another process for {self.patience:g} s;"
                        " nothing of this step was written, resume the thread later"
                    ) from error
            await asyncio.sleep(random.uniform(0.001, 0.02))

    def close(self) -> None:
        """Close the file; harmless when called twice."""
        with self.lock:
            self._db.close()

    def _once(self, work: Callable[[], _T], *, durable: bool) -> _T:
        with self.lock:
            if durable:
                self.execute("PRAGMA synchronous=FULL")
            try:
                self.execute("BEGIN IMMEDIATE")
                try:
                    result = work()
                    self.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        self.execute("ROLLBACK")
                    raise
            finally:
                if durable:
                    self.execute("PRAGMA synchronous=NORMAL")
            return result

    def _patiently(self, work: Callable[[], None]) -> None:
        """Run `work`, waiting for other processes that set up the same new file."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return work()
            except sqlite3.OperationalError as error:
                if not _busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0.005, 0.03))

    def _prepare(self) -> None:
        (version,) = self.execute("PRAGMA user_version").fetchone()
        (application,) = self.execute("PRAGMA application_id").fetchone()
        if application == _APPLICATION and version > VERSION:
            raise StoreTooNew(
                f"`{self.path}` has schema {version}, this Tropa knows up to {VERSION}; upgrade Tropa to open it"
            )
        if application != _APPLICATION and self._tables():
            raise StoreError(f"`{self.path}` is a SQLite file of something else; give another --store")
        self.execute("PRAGMA journal_mode=WAL")
        self.execute("PRAGMA synchronous=NORMAL")
        if application != _APPLICATION:
            self._once(self._create, durable=True)

    def _create(self) -> None:
        if self._tables():  # another process was faster
            return
        script = files("tropa.journal.sqlite").joinpath("schema.sql").read_text(encoding="utf-8")
        for statement in script.split(";\n"):
            self.execute(statement)
        self.execute(f"PRAGMA application_id={_APPLICATION}")
        self.execute(f"PRAGMA user_version={VERSION}")

    def _tables(self) -> bool:
        return self.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0


def _busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
