"""`tropa demo`: a real model on a small world of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from tropa.cli.faults import guarded
from tropa.cli.groups import group
from tropa.cli.options import DEFAULT_STORE, Json, ModelName, StoreUrl

TASK = "Move 40 of A-113 from Hamburg to Rotterdam"

app = group("Try Tropa with a built-in agent. Alone it is the warehouse.", default="warehouse")


@app.command()
@guarded
def warehouse(
    task: Annotated[str, typer.Option("--task", metavar="TEXT", help="Another request.")] = TASK,
    model: ModelName = None,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """A request moves stock between three sites; the move waits for your yes. The stock is reset at each start."""
    from tropa.cli.warehouse import show_warehouse  # noqa: PLC0415

    return show_warehouse(task, model, store, json=json)
