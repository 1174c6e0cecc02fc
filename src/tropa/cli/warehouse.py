"""The warehouse demo as people see it."""

from __future__ import annotations

import os

from tropa.cli.agents import Choice
from tropa.cli.conversation import Conversation
from tropa.cli.faults import INTERRUPTED, STATUS_CODES, Interrupted, print_json
from tropa.cli.forms import run_form
from tropa.cli.plain import plain
from tropa.cli.running import new_thread
from tropa.cli.screen import Screen
from tropa.cli.stores import demo_folder, open_store, shown_url, whoever
from tropa.cli.work import Worker
from tropa.demo import Warehouse, warehouse_agent
from tropa.messages import Json

_Rows = list[tuple[str, str, int]]


def show_warehouse(task: str, model: str | None, url: str, *, json: bool) -> int:
    """Reset the stock, take the request, ask, and show stock and trail. The exit code."""
    folder = demo_folder(url)
    house = Warehouse(folder)
    agent = warehouse_agent(folder, model or os.environ.get("TROPA_MODEL") or "needle")
    house.reset()
    before = house.rows()
    screen = Screen(json=json, show=True)
    with Worker() as worker:
        talk = Conversation(
            worker,
            screen,
            open_store(url, create=True),
            url,
            new_thread(),
            agent,
            Choice(model=model),
            whoever(None),
        )
        try:
            if not json:
                screen.line(
                    f"A small warehouse in {plain(str(house.file))}; the journal in {plain(shown_url(url))}", "dim"
                )
                _print_stock(screen, before, before)
                screen.line("")
                screen.line(f"{plain(agent.setup.model.name, lines=False)} is asked: {plain(task)}", "bold")
            try:
                run = talk.work(agent.run(task, store=talk.store, thread=talk.thread, watch=talk.progress))
            except Interrupted:
                talk.interrupted()
                return INTERRUPTED
            after = house.rows()
            if json:
                stock: list[Json] = [{"sku": sku, "site": site, "quantity": number} for sku, site, number in after]
                print_json({**run_form(run), "stock": stock})
                return STATUS_CODES[run.status]
            if run.status == "waiting" and not screen.interactive:
                for proposal in run.pending:
                    screen.console.print(talk.card(proposal).panel())
            code = talk.report(run)
            if run.status != "waiting":
                screen.line("")
                _print_stock(screen, before, after)
                _print_trail(talk)
            return code
        finally:
            talk.close()


def _print_stock(screen: Screen, before: _Rows, after: _Rows) -> None:
    from rich.table import Table  # noqa: PLC0415  # heavy
    from rich.text import Text  # noqa: PLC0415

    old = {(sku, site): number for sku, site, number in before}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("ARTICLE")
    sites = sorted({site for _, site, _ in [*before, *after]})
    for site in sites:
        table.add_column(site, justify="right")
    new = {(sku, site): number for sku, site, number in after}
    for sku in sorted({sku for sku, _ in [*old, *new]}):
        cells = [_cell(old.get((sku, site), 0), new.get((sku, site), 0)) for site in sites]
        table.add_row(sku, *(Text(words, style=style) for words, style in cells))
    screen.console.print(table)


def _cell(before: int, after: int) -> tuple[str, str]:
    return (str(after), "") if before == after else (f"{before} → {after}", "bold green")


def _print_trail(talk: Conversation) -> None:
    from tropa.cli.trail_view import print_trail  # noqa: PLC0415  # heavy

    talk.screen.line("")
    trail = talk.worker.run(talk.store.trail(talk.thread))
    print_trail(
        talk.screen.console, trail, talk.worker.run(talk.store.run(talk.thread)), model=talk.agent.setup.model.name
    )
