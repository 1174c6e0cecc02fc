"""A thread held by this process: its journal, its record so far, and the claim that keeps others out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

import anyio

from tropa.errors import Conflict, StoreError
from tropa.events import MESSAGE_KINDS, Event, NewEvent, apply_field, in_call_order, message_of
from tropa.journal import Head, Journal
from tropa.messages import JsonObject, Message
from tropa.model import Delta
from tropa.session.memory import Memory, Remembered, Seen, remember
from tropa.session.record import RunRecord
from tropa.session.setup import Setup

HEARTBEAT = 5.0
"""Seconds between renewals of the claim on a thread."""
LOOK = 1.0
"""Seconds between looks for a wish to cancel."""

Watcher = Callable[[Delta | Event], None]


class _RolledBack(Exception):
    """Leaves a transaction without storing anything."""


class Held:
    """One run of one thread in this process, under its claim.

    `window` is what the next request may carry. `stored` are the fields as the journal has them, `fields` those with the
    agent's defaults beneath. `watch` is called with each delta, and with each event once it is stored, first with those of
    the `opening`. `seq` is the newest event that is folded, `saved` the newest that is stored; a session is `born` with
    its first append, which claims the thread.
    """

    def __init__(
        self, journal: Journal, thread: str, setup: Setup, owner: str, *, watch: Watcher | None = None
    ) -> None:
        self.journal = journal
        self.thread = thread
        self.setup = setup
        self.owner = owner
        self.seq = 0
        self.saved = 0
        self.born = False
        self._late: list[NewEvent] = []
        self._late_durable = False
        self._late_texts: dict[str, str] = {}
        self._unshown: list[Event] = []
        self.record = RunRecord()
        self.opening: list[Event] = []
        self.stored: JsonObject = {}
        self.window: list[Seen] = []
        self.watch = watch
        self.memory: Memory | None = None
        self.released = False
        self._lock = asyncio.Lock()

    @property
    def fields(self) -> JsonObject:
        """The state's fields."""
        return {**self.setup.defaults(), **self.stored}

    async def note(self, *events: NewEvent, durable: bool = False) -> None:
        """Journal facts. Raises `Conflict` when this session lost the thread."""
        await self.write(lambda: events, durable=durable)

    async def write(
        self,
        build: Callable[[], Sequence[NewEvent]],
        *,
        durable: bool = False,
        release: bool = False,
        later: bool = False,
    ) -> int:
        """Append what `build` gives, with all that was put off before it, in one transaction. Returns how many it gave.

        With `later` the events are only put off: for what is followed at once by another write, before anything else
        happens. `build` runs again when somebody else (a person who decides) wrote to the thread in between. Raises
        `Conflict` when the thread was taken over.
        """
        async with self._lock:
            while True:
                events = build()
                if later:
                    self.put_off(events, durable=durable)
                    return len(events)
                if not events:
                    return 0
                try:
                    await self.journal.append(
                        self.thread,
                        self.saved,
                        [*self._late, *events],
                        owner=self.owner,
                        release=release,
                        durable=durable or self._late_durable,
                        texts=self._late_texts,
                    )
                except Conflict:
                    if not (self.born and await self._absorb()):
                        raise
                    continue
                except asyncio.CancelledError:
                    with anyio.CancelScope(shield=True):
                        await self._catch_up(release=release)
                    raise
                self.released = release
                self._take(events)
                if release and self.memory is not None:
                    over = self.record.finished is not None
                    version = self.setup.fields_version
                    self.memory.keep(
                        self.thread,
                        Remembered(
                            self.seq, tuple(self.window), self.stored, self.setup.limit, over=over, version=version
                        ),
                    )
                return len(events)

    def put_off(
        self, events: Sequence[NewEvent], *, durable: bool = False, texts: Mapping[str, str] | None = None
    ) -> None:
        """Fold events now and store them with the next write."""
        now = time.time()
        for entry in events:
            self._fold_and_show(Event(self.thread, self.seq + 1, now, entry.kind, entry.body))
        self._late += events
        self._late_durable = self._late_durable or durable
        self._late_texts |= texts or {}

    async def atomically(self, work: Callable[[object], Awaitable[Sequence[NewEvent]]]) -> None:
        """Run `work` inside a transaction of the journal: what it writes and the events it gives are stored together.

        `work` gets the database connection. When it gives no events, or raises, everything it wrote is rolled back.
        Raises `Conflict` when the thread was taken over.
        """
        async with self._lock:
            while True:
                events: Sequence[NewEvent] = ()
                began = False
                assert not self._late, "a call's start is stored before its transaction begins"
                try:
                    async with self.journal.transaction(self.thread, self.saved, self.owner) as transaction:
                        began = True
                        events = await work(transaction.connection)
                        if not events:
                            raise _RolledBack
                        await transaction.append(events)
                except _RolledBack:
                    return
                except Conflict:
                    if began or not await self._absorb():
                        raise
                    continue
                except asyncio.CancelledError:
                    with anyio.CancelScope(shield=True):
                        await self._catch_up(release=False)
                    raise
                self._take(events)
                return

    def _take(self, events: Sequence[NewEvent]) -> None:
        """Fold events that were just stored, and show them and what was put off."""
        self.put_off(events)
        self._is_stored()
        unshown, self._unshown = self._unshown, []
        self._show(unshown)

    def _is_stored(self) -> None:
        self.saved, self.born = self.seq, True
        self._late, self._late_durable, self._late_texts = [], False, {}

    def _fold_and_show(self, entry: Event) -> None:
        self.fold(entry)
        self._unshown.append(entry)

    def fold(self, entry: Event) -> None:
        """Take in an event that is stored, or that was put off."""
        self.seq = entry.seq
        if entry.kind == "run.started":
            self.record = RunRecord()
        self.record.apply(entry)
        if entry.kind in MESSAGE_KINDS and (message := message_of(entry)) is not None:
            self.window.append(Seen.of(entry.seq, message, self.setup.limit))
        elif entry.kind == "window.cut":
            start = cast("int", entry.body["start"])
            self.window = [item for item in self.window if item.seq >= start]
        elif entry.kind == "field.set":
            apply_field(self.stored, entry.body)

    def _show(self, events: Sequence[Event]) -> None:
        """Tell who watches, after everything is folded: whatever a watcher raises, the session is in order."""
        if self.watch is not None:
            for entry in events:
                self.watch(entry)

    def messages(self) -> list[Message]:
        """The window's messages in full, observations in the order of their calls."""
        return in_call_order([item.message for item in self.window])

    def shown(self) -> list[Message]:
        """The same as a prompt shows them: very long observations with a mark in their middle."""
        return in_call_order([item.shown for item in self.window])

    async def _absorb(self) -> bool:
        """Take in what others wrote to the thread while it was ours. False: nothing; `Conflict`: it is not ours."""
        head = await self.journal.head(self.thread)
        if head.owner != self.owner:
            raise Conflict(f"thread {self.thread!r} was taken over by another worker; nothing more is done here")
        others = [entry async for entry in self.journal.events(self.thread, after=self.saved)]
        if others and self._late:
            await self._refold(head)
        elif others:
            for entry in others:
                self.fold(entry)
            self.saved = self.seq
        self._show(others)
        return bool(others)

    async def _refold(self, head: Head) -> None:
        """Put what was put off behind what others wrote meanwhile: its numbers were guessed, and are others now."""
        late, texts, durable = self._late, self._late_texts, self._late_durable
        past = await remember(self.journal, head, self.setup.limit, head.run - 1)
        self.window = list(past.window)
        async for entry in self.journal.events(self.thread, after=head.run - 1):
            self.fold(entry)
        self.stored = past.fields
        self._is_stored()
        self._unshown = []
        self.put_off(late, durable=durable, texts=texts)

    async def _catch_up(self, *, release: bool) -> None:
        """After an append was broken off: take in what the store has of it, so that what follows fits."""
        head = await self.journal.head(self.thread)
        if head.seq == self.saved:
            return
        ours = head.owner == self.owner or (release and head.owner is None)
        if ours:
            async for entry in self.journal.events(self.thread, after=self.seq):
                self.fold(entry)
            self._is_stored()
        self.released = release and head.owner != self.owner

    @asynccontextmanager
    async def alive(self) -> AsyncGenerator[None]:
        """Keep the claim while the body runs; cancel the body when the claim is lost or somebody wishes it."""
        task = asyncio.current_task()
        lost: list[Exception] = []

        async def beat() -> None:
            due = time.monotonic() + HEARTBEAT
            while True:
                await asyncio.sleep(LOOK)
                if not self.born:
                    continue
                try:
                    if time.monotonic() >= due:
                        due = time.monotonic() + HEARTBEAT
                        head = await self.journal.renew(self.thread, self.owner)
                    else:
                        head = await self.journal.head(self.thread)
                    if head.seq > self.saved:
                        async with self._lock:
                            await self._absorb()
                except Conflict as error:
                    lost.append(error)
                except StoreError:
                    continue  # the store may be back before the claim ends; an append will say so otherwise
                if (lost or self.record.cancelling) and task is not None:
                    task.cancel()
                    return

        heart = asyncio.create_task(beat())
        try:
            self._show(self.opening)
            yield
        except asyncio.CancelledError:
            if lost and task is not None:
                task.uncancel()
                raise lost[0] from None
            raise
        finally:
            heart.cancel()
            await asyncio.wait([heart])  # unlike `await heart`, this lets a cancellation of our own through
