"""`tropa trail`: what happened on a thread."""

from __future__ import annotations

from typing import Annotated

import typer

from tropa.cli.faults import guarded
from tropa.cli.groups import group
from tropa.cli.options import DEFAULT_STORE, Json, Limit, StoreUrl, ThreadArgument

app = group("Look at what happened on a thread. Alone it lists.", default="list")


@app.command("list")
@guarded
def list_threads(
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="STATUS", help="Only running, waiting, completed, stopped, failed or cancelled ones."
        ),
    ] = None,
    limit: Limit = 50,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """List threads, the one that changed last first."""
    from tropa.cli.reading import list_all  # noqa: PLC0415

    return list_all(store, status, limit, json=json)


@app.command()
@guarded
def show(
    thread: ThreadArgument,
    full: Annotated[bool, typer.Option("--full", help="Shorten nothing.")] = False,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Show a thread: runs, steps, calls, decisions, observations, tokens, cost, time."""
    from tropa.cli.reading import show_one  # noqa: PLC0415

    return show_one(thread, store, full=full, json=json)


@app.command()
@guarded
def follow(thread: ThreadArgument, store: StoreUrl = DEFAULT_STORE, json: Json = False) -> int:
    """Print events as they are journaled, until the run ends. With --json, one array that grows."""
    from tropa.cli.reading import follow_one  # noqa: PLC0415

    return follow_one(thread, store, json=json)


@app.command()
@guarded
def verify(
    thread: Annotated[str | None, typer.Argument(metavar="[THREAD]", help="One thread; all of them otherwise.")] = None,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Check every event against its hash: one changed byte is found."""
    from tropa.cli.reading import verify_all  # noqa: PLC0415

    return verify_all(thread, store, json=json)


@app.command()
@guarded
def fork(
    thread: ThreadArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The identifier of the new thread.")],
    at: Annotated[
        int | None,
        typer.Option("--at", min=1, metavar="EVENT", help="The last event that both share; the newest otherwise."),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Open a new thread that shares this one's history up to an event. No approval carries over."""
    from tropa.cli.reading import fork_one  # noqa: PLC0415

    return fork_one(thread, new, at, store, json=json)
