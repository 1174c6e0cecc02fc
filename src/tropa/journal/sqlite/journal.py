"""The journal on SQLite."""

from __future__ import annotations

from pathlib import Path

from tropa.journal.journal import DatabaseJournal
from tropa.journal.sqlite.database import SqliteDatabase


class SqliteJournal(DatabaseJournal):
    """A `Journal` in the file `path`, created where it is missing; `":memory:"` keeps it in this process.

    `patience` is how many seconds an append waits for other writers of the file.

    Raises:
        StoreTooNew: a newer Tropa wrote the file.
        StoreError: the file cannot be opened or is no journal.
    """

    def __init__(self, path: str | Path, *, patience: float = 60.0) -> None:
        self.path = str(path)
        super().__init__(SqliteDatabase(self.path, patience))
