"""Reading trails: lists, one thread, events as they come, hashes."""

from __future__ import annotations

import asyncio
import json as jsonlib
import sys
from collections.abc import Callable
from datetime import datetime
from typing import cast

from tropa.cli.agents import stored_agent
from tropa.cli.faults import DONE, STATUS_CODES, print_json
from tropa.cli.forms import event_form, head_form
from tropa.cli.plain import plain, shorten
from tropa.cli.screen import Screen
from tropa.cli.stores import open_store, store_file
from tropa.cli.trail_form import trail_form
from tropa.cli.trail_view import event_line, print_trail
from tropa.cli.work import Worker
from tropa.errors import ThreadNotFound, UsageError
from tropa.events import Event
from tropa.store import Store

_POLL = 0.2
_STATUSES = ("running", "waiting", "completed", "stopped", "failed", "cancelled")


def list_all(url: str, status: str | None, limit: int, *, json: bool) -> int:
    """List the threads of a store."""
    if status is not None and status not in _STATUSES:
        raise UsageError(f"--status {status!r} is none of {', '.join(_STATUSES)}")
    file = store_file(url)
    screen = Screen(json=json, show=True)
    if file is not None and not file.exists():
        if json:
            print_json([])
        else:
            screen.line(f"No threads: there is no store at {plain(str(file), lines=False)} yet.")
        return DONE
    with Worker() as worker:
        store = open_store(url)
        try:
            heads = worker.run(store.threads(limit, status))
        finally:
            worker.run(store.close())
    if json:
        print_json([head_form(head) for head in heads])
        return DONE
    if not heads:
        screen.line("No threads." if status is None else f"No {status} threads.")
        return DONE
    from rich.table import Table  # noqa: PLC0415  # heavy
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("THREAD", "STATUS", "CHANGED", "EVENTS"):
        table.add_column(title, no_wrap=True, justify="right" if title == "EVENTS" else "left")
    table.add_column("REQUEST", overflow="fold")
    for head in heads:
        changed = f"{datetime.fromtimestamp(head.updated).astimezone():%Y-%m-%d %H:%M}"
        name, title = Text(plain(head.thread, lines=False)), Text(shorten(plain(head.title, lines=False), 120))
        table.add_row(name, Text(head.status, style=STATUS_STYLES.get(head.status, "")), changed, str(head.seq), title)
    screen.console.print(table)
    return DONE


def show_one(thread: str, url: str, *, full: bool, json: bool) -> int:
    """Show one thread."""
    with Worker() as worker:
        store = open_store(url)
        try:
            trail = worker.run(store.trail(thread))
            run = worker.run(store.run(thread))
            _, definition = worker.run(stored_agent(store, thread))
        finally:
            worker.run(store.close())
    model = cast("str", definition["model"])
    if json:
        print_json(trail_form(trail, run, model))
    else:
        print_trail(Screen(show=True).console, trail, run, model=model, full=full)
    return DONE


def follow_one(thread: str, url: str, *, json: bool) -> int:
    """Print the events of a thread until its run ends; the exit code is the run's."""
    shown = 0

    def show(entry: Event) -> None:
        nonlocal shown
        if json:
            sys.stdout.write(("[\n" if not shown else ",\n") + jsonlib.dumps(event_form(entry)))
            sys.stdout.flush()
        else:
            # One line each: cut to a terminal's width, whole in a file.
            cut = screen.console.is_terminal
            screen.console.print(event_line(entry), no_wrap=True, overflow="ellipsis", crop=cut, soft_wrap=not cut)
        shown += 1

    screen = Screen(json=json, show=True)
    with Worker() as worker:
        store = open_store(url)
        try:
            status = worker.run(_follow(store, thread, show))
        finally:
            if json:
                sys.stdout.write("\n]\n" if shown else "[]\n")
            worker.run(store.close())
    return STATUS_CODES[status]


def verify_all(thread: str | None, url: str, *, json: bool) -> int:
    """Check the hashes of one thread or of all."""
    with Worker() as worker:
        store = open_store(url)
        try:
            names = [thread] if thread is not None else [one.thread for one in worker.run(store.threads(limit=1 << 40))]
            counts = {name: worker.run(_verified(store, name)) for name in names}
        finally:
            worker.run(store.close())
    total = sum(counts.values())
    if json:
        print_json({"threads": len(counts), "events": total, "intact": True})
    else:
        what = "1 thread is" if len(counts) == 1 else f"{len(counts)} threads are"
        Screen(show=True).line(f"{what} intact: {total:,} events match their hashes.", "green")
    return DONE


def fork_one(thread: str, new: str, at: int | None, url: str, *, json: bool) -> int:
    """Fork a thread."""
    with Worker() as worker:
        store = open_store(url)
        try:
            origin = worker.run(store.thread(thread))
            if at is not None and at > origin.seq:
                raise UsageError(f"--at {at} is beyond the thread's newest event, {origin.seq}")
            forked = worker.run(origin.fork(new, at=at))
        finally:
            worker.run(store.close())
    if json:
        print_json({"thread": forked.id, "origin": thread, "at": forked.seq})
    else:
        names = plain(thread, lines=False), plain(new, lines=False)
        Screen(show=True).line(f"{names[1]} goes its own way from event {forked.seq} of {names[0]}.")
    return DONE


async def _verified(store: Store, thread: str) -> int:
    if not (await store.journal.head(thread)).seq:
        raise ThreadNotFound(f"there is no thread {thread!r} in this store; `tropa trail list` shows them")
    return await store.journal.verify(thread)


async def _follow(store: Store, thread: str, show: Callable[[Event], None]) -> str:
    seq = 0
    while True:
        head = await store.journal.head(thread)
        if not head.seq:
            raise ThreadNotFound(f"there is no thread {thread!r} in this store; `tropa trail list` shows them")
        if head.seq > seq:
            async for entry in store.journal.events(thread, after=seq):
                show(entry)
                seq = entry.seq
            continue
        if head.status not in {"running", "waiting"}:
            return "completed" if head.status == "idle" else head.status
        await asyncio.sleep(_POLL)


STATUS_STYLES = {
    "completed": "green",
    "waiting": "yellow",
    "stopped": "yellow",
    "failed": "red",
    "cancelled": "yellow",
    "running": "cyan",
}
