"""`tropa worker`: works on the threads of a Postgres store until it is told to stop."""

from __future__ import annotations

import asyncio
import json as jsonlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tropa.agent import Agent
from tropa.cli.agents import agent_named, project_agents
from tropa.cli.faults import DONE, INTERRUPTED
from tropa.cli.forms import run_form
from tropa.cli.plain import plain, shorten
from tropa.cli.stores import open_store, shown_url
from tropa.errors import UsageError
from tropa.fleet import Queue, Worker
from tropa.session import Run

GRACE: Final = 30.0
"""Seconds that a worker which was told to stop gives the steps at hand to end."""


def work(url: str, names: Sequence[str] | None, concurrency: int, *, json: bool) -> int:
    """Work until SIGTERM or SIGINT. Runs are parked after their step; a second signal ends the process at once."""
    agents = [agent_named(name) for name in names or project_agents(Path.cwd())]
    if not agents:
        raise UsageError("a worker needs to know agents: name them with --agent MODULE:NAME, once for each")
    for name in ("procrastinate", "psycopg", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the worker says itself what matters of it
    logging.basicConfig(level=logging.WARNING, format="tropa: %(message)s", stream=sys.stderr)
    return asyncio.run(_work(url, agents, concurrency, json=json))


async def _work(url: str, agents: Sequence[Agent], concurrency: int, *, json: bool) -> int:
    queue = Queue(url)
    store = open_store(url)

    def watch(run: Run) -> None:
        _write(jsonlib.dumps(run_form(run)) if json else run_line(run))

    try:
        await queue.open()
        worker = Worker(store, queue, agents, concurrency=concurrency, watch=watch)
        _listen(worker)
        known = ", ".join(plain(name, lines=False) for name in worker.agents)
        _say(f"working on {plain(shown_url(url), lines=False)}, {concurrency} threads at once, for: {known}")
        await worker.run()
    finally:
        await queue.close()
        await store.close()
        for agent in agents:
            await agent.close()
    return DONE


def run_line(run: Run) -> str:
    """One line for a run as it stands when it is given back."""
    thread = plain(run.thread, lines=False)
    if run.status == "waiting":
        waits = ", ".join(f"{one.id} {plain(one.tool, lines=False)}" for one in run.pending)
        return f"{thread}: waiting for {waits}" if waits else f"{thread}: parked"
    said = run.error or run.answer or ""
    stop = "" if run.stop in {None, "answered"} else f" ({run.stop})"
    return f"{thread}: {run.status}{stop}: {shorten(plain(said, lines=False), 120)}"


def _listen(worker: Worker) -> None:
    loop = asyncio.get_running_loop()
    told = False

    def leave(why: str) -> None:
        # What is on disk is enough: another worker goes on by the journal's crash table.
        _say(f"{why}; leaving at once, other workers take over")
        os._exit(INTERRUPTED)

    def stop() -> None:
        nonlocal told
        if told:
            leave("told twice to stop")
        told = True
        _say("stopping: what is at hand is parked after its step; once more to leave at once")
        worker.stop()
        loop.call_later(GRACE, leave, f"a step did not end within {GRACE:g} s")

    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop)


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"tropa: {line}\n")
    sys.stderr.flush()
