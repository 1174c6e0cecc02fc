"""A worker: takes threads from the queue and goes on with them by the journal's crash table."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from tropa.agent import Agent
from tropa.errors import Conflict, StoreError, ThreadNotFound, UsageError
from tropa.fleet.queue import QUEUE, TASK, Queue, decode
from tropa.journal.lease import dead
from tropa.session import Run
from tropa.store import Store

if TYPE_CHECKING:
    from procrastinate.retry import BaseRetryStrategy

HEARTBEAT = 3.0
"""Seconds of silence after which a worker's threads are given to others."""
GRACE = 30.0
"""Seconds that a worker which shuts down gives a step to end."""
_RETRY = 1
_LOOK = 2.0


class Worker:
    """Works on threads of `store` whose agent it knows, `concurrency` of them at once, until `stop` is called.

    `watch` is called with each run as it is given back. Several agents are told apart by their names in the journal.
    """

    def __init__(
        self,
        store: Store,
        queue: Queue,
        agents: Sequence[Agent],
        *,
        concurrency: int = 4,
        heartbeat: float = HEARTBEAT,
        grace: float = GRACE,
        watch: Callable[[Run], None] | None = None,
    ) -> None:
        self.store = store
        self.queue = queue
        self.agents: Mapping[str, Agent] = {agent.name: agent for agent in agents}
        self.concurrency = concurrency
        self.heartbeat = heartbeat
        self.grace = grace
        self.watch = watch
        self._leaving = False
        self._work: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Work until `stop`. Raises `UsageError` when no agent was given."""
        if not self.agents:
            raise UsageError("a worker needs at least one agent: `--agent mod:name`")
        app = self.queue.app
        app.task(name=TASK, queue=QUEUE, retry=self._retry())(self._go_on)
        look = asyncio.create_task(self._look_after())
        self._work = asyncio.create_task(
            app.run_worker_async(
                queues=[QUEUE],
                name="tropa",
                concurrency=self.concurrency,
                fetch_job_polling_interval=1.0,
                update_heartbeat_interval=self.heartbeat / 3,
                stalled_worker_timeout=self.heartbeat,
                shutdown_graceful_timeout=self.grace,
                delete_jobs="successful",
                install_signal_handlers=False,
            )
        )
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await self._work
        finally:
            look.cancel()

    def stop(self) -> None:
        """Take no new thread, park the ones at hand after their step, and end."""
        self._leaving = True
        if self._work is not None:
            self._work.cancel()

    async def _go_on(self, thread: str) -> None:
        name = decode(thread)
        agent = self.agents.get(await _agent_of(self.store, name))
        if agent is None:
            raise Conflict(f"this worker does not know the agent of thread {name!r}; another may")
        run = await agent.resume(name, store=self.store, leave=lambda: self._leaving)
        if self.watch is not None:
            self.watch(run)

    async def _look_after(self) -> None:
        """Give away the jobs of silent workers, and find threads that have work but no job."""
        while True:
            try:
                await self.queue.take_over(self.heartbeat)
                for thread in await forgotten(self.store, self.queue):
                    await self.queue.put(thread)
            except StoreError:
                pass  # the database will be back, or the worker itself ends on it
            await asyncio.sleep(_LOOK)

    def _retry(self) -> BaseRetryStrategy:
        from procrastinate import RetryStrategy  # noqa: PLC0415

        return RetryStrategy(wait=_RETRY, retry_exceptions={Conflict, StoreError})


async def forgotten(store: Store, queue: Queue) -> list[str]:
    """Threads that could go on and have no job: their worker died, or a decision came when no one listened."""
    now = time.time()
    left = [
        head.thread
        for head in await store.threads(limit=1000, status="running")
        if head.owner is None or head.lease < now or dead(head.owner)
    ]
    parked = {head.thread for head in await store.threads(limit=10_000, status="waiting")}
    parked -= {row.thread for row in await store.journal.pending()}
    queued = {*await queue.waiting(), *await queue.doing()}
    return [thread for thread in (*left, *sorted(parked)) if thread not in queued]


async def _agent_of(store: Store, thread: str) -> str:
    head = await store.journal.head(thread)
    async for entry in store.journal.events(thread, after=head.run - 1, until=head.run):
        return cast("str", entry.body["name"])
    raise ThreadNotFound(f"thread {thread!r} has no run in this store")
