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
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tropa.errors import CorruptStore, StoreError, StoreTooNew
from tropa.journal.connection import Connection, Rows, T
from tropa.journal.schema import scripts
from tropa.journal.sqlite.guard import Guard

_APPLICATION = 0x74726F70  # "trop"


class SqliteConnection:
    """A `Connection`: every writer is alone on the file, so there is nothing to lock."""

    lock = ""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.raw = raw
        self.execute: Callable[..., Rows] = raw.execute  # bound once: an append runs five statements
        self.many = raw.executemany

    def update(self, sql: str, given: Sequence[object], /) -> int:
        """See `Connection.update`."""
        return self.raw.execute(sql, given).rowcount  # type: ignore[arg-type]

    def alone(self) -> None:
        """Every writer is."""

    def contains(self, column: str) -> str:
        """See `Connection.contains`."""
        return f"instr({column}, ?) > 0"

    def micros(self) -> int:
        """This machine's clock: all processes that can write to the file share it."""
        return time.time_ns() // 1000


class SqliteDatabase:
    """A connection to the file `path` (or `":memory:"`), shared by the threads of this process under `lock`.

    `patience` is how many seconds a transaction waits for other writers of the file.
    """

    def __init__(self, path: str, patience: float) -> None:
        self.name = path
        self.patience = patience
        self._file = path
        self._lock = threading.RLock()
        self._lent = False
        try:
            if path != ":memory:":
                full = Path(path).expanduser()
                full.parent.mkdir(parents=True, exist_ok=True)
                self._file = str(full)
            self._db = self._open()
            self._raw = self._db.raw
            self._patiently(self._prepare)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"cannot open the journal `{path}`: {error}; give another --store") from error

    async def write(
        self,
        work: Callable[[Connection], T],
        *,
        durable: bool = False,
        confirm: Callable[[Connection], T | None] | None = None,
    ) -> T:
        """See `Database.write`. A statement takes microseconds, so it runs on the event loop."""
        deadline = 0.0
        while True:
            try:
                return self._once(work, durable=durable)
            except sqlite3.Error as error:
                if not _busy(error):
                    raise self._fault(error) from error
                deadline = deadline or time.monotonic() + self.patience
                if time.monotonic() > deadline:
                    raise self._locked() from error
            await asyncio.sleep(random.uniform(0.001, 0.02))

    async def read(self, work: Callable[[Connection], T], *, snapshot: bool = False) -> T:
        """See `Database.read`. A long look at a file takes a connection and a thread of its own."""
        if snapshot and self._file != ":memory:":
            return await asyncio.to_thread(self._look, work)
        deadline = 0.0
        while True:
            try:
                with self._lock:
                    return work(self._db)
            except sqlite3.Error as error:
                if not _busy(error):
                    raise self._fault(error) from error
                deadline = deadline or time.monotonic() + self.patience
                if time.monotonic() > deadline:
                    raise self._locked() from error
            await asyncio.sleep(random.uniform(0.001, 0.02))

    @asynccontextmanager
    async def lend(self, confirm: Callable[[Connection], object | None]) -> AsyncGenerator[Guard]:
        """See `Database.lend`. Other writers of the file wait meanwhile."""
        memory = self._file == ":memory:"
        db = self._db if memory else self._open()
        deadline = time.monotonic() + self.patience
        while True:
            try:
                with self._lock:
                    if memory and self._lent:
                        raise _Lent
                    db.execute("BEGIN IMMEDIATE")
                    self._lent = self._lent or memory
                    break
            except sqlite3.Error as error:
                if not _busy(error) or time.monotonic() > deadline:
                    if not memory:
                        db.raw.close()
                    raise (self._locked() if _busy(error) else self._fault(error)) from error
            await asyncio.sleep(random.uniform(0.001, 0.02))
        guard = Guard(db, self._fault)
        try:
            try:
                with guard:
                    yield guard  # what the tool raises stays the tool's
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise
            try:
                db.execute("COMMIT")
            except sqlite3.Error as error:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise self._fault(error) from error
        finally:
            if memory:
                self._lent = False
            else:
                db.raw.close()

    async def vacuum(self) -> None:
        """See `Database.vacuum`."""
        await self.write(lambda db: None, durable=True)
        deadline = time.monotonic() + self.patience
        while True:
            try:
                with self._lock:
                    if self._lent:
                        raise _Lent
                    self._db.execute("VACUUM")
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                    return
            except sqlite3.Error as error:
                if not _busy(error) or time.monotonic() > deadline:
                    raise (self._locked() if _busy(error) else self._fault(error)) from error
            await asyncio.sleep(random.uniform(0.001, 0.02))

    async def close(self) -> None:
        """See `Database.close`."""
        with self._lock:
            self._raw.close()

    def _once(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        db = self._db
        execute = db.execute
        with self._lock:
            if self._lent:
                raise _Lent
            if durable:
                execute("PRAGMA synchronous=FULL")
            try:
                execute("BEGIN IMMEDIATE")
                try:
                    result = work(db)
                    execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        execute("ROLLBACK")
                    raise
            finally:
                if durable:
                    execute("PRAGMA synchronous=NORMAL")
            return result

    def _look(self, work: Callable[[Connection], T]) -> T:
        try:
            db = self._open()
            try:
                self._patiently(lambda: db.execute("BEGIN"))
                return work(db)
            finally:
                db.raw.close()
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def _open(self) -> SqliteConnection:
        return SqliteConnection(
            sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=0, cached_statements=256)
        )

    def _fault(self, error: sqlite3.Error) -> StoreError:
        if "decode to UTF-8" in str(error) or getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT:
            return CorruptStore(f"`{self.name}` is damaged: {error}; `tropa trail verify` says where")
        return StoreError(f"the journal `{self.name}` could not be used: {error}; nothing of this step was written")

    def _locked(self) -> StoreError:
        return StoreError(
            f"the journal `{self.name}` was locked by another process for {self.patience:g} s;"
            " nothing of this step was written, resume the thread later"
        )

    def _patiently(self, work: Callable[[], object]) -> None:
        """Run `work`, waiting for other processes that set up the same new file."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                work()
                return
            except sqlite3.OperationalError as error:
                if not _busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0.005, 0.03))

    def _prepare(self) -> None:
        steps = scripts("sqlite")
        used = self._tables()  # before the mark: another process creates both in one transaction
        application, version = self._pragma("application_id"), self._pragma("user_version")
        if application == _APPLICATION and version > len(steps):
            raise StoreTooNew(
                f"`{self.name}` has schema {version}, this Tropa knows up to {len(steps)}; upgrade Tropa to open it"
            )
        if application != _APPLICATION and used:
            raise StoreError(f"`{self.name}` is a SQLite file of something else; give another --store")
        self._db.execute("PRAGMA journal_mode=WAL").fetchall()
        self._db.execute("PRAGMA synchronous=NORMAL")
        # Moving the log into the file costs a sync of its own: every 16 MB instead of every 4.
        self._db.execute("PRAGMA wal_autocheckpoint=4000").fetchall()
        if application != _APPLICATION or version < len(steps):
            self._once(lambda db: self._migrate(db, steps), durable=True)

    def _migrate(self, db: Connection, steps: Sequence[Sequence[str]]) -> None:
        """Bring the file to the newest schema; another process may have been faster."""
        for statements in steps[self._pragma("user_version") :]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA application_id={_APPLICATION}")
        db.execute(f"PRAGMA user_version={len(steps)}")

    def _pragma(self, name: str) -> int:
        row = self._db.execute(f"PRAGMA {name}").fetchone()
        return 0 if row is None else row[0]

    def _tables(self) -> bool:
        return self._db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,)


class _Lent(sqlite3.OperationalError):
    """The in-memory store has one connection, and a transaction has it now: wait, as for another writer of a file."""

    sqlite_errorcode = sqlite3.SQLITE_BUSY


def _busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
