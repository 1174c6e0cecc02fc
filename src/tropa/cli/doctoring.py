"""`tropa doctor`: each thing that may be missing, with its remedy."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from tropa.cli.faults import DONE, FAILED, print_json
from tropa.cli.plain import plain
from tropa.cli.screen import Screen
from tropa.cli.stores import open_store, shown_url, store_file, without_password
from tropa.cli.work import Worker
from tropa.errors import TropaError
from tropa.messages import user
from tropa.model import Request, ToolSpec

State: TypeAlias = Literal["ok", "note", "fault"]
_EXTRAS = {
    "needle": "needle",
    "llama": "xllamacpp",
    "tokenizers": "tokenizers",
    "postgres": "psycopg",
}
_STYLES = {"ok": ("✓", "green"), "note": ("·", "yellow"), "fault": ("✗", "red")}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. Only a `fault` makes the command fail."""

    name: str
    state: State
    found: str


def examine(url: str, *, json: bool) -> int:
    """Look at everything and print what was found; 1 when something is broken."""
    with Worker() as worker:
        checks = [_python(), _tropa(), _store(worker, url), *_extras(), _needle(worker), _openai(), _terminal()]
    code = FAILED if any(one.state == "fault" for one in checks) else DONE
    if json:
        print_json({"checks": [asdict(one) for one in checks], "exit": code})
        return code
    screen = Screen(show=True)
    from rich.table import Table  # noqa: PLC0415  # heavy
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for one in checks:
        mark, style = _STYLES[one.state]
        table.add_row(Text(mark, style=style), one.name, Text(plain(one.found)))
    screen.console.print(table)
    return code


def _python() -> Check:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Check("Python", "ok", found)


def _tropa() -> Check:
    return Check("Tropa", "ok", version("tropa"))


def _store(worker: Worker, url: str) -> Check:
    file = store_file(url)
    if file is not None and not file.exists():
        return Check("store", "note", f"{file} is not there yet; the first run makes it")
    try:
        store = open_store(url)
        try:
            threads = worker.run(store.threads(limit=1 << 40))
            pending = worker.run(store.pending())
        finally:
            worker.run(store.close())
    except TropaError as error:
        return Check("store", "fault", str(error))
    return Check(
        "store", "ok", f"{shown_url(url)}: {_schema(file)}{len(threads)} threads, {len(pending)} waiting for a person"
    )


def _schema(file: Path | None) -> str:
    """The version of the store's schema, as its file says; nothing where there is no file."""
    if file is None:
        return ""
    database = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return f"schema {database.execute('PRAGMA user_version').fetchone()[0]}, "
    finally:
        database.close()


def _extras() -> list[Check]:
    return [
        Check(f"extra {extra}", "ok", "installed")
        if find_spec(module) is not None
        else Check(f"extra {extra}", "note", f"not installed: pip install 'tropa[{extra}]'")
        for extra, module in _EXTRAS.items()
    ]


def _needle(worker: Worker) -> Check:
    if find_spec("needle") is None:
        return Check("needle model", "note", "not installed: pip install 'tropa[needle]'")
    from tropa.model.needle import Needle  # noqa: PLC0415

    async def try_it() -> tuple[float, str]:
        model = Needle()
        nothing = ToolSpec("wait", "Wait.", {"type": "object", "properties": {}})
        start = time.monotonic()
        try:
            async for _ in model.ask(Request("", (user("Wait"),), (nothing,), max_output=1)):
                pass
            return time.monotonic() - start, model.network
        finally:
            await model.close()

    try:
        seconds, network = worker.run(try_it())
    except TropaError as error:
        return Check("needle model", "fault", str(error))
    if network == "none":
        return Check("needle model", "ok", f"answers in {seconds:.1f} s from a process without network")
    words = "this system cannot isolate its process from the network; telemetry is off"
    return Check("needle model", "note", f"answers in {seconds:.1f} s; {words}")


def _openai() -> Check:
    key, url = bool(os.environ.get("OPENAI_API_KEY")), os.environ.get("OPENAI_BASE_URL")
    server = (
        f"OPENAI_BASE_URL is {without_password(url)}" if url else "OPENAI_BASE_URL is not set (OpenAI's own server)"
    )
    words = "OPENAI_API_KEY is set" if key else "OPENAI_API_KEY is not set"
    return Check("openai models", "ok" if key or url else "note", f"{words}; {server}")


def _terminal() -> Check:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return Check("terminal", "note", "none: nothing is asked; approve with `tropa inbox`")
    size = os.get_terminal_size()
    return Check(
        "terminal", "ok", f"{os.environ.get('TERM', 'unknown')}, {size.columns}x{size.lines}, {sys.stdout.encoding}"
    )
