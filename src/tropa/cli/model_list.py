"""What models there are for this machine."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from tropa.cli.faults import DONE, print_json
from tropa.cli.plain import plain
from tropa.cli.screen import Screen
from tropa.errors import UsageError
from tropa.messages import Json, JsonObject


def known() -> list[JsonObject]:
    """What `--model` takes: its form, what it is, whether it is ready, and what would make it so."""
    needle, llama = find_spec("needle") is not None, find_spec("xllamacpp") is not None
    server = os.environ.get("OPENAI_BASE_URL")
    key = bool(os.environ.get("OPENAI_API_KEY"))
    return [
        {
            "model": "needle",
            "what": "35 MB, on the CPU, offline: direct tool calls, no prose",
            "ready": needle,
            "remedy": None if needle else "pip install 'tropa[needle]'",
        },
        {
            "model": "openai:NAME",
            "what": "any OpenAI-compatible server, by OPENAI_BASE_URL and OPENAI_API_KEY, or openai:NAME@URL",
            "ready": key or bool(server),
            "remedy": None
            if key or server
            else "set OPENAI_API_KEY, or name a server: openai:NAME@http://HOST:PORT/v1",
        },
        {
            "model": "llama:PATH.gguf",
            "what": "any GGUF file, in a llama.cpp server of its own; `tropa models get smollm2` fetches a small one",
            "ready": llama,
            "remedy": None if llama else "pip install 'tropa[llama]'",
        },
    ]


def list_all(*, json: bool) -> int:
    """Print the list."""
    rows = known()
    if json:
        print_json(rows)
        return DONE
    from rich.table import Table  # noqa: PLC0415  # heavy
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("--model", "READY", "WHAT"):
        table.add_column(title, no_wrap=title != "WHAT", overflow="fold")
    for row in rows:
        ready = Text("yes", style="green") if row["ready"] else Text("no", style="yellow")
        what = str(row["what"]) + (f"\nto have it: {row['remedy']}" if row["remedy"] else "")
        table.add_row(str(row["model"]), ready, Text(what))
    screen = Screen(show=True)
    screen.console.print(table)
    default: Json = os.environ.get("TROPA_MODEL") or "needle"
    screen.line(
        f"Without --model: {plain(default, lines=False)}"
        + ("" if os.environ.get("TROPA_MODEL") else " (set TROPA_MODEL to change it)"),
        "dim",
    )
    return DONE


def fetch(name: str, *, json: bool) -> int:
    """Download the model `name` into the user's cache and print its path. Raises `UsageError` for another name."""
    if name != "smollm2":
        raise UsageError(f"{name!r} cannot be fetched; there is `smollm2` (any GGUF file works as llama:PATH)")
    from tropa.model.llama import fetch_smollm2  # noqa: PLC0415

    screen = Screen(json=json)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tropa"
    if not json:
        screen.line(f"Fetching SmolLM2-135M-Instruct into {plain(str(cache))} (once) …", "dim")
    path = fetch_smollm2(cache)
    if json:
        print_json({"model": f"llama:{path}", "path": str(path)})
    else:
        screen.answer(str(path))
        screen.line(f'Try it: tropa run --model "llama:{plain(str(path))}" "Name three colours."', "dim")
    return DONE
