"""The door at the terminal: the command `tropa`."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its code: 0 done, 1 failed, 2 usage, 3 waiting, 4 stopped, 130 interrupted."""
    import sys  # noqa: PLC0415  # this package is also imported for its parts
    from io import TextIOWrapper  # noqa: PLC0415

    from tropa.cli.app import app  # noqa: PLC0415

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end a run.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="tropa")
