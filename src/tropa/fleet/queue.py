"""The queue: Procrastinate's tables in the journal's own database.

A job says only "go on with this thread"; all that matters is in the journal. So a job that is lost, doubled or late does no
harm: workers look for threads without one, and the claim on the thread keeps a second worker out.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tropa.errors import MissingExtra, StoreError

if TYPE_CHECKING:
    import procrastinate
    from procrastinate.jobs import Job

TASK = "tropa.go_on"
QUEUE = "tropa"


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker as others see it: when its heart last beat (seconds ago), and the threads it works on."""

    id: int
    silent: float
    threads: tuple[str, ...]


class Queue:
    """Jobs for workers, in the database that `url` names. `open` it before use.

    Raises `MissingExtra` when Procrastinate is not installed.
    """

    def __init__(self, url: str) -> None:
        try:
            import procrastinate  # noqa: PLC0415
            from procrastinate import exceptions  # noqa: PLC0415
        except ImportError:
            raise MissingExtra("workers on many machines need: pip install 'tropa[postgres]'") from None
        self._errors = exceptions
        self._connector = procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=4)
        self.app: procrastinate.App = procrastinate.App(connector=self._connector)

    async def open(self) -> None:
        """Connect, and make the tables where they are missing. Raises `StoreError` when the database is not reached."""
        try:
            await self.app.open_async()
            if not await self._made():
                try:
                    await self.app.schema_manager.apply_schema_async()
                except self._errors.ConnectorException:
                    if not await self._made():  # another worker was faster, or it really failed
                        raise
        except self._errors.ConnectorException as error:
            raise StoreError(f"the queue's database cannot be used: {error}; is it the journal's Postgres?") from error

    async def close(self) -> None:
        """Let go of the connections."""
        await self.app.close_async()

    async def put(self, thread: str) -> None:
        """Let a worker go on with `thread`; nothing when a job for it waits already."""
        name = encode(thread)
        job = self.app.configure_task(TASK, queue=QUEUE, lock=name, queueing_lock=name, allow_unknown=True)
        try:
            await job.defer_async(thread=name)
        except self._errors.AlreadyEnqueued:
            return

    async def waiting(self) -> list[str]:
        """Threads whose job no worker has taken yet."""
        return [decode(str(job.task_kwargs["thread"])) for job in await self._jobs("todo")]

    async def doing(self) -> list[str]:
        """Threads whose job a worker has, alive or not."""
        return [decode(str(job.task_kwargs["thread"])) for job in await self._jobs("doing")]

    async def workers(self) -> list[WorkerRow]:
        """The workers there are, the one heard of last first."""
        rows = await self._connector.execute_query_all_async(
            "SELECT id, extract(epoch FROM now() - last_heartbeat)::float AS silent FROM procrastinate_workers"
            " ORDER BY last_heartbeat DESC"
        )
        mine: dict[int, list[str]] = {}
        for job in await self._jobs("doing"):
            if job.worker_id is not None:
                mine.setdefault(job.worker_id, []).append(decode(str(job.task_kwargs["thread"])))
        return [WorkerRow(row["id"], row["silent"], tuple(mine.get(row["id"], ()))) for row in rows]

    async def take_over(self, silent: float) -> int:
        """Give the jobs of workers that were silent for `silent` seconds to others; returns how many."""
        manager = self.app.job_manager
        stalled = list(await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=silent))
        now = datetime.now(UTC)
        for job in stalled:
            await manager.retry_job(job, retry_at=now)
        return len(stalled)

    async def _jobs(self, status: str) -> list[Job]:
        return list(await self.app.job_manager.list_jobs_async(queue=QUEUE, status=status))

    async def _made(self) -> bool:
        row = await self._connector.execute_query_one_async(
            "SELECT to_regclass('procrastinate_jobs') IS NOT NULL AS made"
        )
        return bool(row["made"])


def encode(thread: str) -> str:
    """A thread id as the queue carries it: plain ASCII, so that any text is an id."""
    return base64.urlsafe_b64encode(thread.encode("utf-8", "surrogatepass")).decode()


def decode(name: str) -> str:
    """The thread id behind `encode`."""
    return base64.urlsafe_b64decode(name).decode("utf-8", "surrogatepass")
