"""A worker: takes threads from the queue and goes on with them by the journal's crash table."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tropa.agent import Agent
from tropa.errors import Conflict, StoreError, ThreadNotFound, UsageError
from tropa.fleet.queue import TASK, Queue, connect_queue, decode, queue_of
from tropa.session import Run
from tropa.store import Store

if TYPE_CHECKING:
    from procrastinate import JobContext

HEARTBEAT: Final = 3.0
"""Seconds of silence after which a worker's threads are given to others."""
LOOK: Final = 2.0
"""Seconds between looks for threads that were left, of the fleet as a whole: each worker looks the rarer, the more
there are."""
_PAUSE: Final = 1.0
_LATER: Final = 30
"""Seconds until a thread is tried again whose journal could not be used."""
_log = logging.getLogger("tropa.fleet")


class Worker:
    """Works on threads of `store` whose agent it knows, `concurrency` of them at once, until `stop` is called.

    `watch` is called with each run as it is given back. Agents are told apart by their names in the journal. Threads of
    other agents are left to workers that know them. While the database is gone the worker waits for it.

    Raises `UsageError` when no agent was given, or two of the same name.
    """

    def __init__(
        self,
        store: Store,
        queue: Queue,
        agents: Sequence[Agent],
        *,
        concurrency: int = 4,
        heartbeat: float = HEARTBEAT,
        watch: Callable[[Run], None] | None = None,
    ) -> None:
        self.store = store
        self.queue = queue
        self.agents: Mapping[str, Agent] = {agent.name: agent for agent in agents}
        if not agents:
            raise UsageError("a worker needs at least one agent: `--agent MODULE:NAME`")
        if len(self.agents) < len(agents):
            raise UsageError("two agents of this worker have the same name; threads tell their agents apart by it")
        self.concurrency = concurrency
        self.heartbeat = heartbeat
        self.watch = watch
        self._leaving = False
        self._silent: set[int] = set()
        self._work: asyncio.Task[None] | None = None
        connect_queue(store, queue)

    async def run(self) -> None:
        """Work until `stop`; returns when every run is parked or over. Being cancelled is being stopped."""
        self.queue.app.task(name=TASK, pass_context=True)(self._go_on)
        look = asyncio.create_task(self._look_after())
        try:
            while not self._leaving:
                self._work = asyncio.create_task(self._serve())
                try:
                    await asyncio.wait([self._work])
                except asyncio.CancelledError:
                    self.stop()
                    await asyncio.wait([self._work])
                    raise
                if not self._leaving:
                    await asyncio.sleep(_PAUSE)
        finally:
            look.cancel()
            await asyncio.wait([look])

    def stop(self) -> None:
        """Take no new thread, park the ones at hand after their step, and end."""
        self._leaving = True
        if self._work is not None:
            self._work.cancel()

    async def _serve(self) -> None:
        """Take jobs until `stop`, or until the database is lost: Procrastinate's worker ends then."""
        try:
            with contextlib.suppress(asyncio.CancelledError), self.queue.words():
                await self.queue.app.run_worker_async(
                    queues=[queue_of(name) for name in self.agents],
                    name="tropa",
                    concurrency=self.concurrency,
                    fetch_job_polling_interval=LOOK,
                    update_heartbeat_interval=self.heartbeat / 3,
                    stalled_worker_timeout=20 * self.heartbeat,
                    delete_jobs="always",
                    install_signal_handlers=False,
                )
        except StoreError as error:
            _log.warning("%s; trying again", error)

    async def _go_on(self, context: JobContext, thread: str, agent: str) -> None:
        name, worker = decode(thread), context.job.worker_id
        try:
            # A job may be late: a run that was cancelled meanwhile, or failed, is not started again.
            if (await self.store.journal.head(name)).status not in {"running", "waiting"}:
                return
            run = await self.agents[decode(agent)].resume(
                name, store=self.store, leave=lambda: self._leaving or worker in self._silent
            )
            await self._put_back(run, decode(agent))
        except (Conflict, ThreadNotFound):
            return  # another holds it, or it was deleted; if that other dies, the thread is found as left
        except StoreError as error:
            _log.warning("thread %r is tried again later: %s", name, error)
            with contextlib.suppress(StoreError):
                await self.queue.put(name, decode(agent), after=_LATER)
            return
        except Exception:
            _log.exception("thread %r failed", name)
            run = await self.store.run(name)
        if self.watch is not None:
            self.watch(run)

    async def _put_back(self, run: Run, agent: str) -> None:
        """Hand on a run that was parked; wake up again when what it waits for expires."""
        if run.status != "waiting":
            return
        if not run.pending:
            await self.queue.put(run.thread, agent)
        elif (expires := run.pending[0].expires) is not None:
            await self.queue.put(run.thread, agent, max(_PAUSE, expires - time.time()), aside=True)

    async def _look_after(self) -> None:
        """Give away the jobs of silent workers, and find threads that have work but no job."""
        while True:
            fleet = 1
            try:
                workers = await self.queue.workers()
                # If one is this worker itself, its heart stopped (the database was gone): it parks what it has.
                self._silent = {row.id for row in workers if row.silent > self.heartbeat}
                fleet = max(1, len(workers) - len(self._silent))
                await self.queue.take_over(self.heartbeat)
                for thread in await self.queue.left():
                    if self.store.wake is not None:
                        await self.store.wake(thread)
            except StoreError:
                pass  # the database will be back
            await asyncio.sleep(LOOK * fleet * random.uniform(0.5, 1.5))
