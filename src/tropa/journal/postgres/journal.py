"""The journal on Postgres."""

from __future__ import annotations

from tropa.journal.journal import DatabaseJournal
from tropa.journal.postgres.database import PostgresDatabase


class PostgresJournal(DatabaseJournal):
    """A `Journal` in the database that `url` names (`postgresql://user@host/database`); its tables begin with `tropa_`.

    `patience` is how many seconds an append waits for the server or for other writers of its thread; `connections` is
    how many are held at most.

    Raises:
        MissingExtra: `psycopg` is not installed.
        StoreTooNew: a newer Tropa wrote the tables.
        StoreError: the database cannot be reached.
    """

    def __init__(self, url: str, *, patience: float = 60.0, connections: int = 4) -> None:
        super().__init__(PostgresDatabase(url, patience, connections))
