"""The queue: Procrastinate's tables in the journal's own database.

A job says only "go on with this thread"; all that matters is in the journal. So a job that is lost, doubled or late does no
harm: workers look for threads without one, and the claim on the thread keeps a second worker out.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from tropa.errors import MissingExtra, StoreError, ThreadNotFound, UsageError
from tropa.fleet.left import LEFT
from tropa.store import Store

if TYPE_CHECKING:
    import procrastinate

TASK: Final = "tropa.go_on"
_TIMEOUT = 10
"""Seconds after which a silent connection counts as lost."""
_MAKING: Final = 0x74726F72
"""The lock under which the tables are made: another worker may start at the same moment."""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker as others see it: when its heart last beat (seconds ago), and the threads it works on."""

    id: int
    silent: float
    threads: tuple[str, ...]


class Queue:
    """Jobs for workers, in the database that `url` names. `open` it before use; a job goes to workers that know its agent.

    Every method raises `StoreError` when the database cannot be used. Raises `UsageError` for a store that is no Postgres,
    `MissingExtra` when Procrastinate is not installed.
    """

    def __init__(self, url: str) -> None:
        if url.partition("://")[0] not in {"postgresql", "postgres"}:
            raise UsageError(
                "workers share a Postgres store, and this is none: use --store postgresql://USER@HOST/DATABASE"
            )
        try:
            import procrastinate  # noqa: PLC0415
            import psycopg  # noqa: PLC0415
            from procrastinate import exceptions  # noqa: PLC0415
        except ImportError:
            raise MissingExtra("workers on many machines need: pip install 'tropa[postgres]'") from None
        self._errors = (exceptions.ConnectorException, psycopg.Error)
        self._doubled = exceptions.AlreadyEnqueued
        keys: dict[str, Any] = {
            "connect_timeout": _TIMEOUT,
            "keepalives_idle": _TIMEOUT,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 1000 * _TIMEOUT,
        }
        self._connector = procrastinate.PsycopgConnector(
            conninfo=url, kwargs=keys, min_size=1, max_size=4, timeout=_TIMEOUT
        )
        self.app: procrastinate.App = procrastinate.App(connector=self._connector)

    async def open(self) -> None:
        """Connect, and make the tables where they are missing."""
        with self.words():
            await self.app.open_async()
            if await self.made():
                return
            pool = self._connector.pool
            async with pool.connection() as db, db.transaction():
                await db.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
                if not await self.made():
                    # As Procrastinate's own `apply_schema` does, but within the lock's transaction.
                    await db.execute(cast("Any", self.app.schema_manager.get_schema().encode()))

    async def close(self) -> None:
        """Let go of the connections."""
        await self.app.close_async()

    async def made(self) -> bool:
        """Whether the tables are there: whether any worker was ever started on this store."""
        found = await self._rows("SELECT to_regclass('procrastinate_workers') IS NOT NULL AS made")
        return bool(found[0]["made"])

    async def put(self, thread: str, agent: str, after: float = 0.0, *, aside: bool = False) -> None:
        """Let a worker that knows `agent` go on with `thread`, in `after` seconds; nothing when a job for it waits.

        With `aside` the job is a reminder, which does not stand in the way of the thread's other jobs.
        """
        lock = lock_of(thread)
        job = self.app.configure_task(
            TASK,
            queue=queue_of(agent),
            lock=None if aside else lock,
            queueing_lock=f"{lock} reminder" if aside else lock,
            schedule_at=datetime.now(UTC) + timedelta(seconds=after) if after else None,
            allow_unknown=True,
        )
        with self.words(), contextlib.suppress(self._doubled):
            await job.defer_async(thread=encode(thread), agent=encode(agent))

    async def waiting(self) -> dict[str, int]:
        """How many threads no worker has taken yet, by the names of their agents."""
        found = await self._rows(
            "SELECT args->>'agent' AS agent, count(*) AS jobs FROM procrastinate_jobs"
            " WHERE task_name = %(task)s AND status = 'todo' AND lock IS NOT NULL GROUP BY 1 ORDER BY 2 DESC",
            task=TASK,
        )
        return {decode(row["agent"]): row["jobs"] for row in found}

    async def workers(self) -> list[WorkerRow]:
        """The workers there are, the one heard of last first."""
        found = await self._rows(
            "SELECT w.id, extract(epoch FROM now() - w.last_heartbeat)::float AS silent,"
            " array_remove(array_agg(j.args->>'thread' ORDER BY j.id), NULL) AS threads FROM procrastinate_workers w"
            " LEFT JOIN procrastinate_jobs j ON j.worker_id = w.id AND j.status = 'doing' AND j.task_name = %(task)s"
            " GROUP BY w.id ORDER BY w.last_heartbeat DESC",
            task=TASK,
        )
        return [WorkerRow(row["id"], row["silent"], tuple(decode(one) for one in row["threads"])) for row in found]

    async def take_over(self, silent: float) -> int:
        """Give the jobs of workers that were silent for `silent` seconds to others; returns how many."""
        from procrastinate import jobs  # noqa: PLC0415

        manager = self.app.job_manager
        with self.words():
            stalled = list(await manager.get_stalled_jobs(task_name=TASK, seconds_since_heartbeat=silent))
        taken = 0
        for job in stalled:
            await self.put(decode(str(job.task_kwargs["thread"])), decode(str(job.task_kwargs["agent"])))
            # Where another worker was faster, there is nothing to remove any more.
            with contextlib.suppress(StoreError), self.words():
                await manager.finish_job(job, status=jobs.Status.FAILED, delete_job=True)
                taken += 1
        return taken

    async def left(self) -> list[str]:
        """Threads that could go on and have no job: their worker died, or a decision came when no one listened."""
        return [row["id"].decode("utf-8", "surrogatepass") for row in await self._rows(LEFT, task=TASK)]

    async def _rows(self, query: str, **given: object) -> list[dict[str, Any]]:
        with self.words():
            return await self._connector.execute_query_all_async(cast("Any", query), **given)

    @contextlib.contextmanager
    def words(self) -> Generator[None]:
        """Turn the drivers' errors into `StoreError`."""
        try:
            yield
        except self._errors as error:
            said = " ".join(str(error.__cause__ or error).split())
            raise StoreError(f"the queue's database cannot be used: {said}") from error


async def agent_of(store: Store, thread: str) -> str:
    """The name of the agent of a thread's latest run. Raises `ThreadNotFound`."""
    head = await store.journal.head(thread)
    async for entry in store.journal.events(thread, after=head.run - 1, until=head.run):
        return cast("str", entry.body["name"])
    raise ThreadNotFound(f"there is no thread {thread!r:.200} with a run in this store")


def connect_queue(store: Store, queue: Queue) -> None:
    """Let every decision taken through `store` wake its thread on a worker."""

    async def wake(thread: str) -> None:
        await queue.put(thread, await agent_of(store, thread))

    store.wake = wake


def queue_of(agent: str) -> str:
    """The queue of an agent: short, as Postgres limits the names of what one can listen to."""
    return f"tropa-{hashlib.sha256(agent.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def lock_of(thread: str) -> str:
    """The lock of a thread: short, as a thread's id may be long. `LEFT` computes the same."""
    return hashlib.sha256(thread.encode("utf-8", "surrogatepass")).hexdigest()


def encode(text: str) -> str:
    """Any text as the queue's JSON carries it: plain ASCII, so that NUL and lone surrogates pass."""
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode()


def decode(name: str) -> str:
    """The text behind `encode`."""
    return base64.urlsafe_b64decode(name).decode("utf-8", "surrogatepass")
