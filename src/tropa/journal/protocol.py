"""What a journal promises. SQLite keeps the promise here; the rest of the house knows only this page."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from tropa.errors import Conflict
from tropa.events import Event, NewEvent, RunStatus, State
from tropa.journal import lease
from tropa.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Head:
    """Where a thread stands: one small row, read instead of the history.

    `seq` is the newest event (0: the thread does not exist yet). `run` is the event that started the latest run,
    `window` the first event that is still sent to the model. `owner` works on the thread until `lease`. `updated`
    is when a run last began, paused or ended, or a message of a user came. Times are seconds since 1970.
    """

    thread: str
    seq: int = 0
    hash: bytes = b""
    status: RunStatus | Literal["idle"] = "idle"
    run: int = 0
    window: int = 0
    title: str = ""
    opened: float = 0.0
    updated: float = 0.0
    owner: str | None = None
    lease: float = 0.0


@dataclass(frozen=True, slots=True)
class PendingRow:
    """Something that waits for a person: a proposal to approve, or a started call whose outcome is not known."""

    id: str
    thread: str
    call: str
    seq: int
    kind: Literal["approval", "unknown"]
    tool: str
    time: float


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in a list. `seq` is its first event; tokens and cost (US dollars) are known once it ended."""

    thread: str
    seq: int
    status: RunStatus
    stop: str | None
    started: float
    finished: float | None
    input: int
    output: int
    cost: float | None


class Transaction(Protocol):
    """An open transaction on a thread. `connection` is the driver's own: a `sqlite3` or `psycopg` connection."""

    connection: object

    async def append(
        self, events: Sequence[NewEvent], *, release: bool = False, texts: Mapping[str, str] | None = None
    ) -> int:
        """Append events as `Journal.append` does; they are stored when the transaction ends, or not at all."""
        ...


class Journal(Protocol):
    """One append-only record per thread. `docs/journal.md` lists what it keeps true.

    Invariants: a thread has one writer at a time; an append is whole or absent; what `append` returned is stored,
    and on disk when it was `durable`; sequence numbers have no gaps; an event never changes.
    """

    async def append(
        self,
        thread: str,
        expect: int,
        events: Sequence[NewEvent],
        *,
        owner: str | None = None,
        release: bool = False,
        durable: bool = False,
        texts: Mapping[str, str] | None = None,
    ) -> int:
        """Append `events` in one transaction and return the new head.

        `owner` claims the thread, or keeps it claimed; `release` gives it back with this very append. `texts` are
        content-addressed texts (by SHA-256) that the events name.

        Raises:
            Conflict: the head is not `expect`, or somebody else holds the thread. Nothing was written.
            NotStorable: a body is not strict JSON; nothing was written.
            StoreError: the store could not be written in time.
        """
        ...

    async def renew(self, thread: str, owner: str) -> Head:
        """Prolong the claim of `owner` and return the head. Raises `Conflict` when the claim was lost."""
        ...

    async def head(self, thread: str) -> Head:
        """Where the thread stands; `seq` is 0 when there is no such thread."""
        ...

    async def fields(self, thread: str) -> JsonObject:
        """The fields at the head, without reading the history."""
        ...

    async def text(self, digest: str) -> str:
        """A stored text by its SHA-256. Raises `StoreError` when it is not there."""
        ...

    def events(
        self,
        thread: str,
        after: int = 0,
        until: int | None = None,
        kinds: Collection[str] | None = None,
        *,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> AsyncIterator[Event]:
        """The events with `after` < seq <= `until`, those of a fork's origin included."""
        ...

    async def state(self, thread: str, at: int | None = None) -> State:
        """Fields and messages after event `at` (the head by default).

        Raises `ThreadNotFound`, and `StoreError` when the events up to there were pruned.
        """
        ...

    async def fork(self, thread: str, at: int, new: str) -> None:
        """Open `new` with the history of `thread` up to event `at`, shared, not copied.

        Nothing that waits for a person in `thread` waits in `new`. Raises `Conflict` when `new` exists.
        """
        ...

    async def pending(self, thread: str | None = None, id: str | None = None) -> list[PendingRow]:
        """What waits for a person, oldest first."""
        ...

    async def runs(self, thread: str | None = None, limit: int = 100) -> list[RunRow]:
        """Runs, newest first."""
        ...

    async def threads(self, limit: int = 100, status: str | None = None) -> list[Head]:
        """Threads, the one that changed last first."""
        ...

    async def verify(self, thread: str) -> int:
        """Check every event against its hash and every small table against the events; returns how many there are.

        Raises `CorruptStore`.
        """
        ...

    def transaction(self, thread: str, expect: int, owner: str) -> AbstractAsyncContextManager[Transaction]:
        """A durable transaction that somebody else's writes take part in: all of it is stored, or nothing.

        On an exception, and when nothing was appended, it is rolled back. Whoever uses the connection must not end the
        transaction; on SQLite all other writers of the file wait meanwhile.

        Raises `Conflict` before anything was done, as `append` does.
        """
        ...

    async def delete(self, thread: str) -> None:
        """Remove a thread: no row with its name is left, nor a text that only it named. Its forks keep their history.

        Raises `ThreadNotFound`, and `Conflict` while somebody works on it.
        """
        ...

    async def prune(self, thread: str, keep: int = 1) -> int:
        """Remove the events before the last `keep` runs; returns how many.

        Kept are also the window, and all from the run on in which something waits for a person. Fields keep their
        values and the hash chain goes on from where it was cut. The state before the cut can no longer be read.

        Raises `ThreadNotFound`, and `Conflict` while somebody works on the thread.
        """
        ...

    async def vacuum(self) -> int:
        """Remove the texts that nothing names, give room back to the disk; returns how many texts were removed."""
        ...

    def export(self, thread: str) -> AsyncIterator[str]:
        """A thread as JSON lines, loss-free, for `import_` into any store. Raises `ThreadNotFound`."""
        ...

    async def import_(self, lines: Iterable[str] | AsyncIterable[str], thread: str | None = None) -> str:
        """Store an exported thread, under its own name or as `thread`, and return the name.

        Raises:
            CorruptStore: a line was changed or is missing. Nothing was stored.
            StoreTooNew: a newer Tropa wrote the lines.
            Conflict: there is a thread with this name.
        """
        ...

    async def close(self) -> None:
        """Let go of the store; harmless when called twice."""
        ...


def claimable(head: Head, expect: int, owner: str | None, now: float) -> None:
    """Refuse an append that would come between somebody else's events. Raises `Conflict`."""
    held = head.owner is not None and head.owner != owner and head.lease > now and not lease.dead(head.owner)
    if owner is not None and held:
        raise Conflict(f"thread {head.thread!r} is being worked on; wait for it or try again later")
    if head.seq != expect:
        raise Conflict(f"thread {head.thread!r} is at event {head.seq}, not {expect}: somebody else wrote to it")
