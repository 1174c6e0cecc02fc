"""Trimming: which messages fit. Pure functions over messages; the journal is never touched (spec §5.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from tropa.errors import ContextTooSmall
from tropa.messages import Message, Notice, Observation, System, User

Counter: TypeAlias = Callable[[System | Message], int]
_M = TypeVar("_M", bound=System | Message)


def trim(messages: Sequence[_M], max_tokens: int, counter: Counter) -> list[_M]:
    """The newest messages that fit into `max_tokens`, by four rules.

    The newest are kept; a leading `System` is always kept and counted; no message is cut, and a call stays with its
    results; what is kept starts with a user message. Within the budget nothing changes. A newest turn that is too long
    by itself keeps its user message and its newest calls.

    Raises `ContextTooSmall` when the instruction and the newest user message alone do not fit.
    """
    system = [message for message in messages[:1] if isinstance(message, System)]
    body = messages[len(system) :]
    left = max_tokens - sum(map(counter, system))
    costs = [counter(message) for message in body]
    if sum(costs) <= left:
        return list(messages)
    units = group(body)
    start, room = len(body), left
    for first, after in reversed(units):
        room -= sum(costs[first:after])
        if room < 0:
            break
        start = first
    newest = max((index for index, message in enumerate(body) if isinstance(message, User)), default=None)
    if newest is None:
        return system + list(body[start:])  # type: ignore[operator]
    for index in range(start, newest + 1):
        if isinstance(body[index], User):
            return system + list(body[index:])  # type: ignore[operator]
    return system + _long_turn(body, costs, units, newest, left)  # type: ignore[operator]


def _long_turn(body: Sequence[_M], costs: list[int], units: list[tuple[int, int]], newest: int, left: int) -> list[_M]:
    """The newest user message and as many of the newest units after it as fit."""
    room = left - costs[newest]
    if room < 0:
        raise ContextTooSmall(
            f"the newest user message takes {costs[newest]} tokens and {left} are left after the instruction;"
            " shorten it or use a model with a larger window"
        )
    start = len(body)
    for first, after in reversed(units):
        if first <= newest or sum(costs[first:after]) > room:
            break
        room -= sum(costs[first:after])
        start = first
    return [body[newest], *body[start:]]


def group(messages: Sequence[System | Message]) -> list[tuple[int, int]]:
    """Units that are kept or dropped whole, as (first, after): a call with its results, a message with its notices."""
    units: list[tuple[int, int]] = []
    for index, message in enumerate(messages):
        joins = isinstance(message, Notice) or (isinstance(message, Observation) and units)
        if joins and units:
            units[-1] = (units[-1][0], index + 1)
        else:
            units.append((index, index + 1))
    return units


def turns(messages: Sequence[Message]) -> list[int]:
    """Where each turn of the conversation starts: the positions of the user messages."""
    return [index for index, message in enumerate(messages) if isinstance(message, User)]
