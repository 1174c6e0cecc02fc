"""The edge to a database: one connection inside a transaction, and what runs work on it.

Statements are written once, for SQLite and Postgres alike, with `?` for values; what differs between the two is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Rows(Protocol):
    """The outcome of a statement."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, if there is one."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        ...


class Connection(Protocol):
    """A connection inside a transaction. `lock` is what a `SELECT` says to keep its row until the end."""

    lock: str

    def execute(self, sql: str, given: Sequence[object] = (), /) -> Rows:
        """Run one statement."""
        ...

    def update(self, sql: str, given: Sequence[object], /) -> int:
        """Run one statement that changes rows, and say how many it changed."""
        ...

    def many(self, sql: str, rows: Sequence[Sequence[object]], /) -> object:
        """Run one statement for each row of values."""
        ...

    def alone(self) -> None:
        """Keep out, until the end of this transaction, whoever stores texts, forks or forgets."""
        ...

    def contains(self, column: str) -> str:
        """The condition that the text in `column` contains the value `?`."""
        ...

    def micros(self) -> int:
        """The store's clock: microseconds since 1970. On a server it is the server's, the same for all machines."""
        ...


class Lent(Protocol):
    """A transaction that somebody else's code takes part in."""

    @property
    def raw(self) -> object:
        """The driver's own connection, which that code may use."""
        ...

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run the journal's own part on the same connection."""
        ...


class Database(Protocol):
    """Runs work in transactions. `name` is for people and carries no password."""

    name: str

    async def write(
        self,
        work: Callable[[Connection], T],
        *,
        durable: bool = False,
        confirm: Callable[[Connection], T | None] | None = None,
    ) -> T:
        """Run `work` in one transaction, whole or not at all; it may run again after a conflict with other writers.

        Where a connection breaks so that nobody knows whether the transaction was committed, `confirm` looks, and gives
        the result when it was.

        Raises `StoreError` when the store cannot be written in time.
        """
        ...

    async def read(self, work: Callable[[Connection], T], *, snapshot: bool = False) -> T:
        """Run `work`, which only reads; with `snapshot` on one unchanging view, however long it takes."""
        ...

    def lend(self, confirm: Callable[[Connection], object | None]) -> AbstractAsyncContextManager[Lent]:
        """A durable transaction on a connection of its own, committed at the end and rolled back on an exception."""
        ...

    async def vacuum(self) -> None:
        """Give the room of deleted rows back."""
        ...

    async def close(self) -> None:
        """Let go of the connections; harmless when called twice."""
        ...
