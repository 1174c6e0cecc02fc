"""One conversation, read from the journal."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import cast

from tropa.errors import ThreadNotFound
from tropa.events import Event, State
from tropa.journal import Journal
from tropa.messages import JsonObject


class Thread:
    """A thread as it stood when it was read: `state` holds its fields and all its messages."""

    def __init__(self, journal: Journal, id: str, seq: int, state: State) -> None:
        self.id = id
        self.seq = seq
        self.state = state
        self._journal = journal

    async def at(self, seq: int) -> State:
        """The state after event `seq`: time travel, nothing is changed."""
        return await state(self._journal, self.id, seq)

    async def fork(self, new: str, *, at: int | None = None) -> Thread:
        """A new thread that shares this one's history up to event `at` (its end by default).

        Nothing is copied, and no approval given here holds there. Raises `Conflict` when `new` exists.
        """
        await self._journal.fork(self.id, self.seq if at is None else at, new)
        return await read(self._journal, new)

    def history(self, limit: int | None = None) -> AsyncIterator[Event]:
        """The events, newest first."""
        return self._journal.events(self.id, newest_first=True, limit=limit)


async def read(journal: Journal, id: str) -> Thread:
    """Read a thread. Raises `ThreadNotFound`."""
    head = await journal.head(id)
    if not head.seq:
        raise ThreadNotFound(f"there is no thread {id!r} in this store; `tropa trail list` shows them")
    return Thread(journal, id, head.seq, await state(journal, id, head.seq))


async def state(journal: Journal, id: str, at: int) -> State:
    """The state after event `at`; a field that nothing set has the default of the agent that ran last."""
    found = await journal.state(id, at)
    async for entry in journal.events(id, until=at, kinds=("run.started",), newest_first=True, limit=1):
        definition = cast("JsonObject", json.loads(await journal.text(cast("str", entry.body["agent"]))))
        found.fields = {**cast("JsonObject", definition.get("fields", {})), **found.fields}
    return found
