"""Repeat detection: the same calls with the same results, also in a cycle of up to four steps (spec §4, §6).

A step is the calls of one reply and their results. A call that changes its result (polling) is no repeat, and three
identical calls inside one reply are one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

LONGEST = 4
"""Longest cycle, in steps, that is recognised."""

Step: TypeAlias = str
"""A digest of a step's calls and results."""


def cycle(steps: Sequence[Step]) -> int:
    """The length of the shortest cycle that the newest steps have gone through twice; 0 when there is none."""
    for length in range(1, LONGEST + 1):
        if len(steps) >= 2 * length and steps[-length:] == steps[-2 * length : -length]:
            return length
    return 0


def check(steps: Sequence[Step], warned: int) -> Literal["warn", "stop"] | None:
    """What to do after the newest step.

    `warned` is how many steps had been made when the model was last warned (0: never). The model is warned once; when
    it goes on in the cycle, the run stops. A step that leaves the cycle is progress and ends the warning.
    """
    if not cycle(steps):
        return None
    if warned and all(cycle(steps[:count]) for count in range(warned, len(steps) + 1)):
        return "stop" if len(steps) > warned else None
    return "warn"
