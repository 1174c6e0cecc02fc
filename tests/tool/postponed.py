"""A module with postponed annotations, for the cases about resolving them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Optional

from tests.tool.postponed_types import Target

if TYPE_CHECKING:
    from tropa.tool import ToolContext

    class OnlyForCheckers: ...


def ship(target: Target, mode: Literal["sea", "rail"], when: Optional[datetime] = None) -> object:
    return target, mode, when


def whoami(q: str, who: ToolContext) -> str:
    return f"{q} {who.thread}"


def maybe(q: str, ctx: Optional[ToolContext] = None) -> str:
    return f"{q} {ctx.thread if ctx else '-'}"


def unresolvable(first: int, second: OnlyForCheckers) -> None: ...
