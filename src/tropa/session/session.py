"""The session: ask, call, note. Every operation on a thread is journaled here, and nowhere else.

Resuming is running the same program again: `ask` and `call` answer from the journal what is already known from it, so a
reply is not asked for twice and a finished call is not run again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

from tropa.errors import Conflict
from tropa.events import MESSAGE_KINDS, Event, NewEvent, Stop, apply_field, event, in_call_order, message_of
from tropa.gate import Policy, stop_before_ask
from tropa.gate.repeat import check
from tropa.journal import Journal
from tropa.messages import Call, Json, JsonObject, Message, Notice, Observation, encode
from tropa.model import Delta
from tropa.session import asking, calling, repair
from tropa.session.memory import Memory, Remembered, Seen
from tropa.session.outcome import Run, Stopped
from tropa.session.record import ReplyRecord, RunRecord
from tropa.session.setup import Setup
from tropa.session.view import run_of

HEARTBEAT = 5.0
"""Seconds between renewals of the claim on a thread, and looks for a wish to cancel."""
CUTS = 3
"""Replies in a row that were cut by the length limit before the run stops."""
REFUSALS = 3
"""Rejected attempts at one call before the run stops."""

Watcher = Callable[[Delta | Event], None]


class Session:
    """One run of one thread in this process. Made by `begin` and `reopen`; holds the claim on the thread.

    `window` is what the next request may carry. `stored` are the fields as the journal has them, `fields` those with the
    agent's defaults beneath. `watch` is called with each delta and each event.
    """

    def __init__(
        self, journal: Journal, thread: str, setup: Setup, owner: str, *, watch: Watcher | None = None
    ) -> None:
        self.journal = journal
        self.thread = thread
        self.setup = setup
        self.owner = owner
        self.seq = 0
        self.record = RunRecord()
        self.stored: JsonObject = {}
        self.window: list[Seen] = []
        self.watch = watch
        self.memory: Memory | None = None
        self.policy: Policy = setup.policy
        self._asked = 0
        self._lock = asyncio.Lock()

    @property
    def fields(self) -> JsonObject:
        """The state's fields."""
        return {**self.setup.defaults(), **self.stored}

    # -- the three operations

    async def ask(self) -> ReplyRecord:
        """The next reply of the model: from the journal where it is there already, else by asking.

        Raises:
            Stopped: a token or cost limit forbids the request.
            ModelError: the model could not be asked.
            ContextTooSmall: the newest user message does not fit the window.
        """
        self._asked += 1
        if self._asked <= len(self.record.replies):
            reply = self.record.replies[self._asked - 1]
            if reply.closing is not None:
                raise Stopped(reply.closing)
            return reply
        return await asking.ask(self)

    async def call(self, calls: Sequence[Call]) -> bool:
        """Take the calls of one reply through the gate and run those that may run, in order.

        Neighbours that only read run together. Returns whether all have their observations; `False` means that a person
        must decide first.
        """
        return await calling.run(self, calls)

    async def note(self, *events: NewEvent, durable: bool = False) -> None:
        """Journal facts. Raises `Conflict` when this session lost the thread."""
        await self.write(lambda: events, durable=durable)

    # -- stopping and ending

    async def stop(self) -> Stop | None:
        """Why the run must not go on, if so: limits, repeats, replies cut too often, a rejection that is not taken."""
        record = self.record
        if self._asked < len(record.replies):
            return None
        if record.over_calls:
            return "max_calls"
        if len(record.replies) >= CUTS and all(reply.finish == "length" for reply in record.replies[-CUTS:]):
            return "truncated"
        if record.replies and any(
            len(record.rejections(record.calls[call.id].signature)) >= REFUSALS
            for call in record.replies[-1].calls
            if call.id in record.calls
        ):
            return "rejected"
        verdict = check(record.steps(), record.steps_warned(REPEATED))
        if verdict == "stop":
            return "repeat"
        if verdict == "warn":
            await self.notice(REPEATED)
        return stop_before_ask(record.budget, record.spent, record.seconds(time.time()))

    async def notice(self, text: str) -> None:
        """Tell the model something, once after each reply, also when the run is resumed."""
        if self._asked == len(self.record.replies) and self._asked not in self.record.noticed:
            await self.note(event("message.added", {"message": encode(Notice(text))}))

    async def finish(self, stop: Stop, reply: ReplyRecord | None = None, output: Json = None) -> Run:
        """End the run with `stop` and the answer that `reply` holds."""
        await self.write(lambda: [repair.finished(self.record, stop, time.time(), reply, output)], release=True)
        return await self.view()

    async def close(self, stop: Stop) -> Run:
        """End the run by a limit, with a closing answer where what is left allows one."""
        last = self.record.replies[-1] if self.record.replies else None
        reply = last if last is not None and last.closing else await asking.closing_answer(self, stop)
        return await self.finish(stop, reply)

    async def pause(self) -> Run | None:
        """End this process's work until a person decides; `None` when a decision came in meanwhile."""
        written = await self.write(lambda: repair.paused(self.record), release=True)
        return await self.view() if written else None

    async def fail(self, error: Exception) -> Run:
        """End the run with an error. It can be resumed."""
        text = f"{type(error).__name__}: {error}"
        closing = [
            *repair.close_calls(self.thread, self.record, self.setup.toolbox, "the run failed"),
            repair.failed(self.record, text, time.time()),
        ]
        await self.write(lambda: closing, release=True)
        return await self.view()

    async def cancel(self) -> Run:
        """End the run because somebody interrupted it: every open call gets its observation."""
        await self.write(
            lambda: [
                *repair.close_calls(self.thread, self.record, self.setup.toolbox, "interrupted"),
                repair.finished(self.record, "cancelled", time.time()),
            ],
            release=True,
            durable=True,
        )
        return await self.view()

    async def view(self) -> Run:
        """The run as it stands."""
        return await run_of(self.journal, self.thread, self.record)

    # -- the journal

    async def write(
        self,
        build: Callable[[], Sequence[NewEvent]],
        *,
        durable: bool = False,
        release: bool = False,
        texts: Mapping[str, str] | None = None,
    ) -> int:
        """Append what `build` gives, in one transaction, and fold it. Returns how many events there were.

        `build` runs again when somebody else (a person who decides) wrote to the thread in between. Raises `Conflict`
        when the thread was taken over.
        """
        async with self._lock:
            while True:
                events = build()
                if not events:
                    return 0
                try:
                    await self.journal.append(
                        self.thread,
                        self.seq,
                        events,
                        owner=self.owner,
                        release=release,
                        durable=durable,
                        texts=texts,
                    )
                except Conflict:
                    if not await self._absorb():
                        raise
                    continue
                now = time.time()
                for entry in events:
                    self.fold(Event(self.thread, self.seq + 1, now, entry.kind, entry.body))
                if release and self.memory is not None:
                    self.memory.keep(self.thread, Remembered(self.seq, tuple(self.window), self.stored))
                return len(events)

    def fold(self, entry: Event) -> None:
        """Take in an event that is stored."""
        self.seq = entry.seq
        self.record.apply(entry)
        if entry.kind in MESSAGE_KINDS and (message := message_of(entry)) is not None:
            self.window.append(Seen.of(entry.seq, message))
        elif entry.kind == "window.cut":
            start = cast("int", entry.body["start"])
            self.window = [item for item in self.window if item.seq >= start]
        elif entry.kind == "field.set":
            apply_field(self.stored, entry.body)
        if self.watch is not None:
            self.watch(entry)

    def messages(self) -> list[Message]:
        """The window's messages, observations in the order of their calls."""
        return in_call_order([item.message for item in self.window])

    def observation(self, call: Call) -> Observation | None:
        """What is known of a call's outcome."""
        record = self.record.calls.get(call.id)
        return None if record is None else record.finished

    async def _absorb(self) -> bool:
        """Take in what others wrote to the thread while it was ours. False: nothing; `Conflict`: it is not ours."""
        head = await self.journal.head(self.thread)
        if head.owner != self.owner:
            raise Conflict(f"thread {self.thread!r} was taken over by another worker; nothing more is done here")
        found = False
        async for entry in self.journal.events(self.thread, after=self.seq):
            self.fold(entry)
            found = True
        return found

    @asynccontextmanager
    async def alive(self) -> AsyncGenerator[None]:
        """Keep the claim while the body runs; cancel the body when the claim is lost or somebody wishes it."""
        task = asyncio.current_task()
        lost: list[Exception] = []

        async def beat() -> None:
            while True:
                await asyncio.sleep(HEARTBEAT)
                try:
                    head = await self.journal.renew(self.thread, self.owner)
                    if head.seq > self.seq:
                        async with self._lock:
                            await self._absorb()
                except Conflict as error:
                    lost.append(error)
                if (lost or self.record.cancelling) and task is not None:
                    task.cancel()
                    return

        heart = asyncio.create_task(beat())
        try:
            yield
        except asyncio.CancelledError:
            if lost:
                raise lost[0] from None
            raise
        finally:
            heart.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await heart


REPEATED = (
    "You made the same call as before and got the same result. Do something else, or answer with what you know; "
    "another repeat ends the run."
)

__all__ = ["Session", "Stopped", "Watcher"]
