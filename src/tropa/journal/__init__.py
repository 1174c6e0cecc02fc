"""The journal: one append-only record per thread."""

from tropa.journal.lease import new_owner
from tropa.journal.protocol import Head, Journal, PendingRow, RunRow, claimable
from tropa.journal.sqlite import SqliteJournal

__all__ = ["Head", "Journal", "PendingRow", "RunRow", "SqliteJournal", "claimable", "new_owner"]
