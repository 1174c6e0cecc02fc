"""The journal on one SQLite file: the embedded default. Many processes may use the file at once."""

from tropa.journal.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
