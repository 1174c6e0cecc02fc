"""The schemas: one script for each version, run in order, so that an older store is brought forward."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def scripts(store: str) -> list[list[str]]:
    """The statements of each version of a store's schema (`sqlite`, `postgres`), the first version first."""
    place = files(f"tropa.journal.{store}")
    found: list[list[str]] = []
    while (script := place.joinpath(f"schema_{len(found) + 1}.sql")).is_file():
        lines = (line.split("--")[0].rstrip() for line in script.read_text(encoding="utf-8").splitlines())
        found.append([part for part in "\n".join(lines).split(";") if part.strip()])
    return found
