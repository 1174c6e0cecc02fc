"""The journal: one append-only record per thread."""

from tropa.journal.lease import new_owner
from tropa.journal.postgres import PostgresJournal
from tropa.journal.protocol import Head, Journal, PendingRow, RunRow, Transaction, claimable
from tropa.journal.sqlite import SqliteJournal

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
