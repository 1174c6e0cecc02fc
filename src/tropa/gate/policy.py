"""Policy: what happens to a proposed call. The default: reading runs, everything else asks a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tropa.gate.origins import Origin
from tropa.messages import JsonObject
from tropa.tool import Hints


@dataclass(frozen=True, slots=True)
class Proposed:
    """A call at the gate: its arguments are valid and canonical. `agent` is the path of agents, outermost first."""

    tool: str
    hints: Hints
    arguments: JsonObject
    thread: str
    agent: tuple[str, ...]
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])


@dataclass(frozen=True, slots=True)
class Ruling:
    """A policy's answer. `reason` is told to the model when the call is refused, to the person when it asks."""

    verdict: Literal["run", "ask", "refuse"]
    reason: str | None = None


RUN = Ruling("run")
ASK = Ruling("ask")

Policy: TypeAlias = Callable[[Proposed], Ruling]


def ask_before_effects(proposed: Proposed) -> Ruling:
    """The default policy: a tool that says `read_only` runs, any other waits for approval."""
    return RUN if proposed.hints.read_only else ASK


def refuse_effects(proposed: Proposed) -> Ruling:
    """For unattended runs: reading runs, everything else is refused."""
    if proposed.hints.read_only:
        return RUN
    return Ruling("refuse", "this run may only read; nobody is there to approve a side effect")
