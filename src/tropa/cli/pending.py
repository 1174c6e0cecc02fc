"""What waits for a person: listing it, showing one, recording a decision."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tropa.cli.card import Card, setting
from tropa.cli.conversation import card_of
from tropa.cli.faults import DONE, print_json
from tropa.cli.forms import proposal_form
from tropa.cli.plain import call_line, plain
from tropa.cli.screen import Screen
from tropa.cli.stores import command, open_store, store_file, store_flags
from tropa.cli.work import Worker
from tropa.errors import UsageError
from tropa.gate import Proposal
from tropa.messages import JsonObject, loads_object
from tropa.store import Store


def list_all(url: str, *, json: bool) -> int:
    """List what waits, and threads that were decided on but not carried on."""
    file = store_file(url)
    if file is not None and not file.exists():
        if json:
            print_json({"pending": [], "decided": []})
        else:
            Screen().line(f"Nothing waits: there is no store at {plain(str(file), lines=False)} yet.")
        return DONE
    with Worker() as worker:
        store = open_store(url)
        try:
            pending = worker.run(store.pending())
            waiting = worker.run(store.threads(limit=1000, status="waiting"))
        finally:
            worker.run(store.close())
    asked = {one.thread for one in pending}
    decided = [head.thread for head in waiting if head.thread not in asked]
    if json:
        print_json({"pending": [proposal_form(one) for one in pending], "decided": decided})
        return DONE
    _print_list(url, pending, decided)
    return DONE


def show_one(id: str, url: str, *, json: bool) -> int:
    """Show one proposal in full."""
    with Worker() as worker:
        store = open_store(url)
        try:
            card = worker.run(_card(store, id))
        finally:
            worker.run(store.close())
    if json:
        print_json({**proposal_form(card.proposal), "tool_says": card.tool})
        return DONE
    screen = Screen(show=True)
    screen.console.print(card.panel())
    for line in _how(url, card.proposal):
        screen.line(line)
    return DONE


def record(
    worker: Worker,
    url: str,
    take: Callable[[Store], Coroutine[Any, Any, Proposal]],
    decision: str,
    by: str,
    *,
    announce: bool,
) -> tuple[Proposal, bool]:
    """Record a decision. The proposal, and whether its run is over already, so that there is nothing to go on with."""
    store = open_store(url)
    try:
        proposal = worker.run(take(store))
        status = worker.run(store.journal.head(proposal.thread)).status
    finally:
        worker.run(store.close())
    if announce:
        done = {"approve": "Approved", "edit": "Approved with other arguments", "reject": "Rejected"}
        words = done.get(decision, f"Resolved as {decision}")
        line = f"{words} by {plain(by, lines=False)}: {call_line(proposal.tool, proposal.arguments, 200)}"
        Screen().line(line, "cyan")
    return proposal, status not in {"waiting", "running"}


async def edited(store: Store, id: str, settings: Sequence[str], arguments: str | None) -> JsonObject:
    """The proposal's arguments with the changes that the flags name. Raises `UsageError` where they name none."""
    card = await _card(store, id)
    if arguments is not None:
        try:
            changed = loads_object(arguments)
        except ValueError as error:
            raise UsageError(f"--arguments is not a JSON object: {error}") from error
    elif settings:
        changed = dict(card.proposal.arguments)
    else:
        raise UsageError("say what to change: --set NAME=VALUE, or --arguments JSON")
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{text!r} sets nothing; write NAME=VALUE, such as quantity=5")
        changed[name] = setting(card.schema, name, value)
    return changed


async def _card(store: Store, id: str) -> Card:
    return await card_of(store, await store.proposal(id))


def _print_list(url: str, pending: Sequence[Proposal], decided: Sequence[str]) -> None:
    from rich.table import Table  # noqa: PLC0415  # heavy
    from rich.text import Text  # noqa: PLC0415

    screen = Screen(show=True)
    if not pending and not decided:
        screen.line("Nothing waits for you.")
    if pending:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for title in ("ID", "WAITS", "CALL", "THREAD"):
            table.add_column(title, no_wrap=title != "CALL", overflow="fold")
        for one in pending:
            what = call_line(one.tool, one.arguments, 300)
            mark = Text(" outcome unknown", style="red") if one.kind == "unknown" else Text("")
            table.add_row(one.id, age(one.asked), Text(what) + mark, Text(plain(one.thread, lines=False)))
        screen.console.print(table)
        screen.line("")
        for line in _how(url, pending[0]):
            screen.line(line, "dim")
    for thread in decided:
        again = plain(command("resume", thread, *store_flags(url)), lines=False)
        screen.line(f"Decided, but not carried out yet: {again}", "yellow")


def _how(url: str, proposal: Proposal) -> list[str]:
    flags = store_flags(url)
    if proposal.kind == "unknown":
        return [
            f"Say what became of it: {command('inbox', 'resolve', proposal.id, 'done', *flags)}   (or not_done, retry)"
        ]
    return [
        f"Decide: {command('inbox', 'approve', proposal.id, *flags)}   (or reject, edit --set NAME=VALUE)",
    ]


def age(since: float) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = max(0, int(time.time() - since))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
