"""`tropa trail`: what happened on a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tropa.cli.faults import guarded
from tropa.cli.groups import group
from tropa.cli.options import DEFAULT_STORE, Json, Limit, StoreUrl, ThreadArgument, ThreadName

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


@app.command()
@guarded
def export(
    thread: ThreadArgument,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Where to; standard output otherwise.")] = None,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Write a thread as JSON lines, loss-free, for `trail import` into any store."""
    from tropa.cli.keeping import export_one  # noqa: PLC0415

    return export_one(thread, file, store, json=json)


@app.command("import")
@guarded
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `trail export` wrote.")],
    thread: ThreadName = None,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Store an exported thread. A changed line is refused, and nothing is stored then."""
    from tropa.cli.keeping import import_one  # noqa: PLC0415

    return import_one(file, thread, store, json=json)


@app.command()
@guarded
def prune(
    thread: ThreadArgument,
    keep: Annotated[int, typer.Option("--keep", min=1, metavar="RUNS", help="How many of the newest runs stay.")] = 5,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Remove a thread's older runs. What waits for a person, the window and the fields stay."""
    from tropa.cli.keeping import prune_one  # noqa: PLC0415

    return prune_one(thread, keep, store, json=json)


@app.command()
@guarded
def delete(
    thread: ThreadArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Yes, for good.")] = False,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Remove a thread for good; its forks keep their history."""
    from tropa.cli.keeping import delete_one  # noqa: PLC0415

    return delete_one(thread, store, yes=yes, json=json)


@app.command()
@guarded
def vacuum(store: StoreUrl = DEFAULT_STORE, json: Json = False) -> int:
    """Remove what nothing names any more, and give its room back to the disk."""
    from tropa.cli.keeping import vacuum_all  # noqa: PLC0415

    return vacuum_all(store, json=json)
