"""Tokens and money. Totals follow one convention: cached is part of input, reasoning is part of output."""

from __future__ import annotations

from dataclasses import dataclass

from tropa.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls.

    `input` includes `cached` (read from the provider's prefix cache); `output` includes `reasoning`.
    `estimated` is true where any figure is ours and not the provider's. `cost` is in US dollars; `None` is unknown,
    which is never the same as 0.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float | None = None
    estimated: bool = False

    @property
    def tokens(self) -> int:
        """Input and output together: what a token budget counts."""
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        """The sum. The cost of a sum is unknown when one of its parts is, except that of an empty usage."""
        if not self.tokens and self.cost is None:
            cost = other.cost
        elif not other.tokens and other.cost is None:
            cost = self.cost
        else:
            cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
            cost,
            self.estimated or other.estimated,
        )

    def to_json(self) -> JsonObject:
        """The stored form; zeros and unknowns are left out."""
        data: JsonObject = {"input": self.input, "output": self.output}
        if self.cached:
            data["cached"] = self.cached
        if self.reasoning:
            data["reasoning"] = self.reasoning
        if self.cost is not None:
            data["cost"] = self.cost
        if self.estimated:
            data["estimated"] = True
        return data

    @classmethod
    def from_json(cls, data: JsonObject) -> Usage:
        """The usage that `to_json` gave."""
        return cls(**data)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `cached` defaults to `input`."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """What `usage` costs, in US dollars. Cached tokens beyond the input are clamped to it."""
        cached = min(usage.cached, usage.input)
        rate = self.input if self.cached is None else self.cached
        return ((usage.input - cached) * self.input + cached * rate + usage.output * self.output) / 1e6
