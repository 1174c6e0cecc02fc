"""The journal on Postgres: one store for many machines."""

from tropa.journal.postgres.journal import PostgresJournal

__all__ = ["PostgresJournal"]
