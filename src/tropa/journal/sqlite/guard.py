"""The journal's connection in the hands of a tool: it may write its own tables, and cannot end the transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from types import TracebackType

from tropa.errors import StoreError
from tropa.journal.connection import Connection, T

_WRITES = {
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_DROP_TABLE,
    sqlite3.SQLITE_ALTER_TABLE,
}


class Guard:
    """A `Lent` transaction. Inside `with`, SQLite refuses what a tool must not do; the journal's own part is let through."""

    def __init__(self, db: Connection, fault: Callable[[sqlite3.Error], StoreError]) -> None:
        self._db = db
        self._fault = fault
        self.raw: sqlite3.Connection = db.raw  # type: ignore[attr-defined]

    async def run(self, work: Callable[[Connection], T]) -> T:
        """See `Lent.run`."""
        self.raw.set_authorizer(None)
        try:
            return work(self._db)
        except sqlite3.Error as error:
            raise self._fault(error) from error
        finally:
            self.raw.set_authorizer(_authorize)

    def __enter__(self) -> None:
        self.raw.set_authorizer(_authorize)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.raw.set_authorizer(None)


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action in {sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}:
        return sqlite3.SQLITE_DENY
    ours = any((name or "").lower().startswith("tropa_") for name in (first, second))
    return sqlite3.SQLITE_DENY if action in _WRITES and ours else sqlite3.SQLITE_OK
