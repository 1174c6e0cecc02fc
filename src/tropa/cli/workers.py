"""Workers seen from outside: who is alive, what waits, and how a thread gets to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from tropa.cli.agents import Choice, chosen, parse_fields, with_limits
from tropa.cli.faults import DONE, print_json
from tropa.cli.plain import plain, shorten
from tropa.cli.running import Limits, new_thread
from tropa.cli.screen import Screen
from tropa.cli.stores import command, open_store, store_flags
from tropa.cli.work import Worker
from tropa.errors import MissingExtra, StoreError, UsageError
from tropa.store import Store

if TYPE_CHECKING:
    from tropa.fleet import Queue, WorkerRow

_T = TypeVar("_T")


def list_workers(url: str, *, json: bool) -> int:
    """Show the workers of a store and what waits for them."""
    from tropa.fleet import HEARTBEAT  # noqa: PLC0415  # a store on a file does without

    async def look(store: Store, queue: Queue) -> tuple[list[WorkerRow], dict[str, int], int]:
        return (
            await queue.workers(),
            await queue.waiting(),
            len({row.thread for row in await store.journal.pending()}),
        )

    workers, queued, asking = _with_queue(url, look)
    if json:
        rows = [
            {"id": row.id, "alive": row.silent <= HEARTBEAT, "silent": round(row.silent, 1), "threads": [*row.threads]}
            for row in workers
        ]
        print_json({"workers": rows, "queued": queued, "waiting_for_people": asking})
        return DONE
    screen = Screen(show=True)
    if not workers:
        screen.line("No worker was ever started here, or all have left.")
    for row in workers:
        alive = row.silent <= HEARTBEAT
        threads = ", ".join(plain(one, lines=False) for one in row.threads)
        state = "alive" if alive else f"silent for {row.silent:.0f} s"
        line = f"worker {row.id}: {state}, {f'works on {shorten(threads, 200)}' if threads else 'idle'}"
        screen.line(line, "" if alive else "yellow")
    by_agent = ", ".join(f"{count} for {plain(agent, lines=False)}" for agent, count in queued.items())
    screen.line(f"{sum(queued.values())} threads wait for a worker{f': {by_agent}' if by_agent else ''}.")
    screen.line(f"{asking} threads wait for a person.")
    return DONE


def detach(
    task: str,
    choice: Choice,
    limits: Limits,
    *,
    thread: str | None,
    url: str,
    never: bool,
    dry_run: bool,
    fields: Sequence[str],
    json: bool,
) -> int:
    """Accept one request and leave it to the workers. Raises `UsageError` for a store that workers cannot share."""
    if never:
        raise UsageError("--approve never holds in this process only; leave out --detach, or give the agent a policy")
    if not task.strip():
        raise UsageError("the task is empty; say what is to be done")
    given = parse_fields(fields)
    name = new_thread() if thread is None else thread

    async def submit(store: Store, queue: Queue) -> None:
        agent = chosen(choice, given)
        try:
            await agent.submit(
                task,
                store=store,
                thread=name,
                budget=with_limits(agent, asdict(limits)),
                dry_run=dry_run,
                **given,  # type: ignore[arg-type]
            )
        finally:
            await agent.close()
        await queue.put(name, agent.name)

    _with_queue(url, submit)
    if json:
        print_json({"thread": name, "status": "waiting", "exit": DONE})
        return DONE
    screen = Screen()
    screen.answer(name)
    again = command("trail", "follow", name, *store_flags(url))
    screen.line(f"A worker goes on with it; watch it with: {plain(again, lines=False)}", "dim")
    return DONE


def woken(url: str, thread: str) -> bool:
    """Let a worker go on with `thread`, where the store is one that workers share; whether that was done.

    Where it could not be done, workers find the thread by themselves.
    """
    if url.partition("://")[0] not in {"postgresql", "postgres"}:
        return False

    async def wake(store: Store, queue: Queue) -> None:
        from tropa.fleet import agent_of  # noqa: PLC0415  # as above

        await queue.put(thread, await agent_of(store, thread))

    try:
        _with_queue(url, wake)
    except (StoreError, MissingExtra):
        return False
    return True


def _with_queue(url: str, work: Callable[[Store, Queue], Awaitable[_T]]) -> _T:
    from tropa.fleet import Queue  # noqa: PLC0415  # as above

    async def go() -> _T:
        queue = Queue(url)
        store = open_store(url)
        try:
            await queue.open()
            return await work(store, queue)
        finally:
            await queue.close()
            await store.close()

    with Worker() as worker:
        return worker.run(go())
