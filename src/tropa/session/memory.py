"""What a process remembers of the threads it worked on last, so that a next turn does not read the window again.

It is only a copy of what the journal holds at one event: another process's write makes it useless, never wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import cast

from tropa.events import MESSAGE_KINDS, message_of
from tropa.journal import Head, Journal
from tropa.messages import JsonObject, Message
from tropa.model.replay import message_digest


@dataclass(frozen=True, slots=True)
class Seen:
    """A message of the window: its event and its digest, made once."""

    seq: int
    message: Message
    digest: bytes

    @classmethod
    def of(cls, seq: int, message: Message) -> Seen:
        """The message of event `seq`."""
        return cls(seq, message, message_digest(message))


@dataclass(frozen=True, slots=True)
class Remembered:
    """The window and the stored fields of a thread after event `seq`; `over` says that its run had ended there."""

    seq: int
    window: tuple[Seen, ...]
    fields: JsonObject
    over: bool = False
    version: int = 1
    """The version of the agent's fields under which these were stored."""


class Memory:
    """The threads used last, at most `size` of them."""

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self._threads: OrderedDict[str, Remembered] = OrderedDict()

    def recall(self, thread: str) -> Remembered | None:
        """What is remembered of a thread, once: who uses it finds out by its next append whether it still holds."""
        return self._threads.pop(thread, None)

    def knows(self, thread: str) -> bool:
        """Whether `recall` would find something."""
        return thread in self._threads

    def keep(self, thread: str, remembered: Remembered) -> None:
        """Remember a thread, and forget the one that was not used for longest."""
        self._threads[thread] = remembered
        self._threads.move_to_end(thread)
        if len(self._threads) > self._size:
            self._threads.popitem(last=False)


async def remember(journal: Journal, head: Head, until: int | None = None) -> Remembered:
    """Read what a thread's next request needs of its past: the window's messages and the fields. Not the history."""
    if not head.seq:
        return Remembered(0, (), {})
    window = [
        Seen.of(entry.seq, message)
        async for entry in journal.events(head.thread, max(0, head.window - 1), until, MESSAGE_KINDS)
        if (message := message_of(entry)) is not None
    ]
    version = 1
    async for entry in journal.events(
        head.thread, max(0, head.run - 1), until, ("run.started", "run.resumed"), newest_first=True, limit=1
    ):
        version = cast("int", entry.body.get("fields", 1))
    return Remembered(head.seq, tuple(window), await journal.fields(head.thread), version=version)
