"""The running window: which stored messages a request carries.

It cuts rarely and far, so that the prompt's prefix stays the same for many turns and a provider's prefix cache works.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tropa.context.shorten import shorten_observation
from tropa.context.trim import group, turns
from tropa.errors import ContextTooSmall
from tropa.messages import Message, Observation, User
from tropa.model import Count

LOW_WATER = 0.6
"""Share of the limit to which a cut goes down."""
_CHARS_PER_TOKEN = 3

CountTokens = Callable[[Sequence[Message]], Awaitable[Count]]


@dataclass(frozen=True, slots=True)
class Window:
    """What fits: the messages, their prompt's size, and how many of the stored ones are no longer sent (`cut`)."""

    messages: tuple[Message, ...]
    count: Count
    cut: int = 0


async def fit(messages: Sequence[Message], limit: int, count: CountTokens) -> Window:
    """The messages to send when a prompt may take `limit` tokens, as `count` counts it (instruction, tools and all).

    The messages are `readable` ones already.

    Raises `ContextTooSmall` when the newest user message does not fit even alone.
    """
    shown = list(messages)
    counted = await count(shown)
    if counted.tokens <= limit:
        return Window(tuple(shown), counted)
    starts = [start for start in turns(shown) if start > 0]
    low, high = 0, len(starts)  # the first start from which the rest is under the low-water mark
    while low < high:
        middle = (low + high) // 2
        if (await count(shown[starts[middle] :])).tokens <= limit * LOW_WATER:
            high = middle
        else:
            low = middle + 1
    start = starts[min(low, len(starts) - 1)] if starts else 0
    counted = await count(shown[start:])
    if counted.tokens <= limit:
        return Window(tuple(shown[start:]), counted, start)
    return await _long_turn(shown, start, limit, count)


async def _long_turn(shown: list[Message], start: int, limit: int, count: CountTokens) -> Window:
    """One turn alone is too long: its user message, and its newest calls with their results."""
    turn = shown[start:]
    units = [first for first, _ in group(turn) if first > 0] if isinstance(turn[0], User) else []
    for first in [*units[1:], len(turn)]:
        kept = [turn[0], *turn[first:]]
        counted = await count(kept)
        if counted.tokens <= limit:
            return Window(tuple(kept), counted, start)
    alone = await count(turn[:1])
    raise ContextTooSmall(
        f"the instruction, the tools and the newest user message take {alone.tokens} tokens; the model's window leaves"
        f" {limit} for the prompt; shorten the message, offer fewer tools or use a model with a larger window"
    )


def readable(message: Message, limit: int) -> Message:
    """The message as a prompt of `limit` tokens shows it: no observation takes more than about a quarter of it."""
    if isinstance(message, Observation):
        return shorten_observation(message, max(400, limit * _CHARS_PER_TOKEN // 4))
    return message
