"""Finding the driver and the server, and saying what went wrong without giving a password away."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from tropa.errors import MissingExtra, UsageError
from tropa.journal.connection import Rows

if TYPE_CHECKING:
    import psycopg

    Raw = psycopg.Connection[tuple[Any, ...]]

_CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_CLOCK_HOLDS = 60.0
"""Seconds for which a comparison of the two clocks is relied upon."""
_RETENTION = 0x74726F70
"""The advisory lock of those who move or remove rows."""


class PostgresConnection:
    """A `Connection` on psycopg."""

    lock = " FOR UPDATE"

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self._translated: dict[str, str] = {}
        self._ahead = 0
        self._compared = float("-inf")

    def execute(self, sql: str, given: Sequence[object] = ()) -> Rows:
        """See `Connection.execute`."""
        return cast("Rows", self.raw.execute(self._words(sql), given or None))  # type: ignore[arg-type]

    def update(self, sql: str, given: Sequence[object], /) -> int:
        """See `Connection.update`. In a pipeline only rows that are fetched are waited for."""
        return len(self.execute(f"{sql} RETURNING 1", given).fetchall())

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """See `Connection.many`. The rows leave in one go where the caller is in a pipeline."""
        words = self._words(sql)
        for row in rows:
            self.raw.execute(words, row)  # type: ignore[arg-type]

    def alone(self) -> None:
        """See `Connection.alone`."""
        self.execute(f"SELECT pg_advisory_xact_lock({_RETENTION})").fetchall()
        self.execute("LOCK TABLE tropa_blobs IN SHARE ROW EXCLUSIVE MODE")

    def contains(self, column: str) -> str:
        """See `Connection.contains`."""
        return f"strpos({column}, ?) > 0"

    def micros(self) -> int:
        """The server's clock, by its distance from this machine's, measured anew each minute."""
        now = time.monotonic()
        if now - self._compared > _CLOCK_HOLDS:
            before = time.time_ns() // 1000
            (server,) = cast("tuple[int]", self.execute(_CLOCK).fetchone())
            self._ahead = server - (before + time.time_ns() // 1000) // 2
            self._compared = now
        return time.time_ns() // 1000 + self._ahead

    def _words(self, sql: str) -> str:
        words = self._translated.get(sql)
        if words is None:
            words = self._translated[sql] = sql.replace("%", "%%").replace("?", "%s")
        return words


class Server:
    """Where the store is. `name` is for people: the address without the password."""

    def __init__(self, url: str, patience: float) -> None:
        try:
            import psycopg  # noqa: PLC0415
            from psycopg import conninfo  # noqa: PLC0415
        except ImportError:
            raise MissingExtra("a store on Postgres needs: pip install 'tropa[postgres]'") from None
        try:
            parts = conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            # The driver's words may quote the password.
            raise UsageError(
                "the address of the Postgres store cannot be read; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE,"
                " with special characters in the password written as %XX"
            ) from None
        self._psycopg = psycopg
        self._secret = str(parts.get("password") or "")
        self._parts = {"connect_timeout": 10, "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
        self._parts["tcp_user_timeout"] = 30_000  # milliseconds until an unanswered write counts as a lost connection
        self._parts |= {key: value for key, value in parts.items() if value is not None}  # type: ignore[assignment]
        self._patience = patience
        user, host, port = parts.get("user"), parts.get("host"), parts.get("port")
        place = f"{f'{user}@' if user else ''}{host or 'localhost'}{f':{port}' if port else ''}"
        self.name = f"postgresql://{place}/{parts.get('dbname') or ''}"

    def connect(self) -> PostgresConnection:
        """A new connection. Raises `psycopg.OperationalError`."""
        raw = self._psycopg.connect(**self._parts, autocommit=True)  # type: ignore[arg-type]
        db = PostgresConnection(raw)
        db.execute("SET synchronous_commit = off")  # what must be on disk says so: see `Database.write`
        db.execute(f"SET lock_timeout = {max(1, int(self._patience * 1000))}")
        return db

    def words(self, error: BaseException) -> str:
        """What a driver's error says, in one line and without the password."""
        text = " ".join(str(error).split())
        return text.replace(self._secret, "•••") if self._secret else text
