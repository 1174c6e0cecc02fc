"""The journal: one append-only record per thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tropa.journal.lease import new_owner
from tropa.journal.protocol import Head, Journal, PendingRow, RunRow, Transaction, claimable
from tropa.journal.sqlite import SqliteJournal

if TYPE_CHECKING:
    from tropa.journal.postgres import PostgresJournal

__all__ = [
    "Head",
    "Journal",
    "PendingRow",
    "PostgresJournal",
    "RunRow",
    "SqliteJournal",
    "Transaction",
    "claimable",
    "new_owner",
]


def __getattr__(name: str) -> object:
    """Load the journal on Postgres, with its pool of threads, on first use."""
    if name != "PostgresJournal":
        raise AttributeError(f"module 'tropa.journal' has no attribute {name!r}")
    from tropa.journal.postgres import PostgresJournal  # noqa: PLC0415

    return PostgresJournal
