"""What a process remembers of the threads it worked on last, so that a next turn does not read the window again.

It is only a copy of what the journal holds at one event: another process's write makes it useless, never wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import cast

from tropa.context.window import readable
from tropa.events import MESSAGE_KINDS, message_of
from tropa.journal import Head, Journal
from tropa.messages import JsonObject, Message
from tropa.model.replay import message_digest


@dataclass(frozen=True, slots=True)
class Seen:
    """A message of the window: its event, how a prompt shows it, and the digest of that, made once."""

    seq: int
    message: Message
    shown: Message
    digest: bytes

    @classmethod
    def of(cls, seq: int, message: Message, limit: int) -> Seen:
        """The message of event `seq`, for prompts of at most `limit` tokens."""
        shown = readable(message, limit)
        return cls(seq, message, shown, message_digest(shown))


@dataclass(frozen=True, slots=True)
class Remembered:
    """The window and the stored fields of a thread after event `seq`; `over` says that its run had ended there.

    `limit` is the size of prompts, in tokens, that the window is made for.
    """

    seq: int
    window: tuple[Seen, ...]
    fields: JsonObject
    limit: int
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


async def remember(journal: Journal, head: Head, limit: int, until: int | None = None) -> Remembered:
    """Read what a thread's next request needs of its past: the window's messages and the fields. Not the history."""
    if not head.seq:
        return Remembered(0, (), {}, limit)
    window = [
        Seen.of(entry.seq, message, limit)
        async for entry in journal.events(head.thread, max(0, head.window - 1), until, MESSAGE_KINDS)
        if (message := message_of(entry)) is not None
    ]
    version = 1
    async for entry in journal.events(
        head.thread, max(0, head.run - 1), until, ("run.started", "run.resumed"), newest_first=True, limit=1
    ):
        version = cast("int", entry.body.get("fields", 1))
    return Remembered(head.seq, tuple(window), await journal.fields(head.thread), limit, version=version)
