"""What a process remembers of the threads it worked on last, so that a next turn does not read the window again.

It is only a copy of what the journal holds at one event: another process's write makes it useless, never wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

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
    """The window and the stored fields of a thread after event `seq`."""

    seq: int
    window: tuple[Seen, ...]
    fields: JsonObject


class Memory:
    """The threads used last, at most `size` of them."""

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self._threads: OrderedDict[str, Remembered] = OrderedDict()

    def recall(self, thread: str, seq: int) -> Remembered | None:
        """What is remembered of a thread whose newest event is `seq`; nothing when it is older."""
        found = self._threads.pop(thread, None)
        return found if found is not None and found.seq == seq else None

    def keep(self, thread: str, remembered: Remembered) -> None:
        """Remember a thread, and forget the one that was not used for longest."""
        self._threads[thread] = remembered
        self._threads.move_to_end(thread)
        if len(self._threads) > self._size:
            self._threads.popitem(last=False)
