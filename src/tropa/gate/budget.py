"""Limits that hold: tokens and money are reserved before a model is asked, and counted as spent until it replies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from tropa.errors import BudgetError
from tropa.events import Stop
from tropa.messages import JsonObject
from tropa.model import Price, Usage

FLOOR = 16
"""Fewest output tokens worth asking for; below, the run stops before the request."""
CLOSING = 256
"""Output tokens kept for the closing answer."""
NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may spend; `None` is no limit.

    `steps` counts asks in which the model may act (the closing answer is not one), `tokens` input and output together,
    `cost` US dollars, `seconds` working time (waiting for people is not counted), `calls` executed tool calls,
    `per_tool` executed calls by tool name.

    Raises `BudgetError` on a limit below 0, and on fewer steps than 1.
    """

    steps: int | None = 25
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    calls: int | None = None
    per_tool: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        named = ("steps", "tokens", "cost", "seconds", "calls")
        limits = {name: cast("float | None", getattr(self, name)) for name in named}
        for name, limit in (limits | {f"per_tool[{tool!r}]": most for tool, most in self.per_tool.items()}).items():
            if limit is not None and not (limit >= 0 and math.isfinite(limit)):
                raise BudgetError(f"budget `{name}` is {limit!r}; give a number of 0 or more, or None for no limit")
        if self.steps is not None and self.steps < 1:
            raise BudgetError(f"budget `steps` is {self.steps!r}; a run needs at least 1")

    def to_json(self) -> JsonObject:
        """The stored form; limits that are not set are left out."""
        data: JsonObject = {}
        for name in ("steps", "tokens", "cost", "seconds", "calls"):
            if (limit := getattr(self, name)) is not None:
                data[name] = limit
        if self.per_tool:
            data["per_tool"] = dict(self.per_tool)
        return data

    @classmethod
    def from_json(cls, data: JsonObject) -> Budget:
        """The budget that `to_json` gave."""
        return cls(**{"steps": None, **data})  # type: ignore[arg-type]


@dataclass(slots=True)
class Spent:
    """What a run has spent so far, reservations of lost requests included. Folded from the run's events."""

    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    seconds: float = 0.0
    calls: Counter[str] = field(default_factory=Counter[str])

    @property
    def total_calls(self) -> int:
        """Executed calls of all tools."""
        return self.calls.total()


@dataclass(frozen=True, slots=True)
class Reservation:
    """A request that fits: ask for no more than `max_output` tokens."""

    tokens: int
    max_output: int


def reserve(
    budget: Budget, spent: Spent, prompt: int, want: int, price: Price | None, keep: Usage = NOTHING
) -> Reservation | Stop:
    """Fit a request of `prompt` tokens with up to `want` output tokens into what is left, or say which limit stops it.

    `keep` stays untouched for the closing answer. The output shrinks to what is left; below `FLOOR` the request is not
    made.

    Raises `BudgetError` when money is limited and the price is not known.
    """
    output = want
    if budget.tokens is not None:
        output = min(output, budget.tokens - spent.usage.tokens - prompt - keep.tokens)
        if output < min(FLOOR, want):
            return "max_tokens"
    if budget.cost is not None:
        if price is None:
            raise BudgetError("the budget limits cost, but the model's price is not known; give the model a Price")
        left = budget.cost - (spent.usage.cost or 0.0) - price.of(Usage(prompt)) - price.of(keep)
        if left < 0:
            return "max_cost"
        if price.output > 0:
            output = math.floor(min(output, left * 1e6 / price.output + 1e-9))
        if output < min(FLOOR, want):
            return "max_cost"
    return Reservation(prompt, output)


def stop_before_ask(budget: Budget, spent: Spent, seconds: float) -> Stop | None:
    """The limit that forbids another step after `seconds` of work, if one does."""
    if budget.steps is not None and spent.steps >= budget.steps:
        return "max_steps"
    if budget.seconds is not None and seconds >= budget.seconds:
        return "max_seconds"
    return None


def refuse_call(budget: Budget, spent: Spent, tool: str) -> str | None:
    """Why one more call of `tool` is over the budget, in words for the model; `None` when it fits."""
    if budget.calls is not None and spent.total_calls >= budget.calls:
        return f"not run: the budget of {budget.calls} tool calls is used up"
    limit = budget.per_tool.get(tool)
    if limit is not None and spent.calls[tool] >= limit:
        return f"not run: the budget of {limit} calls of `{tool}` is used up"
    return None
