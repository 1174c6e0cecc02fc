"""`tropa models`: what can be asked on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from tropa.cli.faults import guarded
from tropa.cli.groups import group
from tropa.cli.options import Json

app = group("List models, and get small ones. Alone it lists.", default="list")


@app.command("list")
@guarded
def list_models(json: Json = False) -> int:
    """List what `--model` takes, and whether it is ready here. Nothing is asked and no server is called."""
    from tropa.cli.model_list import list_all  # noqa: PLC0415

    return list_all(json=json)


@app.command()
@guarded
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model to get: smollm2.")], json: Json = False
) -> int:
    """Download a small model and print the path of its file."""
    from tropa.cli.model_list import fetch  # noqa: PLC0415

    return fetch(name, json=json)
