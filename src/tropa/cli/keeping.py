"""Moving and removing threads: export, import, prune, delete, vacuum."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tropa.cli.faults import DONE, print_json
from tropa.cli.plain import plain
from tropa.cli.screen import Screen
from tropa.cli.stores import open_store
from tropa.cli.work import Worker
from tropa.errors import UsageError
from tropa.store import Store

_T = TypeVar("_T")


def export_one(thread: str, file: Path | None, url: str, *, json: bool) -> int:
    """Write a thread as JSON lines, to a file or to standard output."""

    async def lines(store: Store) -> list[str]:
        return [line async for line in store.journal.export(thread)]

    written = _on(url, lines)
    if file is None:
        sys.stdout.write("".join(f"{line}\n" for line in written))
        return DONE
    file.write_text("".join(f"{line}\n" for line in written), encoding="utf-8")
    _say(
        json, {"thread": thread, "file": str(file), "lines": len(written)}, f"{_name(thread)} is in {_name(str(file))}."
    )
    return DONE


def import_one(file: Path, thread: str | None, url: str, *, json: bool) -> int:
    """Store an exported thread."""
    if not file.is_file():
        raise UsageError(f"there is no file `{plain(str(file), lines=False)}` to import")
    lines = file.read_text(encoding="utf-8").splitlines()

    async def store_it(store: Store) -> str:
        return await store.journal.import_(lines, thread)

    name = _on(url, store_it, create=True)
    _say(json, {"thread": name}, f"{_name(name)} is stored, every event as it was.")
    return DONE


def delete_one(thread: str, url: str, *, yes: bool, json: bool) -> int:
    """Remove a thread for good."""
    if not yes:
        raise UsageError(f"this removes {_name(thread)} for good; export it first, or say --yes")

    async def remove(store: Store) -> None:
        await store.journal.delete(thread)

    _on(url, remove)
    _say(json, {"thread": thread, "deleted": True}, f"{_name(thread)} is gone.")
    return DONE


def prune_one(thread: str, keep: int, url: str, *, json: bool) -> int:
    """Remove a thread's older runs."""

    async def prune(store: Store) -> int:
        return await store.journal.prune(thread, keep)

    count = _on(url, prune)
    _say(json, {"thread": thread, "removed": count}, f"{count:,} events of {_name(thread)} were removed.")
    return DONE


def vacuum_all(url: str, *, json: bool) -> int:
    """Give room back to the disk."""

    async def vacuum(store: Store) -> int:
        return await store.journal.vacuum()

    count = _on(url, vacuum)
    _say(json, {"texts": count}, f"{count:,} texts that nothing named were removed; the rest is packed.")
    return DONE


def _on(url: str, work: Callable[[Store], Coroutine[Any, Any, _T]], *, create: bool = False) -> _T:
    with Worker() as worker:
        store = open_store(url, create=create)
        try:
            return worker.run(work(store))
        finally:
            worker.run(store.close())


def _say(json: bool, document: dict[str, object], line: str) -> None:
    if json:
        print_json(document)  # type: ignore[arg-type]
    else:
        Screen(show=True).line(line)


def _name(text: str) -> str:
    return plain(text, lines=False)
