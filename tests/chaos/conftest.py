"""The real Postgres that the journal's tests use."""

from tests.journal.conftest import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
