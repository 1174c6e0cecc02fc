"""Transactions on Postgres: in threads of their own, each with one connection, so that the event loop never waits.

A lost connection is replaced within `patience`. Work is done again only when it certainly was not committed: where the
connection broke while the commit was on its way, the store is asked first.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial

from tropa.errors import StoreError, StoreTooNew, UsageError
from tropa.journal.connection import Connection, T
from tropa.journal.postgres.answer import Answer
from tropa.journal.postgres.connecting import PostgresConnection, Server
from tropa.journal.schema import scripts

_AGAIN = {"40001", "40P01"}
"""Serialization failure and deadlock: nothing was committed, and a second try will do."""
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresDatabase:
    """A `Database` with at most `connections` connections for work, and one more for each lent transaction."""

    def __init__(self, url: str, patience: float, connections: int) -> None:
        self._server = Server(url, patience)
        import psycopg  # noqa: PLC0415

        self._psycopg = psycopg
        self.name = self._server.name
        self.patience = patience
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="tropa-postgres")
        self._own = threading.local()
        self._open: set[PostgresConnection] = set()
        self._closed = False
        try:
            self._threads.submit(self._prepare).result()
        except psycopg.Error as error:
            self._shut()
            words = self._server.words(error)
            raise StoreError(f"cannot open the journal at {self.name}: {words}; is the server running?") from None
        except BaseException:
            self._shut()
            raise

    async def write(
        self,
        work: Callable[[Connection], T],
        *,
        durable: bool = False,
        confirm: Callable[[Connection], T | None] | None = None,
    ) -> T:
        """See `Database.write`."""
        deadline, doubt = 0.0, False
        while True:
            try:
                asked = confirm if doubt else None
                return await self._in_thread(partial(self._once, work, asked, durable=durable))
            except _Lost as lost:
                doubt = doubt or lost.sent
                deadline = deadline or time.monotonic() + self.patience
                if time.monotonic() > deadline:
                    raise self._gone(lost, doubt=doubt) from None
            await asyncio.sleep(random.uniform(0.01, 0.2))

    async def read(self, work: Callable[[Connection], T], *, snapshot: bool = False) -> T:
        """See `Database.read`."""
        deadline = 0.0
        while True:
            try:
                return await self._in_thread(partial(self._look, work, snapshot=snapshot))
            except _Lost as lost:
                deadline = deadline or time.monotonic() + self.patience
                if time.monotonic() > deadline:
                    raise self._gone(lost, doubt=False) from None
            await asyncio.sleep(random.uniform(0.01, 0.2))

    @asynccontextmanager
    async def lend(self, confirm: Callable[[Connection], object | None]) -> AsyncGenerator[_Loan]:
        """See `Database.lend`."""
        loan = await self._begin_loan()
        try:
            try:
                yield loan  # what the tool raises stays the tool's
                await loan.run(lambda db: None)
            except BaseException:
                await self._in_thread(partial(self._roll_back, loan.db))
                raise
            try:
                await self._in_thread(partial(loan.db.execute, "COMMIT"))
            except self._psycopg.Error as error:
                if await self.write(confirm) is None:
                    words = self._server.words(error)
                    raise StoreError(f"the transaction on {self.name} broke and was rolled back: {words}") from None
        finally:
            await self._in_thread(loan.db.raw.close)

    async def vacuum(self) -> None:
        """See `Database.vacuum`."""

        def work() -> None:
            for table in ("threads", "events", "blobs", "runs", "pending", "fields"):
                self._connection().execute(f"VACUUM (ANALYZE) tropa_{table}")

        await self._in_thread(work)

    async def close(self) -> None:
        """See `Database.close`."""
        self._shut()

    def _shut(self) -> None:
        self._closed = True
        self._threads.shutdown(wait=True)
        for db in self._open:
            db.raw.close()
        self._open.clear()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread with a connection. Whoever is cancelled meanwhile still waits for its outcome."""
        if self._closed:
            raise StoreError(f"the journal at {self.name} is closed")
        answer: Answer[T] = Answer()
        self._threads.submit(answer.work_out, work)
        return await answer.wait()

    def _connection(self) -> PostgresConnection:
        """This thread's connection, opened where there is none or where it broke."""
        db: PostgresConnection | None = getattr(self._own, "db", None)
        if db is not None and not db.raw.closed:
            return db
        if db is not None:
            self._open.discard(db)
        self._own.db = db = self._server.connect()
        self._open.add(db)
        return db

    def _once(
        self, work: Callable[[Connection], T], confirm: Callable[[Connection], T | None] | None, *, durable: bool
    ) -> T:
        sent = False
        try:
            db = self._connection()
            try:
                with db.raw.pipeline():  # what needs no answer travels together: two round trips for an append
                    db.execute("BEGIN")
                    if durable:
                        db.execute("SET LOCAL synchronous_commit = on")
                    result = None if confirm is None else confirm(db)
                    if result is None:
                        result = work(db)
                    sent = True
                    db.execute("COMMIT")
                return result
            except BaseException:
                self._roll_back(db)
                raise
        except self._psycopg.Error as error:
            raise self._lost_or_fault(error, sent=sent) from error

    def _look(self, work: Callable[[Connection], T], *, snapshot: bool) -> T:
        try:
            db = self._connection()
            if not snapshot:
                return work(db)
            try:
                db.execute(_SNAPSHOT)
                return work(db)
            finally:
                self._roll_back(db)
        except self._psycopg.Error as error:
            raise self._lost_or_fault(error, sent=False) from error

    def _roll_back(self, db: PostgresConnection) -> None:
        with contextlib.suppress(self._psycopg.Error):
            if not db.raw.closed and db.raw.info.transaction_status:
                db.execute("ROLLBACK")

    def _lost_or_fault(self, error: Exception, *, sent: bool) -> Exception:
        state = getattr(error, "sqlstate", None)
        if state in _AGAIN:
            return _Lost(self._server.words(error), sent=False)
        broken = isinstance(error, (self._psycopg.OperationalError, self._psycopg.InterfaceError))
        if broken and (state is None or state[:2] in {"08", "57"}):
            self._drop()
            return _Lost(self._server.words(error), sent=sent)
        return self._fault(error)

    def _drop(self) -> None:
        db: PostgresConnection | None = getattr(self._own, "db", None)
        if db is not None:
            self._open.discard(db)
            db.raw.close()
            self._own.db = None

    def _fault(self, error: Exception) -> StoreError:
        if getattr(error, "sqlstate", None) == "55P03":
            return StoreError(
                f"the thread was locked by another writer of {self.name} for {self.patience:g} s;"
                " nothing of this step was written, resume it later"
            )
        words = self._server.words(error)
        return StoreError(f"the journal at {self.name} could not be used: {words}; nothing of this step was written")

    def _gone(self, lost: _Lost, *, doubt: bool) -> StoreError:
        known = "whether this step was stored is not known yet" if doubt else "nothing of this step was written"
        return StoreError(
            f"the server of {self.name} was gone for {self.patience:g} s ({lost}); {known};"
            " resume the thread when it is back: it goes on from what is stored"
        )

    async def _begin_loan(self) -> _Loan:
        def begin() -> _Loan:
            db = self._server.connect()
            db.execute("BEGIN")
            db.execute("SET LOCAL synchronous_commit = on")
            return _Loan(self, db)

        deadline = time.monotonic() + self.patience
        while True:
            try:
                return await self._in_thread(begin)
            except self._psycopg.Error as error:
                if time.monotonic() > deadline:
                    raise self._fault(error) from None
            await asyncio.sleep(random.uniform(0.01, 0.2))

    async def in_loan(self, work: Callable[[], T]) -> T:
        """Run the journal's part of a lent transaction."""
        try:
            return await self._in_thread(work)
        except self._psycopg.Error as error:
            raise self._fault(error) from None

    def _prepare(self) -> None:
        db = self._connection()
        steps = scripts("postgres")
        db.execute("BEGIN")
        try:
            db.execute("SELECT pg_advisory_xact_lock(?)", (0x74726F71,)).fetchall()
            db.execute("CREATE TABLE IF NOT EXISTS tropa_schema (version INTEGER NOT NULL)")
            row = db.execute("SELECT max(version) FROM tropa_schema").fetchone()
            version: int = 0 if row is None or row[0] is None else row[0]
            if version > len(steps):
                raise StoreTooNew(
                    f"{self.name} has schema {version}, this Tropa knows up to {len(steps)}; upgrade Tropa to open it"
                )
            for number, statements in enumerate(steps[version:], version + 1):
                for statement in statements:
                    db.execute(statement)
                db.execute("INSERT INTO tropa_schema VALUES (?)", (number,))
            db.execute("COMMIT")
        except BaseException:
            self._roll_back(db)
            raise


class _Lost(Exception):
    """The connection is gone, or the server chose this transaction to give way."""

    def __init__(self, words: str, *, sent: bool) -> None:
        super().__init__(words)
        self.sent = sent


class _Loan:
    """A `Lent` transaction on a connection of its own."""

    def __init__(self, owner: PostgresDatabase, db: PostgresConnection) -> None:
        self._owner = owner
        self.db = db
        self.raw = db.raw
        self._number = db.execute("SELECT pg_current_xact_id()::text").fetchone()

    async def run(self, work: Callable[[Connection], T]) -> T:
        """See `Lent.run`. Raises `StoreError` when the connection broke: then all was rolled back."""
        return await self._owner.in_loan(lambda: self._part(work))

    def check(self) -> None:
        """Refuse a transaction that the tool ended itself. Raises `UsageError`."""
        if self.db.execute("SELECT pg_current_xact_id()::text").fetchone() != self._number:
            raise UsageError("a transactional tool ended the transaction itself; it must only use the connection")

    def _part(self, work: Callable[[Connection], T]) -> T:
        self.check()
        return work(self.db)
