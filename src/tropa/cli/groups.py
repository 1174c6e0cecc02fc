"""Groups of commands, with the settings that all share."""

from __future__ import annotations

import typer
from typer.core import TyperGroup

_CODES = "Exit codes: 0 done, 1 failed, 2 usage, 3 waiting for approval, 4 stopped by a limit, 130 interrupted."
_HELP = {"--help", "--install-completion", "--show-completion"}


def group(help: str, *, default: str | None = None) -> typer.Typer:
    """A group of commands; alone, or with options only, it is its command `default`, where it has one."""

    class WithDefault(TyperGroup):
        """Puts the default command before the arguments when they do not begin with a command."""

        def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
            if default is not None and (not args or (args[0].startswith("-") and args[0] not in _HELP)):
                args = [default, *args]
            return super().parse_args(ctx, args)

    return typer.Typer(
        cls=WithDefault,
        help=help,
        epilog=_CODES,
        no_args_is_help=default is None,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
