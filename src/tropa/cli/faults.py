"""From errors to exit codes and one clear sentence."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final, cast

import typer

from tropa.cli.plain import plain
from tropa.errors import ThreadWaiting, TropaError, UsageError

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
WAITING: Final = 3
STOPPED: Final = 4
INTERRUPTED: Final = 130

STATUS_CODES: dict[str, int] = {
    "running": DONE,
    "completed": DONE,
    "waiting": WAITING,
    "stopped": STOPPED,
    "failed": FAILED,
    "cancelled": INTERRUPTED,
}
"""The exit code for each status of a run."""


class Interrupted(Exception):
    """Ctrl-C or SIGTERM ended the work; what was open has been closed and recorded."""


def guarded(command: Callable[..., int]) -> Callable[..., None]:
    """Let a command return its exit code, and turn what it raises into a sentence on stderr and a code.

    With `--json` the sentence is also the document on stdout. `tropa --debug` (or `TROPA_DEBUG=1`) shows tracebacks.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        as_json = bool(kwargs.get("json"))
        try:
            code = command(*args, **kwargs)
        except (typer.Exit, BrokenPipeError):
            raise
        except (Interrupted, KeyboardInterrupt):
            code = INTERRUPTED
        except Exception as error:
            if os.environ.get("TROPA_DEBUG"):
                raise
            code = _code(error)
            complain(_sentence(error), as_json=as_json, code=code)
        raise typer.Exit(code)

    run.__annotations__ = {**command.__annotations__, "return": "None"}
    return cast("Callable[..., None]", run)


def complain(sentence: str, *, as_json: bool = False, code: int = FAILED) -> None:
    """Say on stderr what went wrong, and with `as_json` also as the document on stdout."""
    if as_json:
        print_json({"error": sentence, "exit": code})
    sys.stderr.write(f"tropa: {plain(sentence)}\n")


def print_json(value: object) -> None:
    """Write the one JSON document of a command to stdout, in ASCII, so that any stream can carry it."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
    sys.stdout.flush()


def _code(error: Exception) -> int:
    if isinstance(error, ThreadWaiting):
        return WAITING
    return USAGE if isinstance(error, UsageError) else FAILED


def _sentence(error: Exception) -> str:
    if isinstance(error, TropaError):
        return str(error)
    said = str(error)
    what = type(error).__name__ + (f": {said}" if said else "")
    return f"{what} (unexpected; `tropa --debug …` shows where)"
