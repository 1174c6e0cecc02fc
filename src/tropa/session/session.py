"""The session: ask, call, note. Every operation on a thread is journaled here, and nowhere else.

Resuming is running the same program again: `ask` and `call` answer from the journal what is already known from it, so a
reply is not asked for twice and a finished call is not run again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tropa.events import Stop, event
from tropa.gate import stop_before_ask
from tropa.gate.repeat import check
from tropa.journal import Journal
from tropa.messages import Assistant, Call, Json, Notice, encode
from tropa.session import asking, calling, repair
from tropa.session.held import Held, Watcher
from tropa.session.outcome import Run, Stopped
from tropa.session.record import ReplyRecord
from tropa.session.setup import Setup
from tropa.session.view import run_of

CUTS = 3
"""Replies in a row that were cut by the length limit before the run stops."""
REFUSALS = 3
"""Rejected attempts at one call before the run stops."""


class Session(Held):
    """The operations on a held thread, and how its run ends. Made by `begin` and `reopen`."""

    def __init__(
        self, journal: Journal, thread: str, setup: Setup, owner: str, *, watch: Watcher | None = None
    ) -> None:
        super().__init__(journal, thread, setup, owner, watch=watch)
        self._asked = 0

    # -- ask and call; `note` is `Held.note`

    async def ask(self) -> ReplyRecord:
        """The next reply of the model: from the journal where it is there already, else by asking.

        Raises:
            Stopped: a token or cost limit forbids the request.
            ModelError: the model could not be asked.
            ContextTooSmall: the newest user message does not fit the window.
        """
        await self._last_word()
        self._asked += 1
        if self._asked <= len(self.record.replies):
            reply = self.record.replies[self._asked - 1]
            if reply.closing is not None:
                raise Stopped(reply.closing)
            return reply
        return await asking.ask(self)

    async def _last_word(self) -> None:
        """Where the last word was the model's own, said when the run was ended or broken off, it is told to go on."""
        last = self.window[-1] if self.window else None
        if self._asked < len(self.record.replies) or last is None:
            return
        if isinstance(last.message, Assistant) and last.message.text and last.seq not in self.record.said():
            await self.notice(GO_ON)

    async def call(self, calls: Sequence[Call]) -> bool:
        """Take the calls of one reply through the gate and run those that may run, in order.

        Neighbours that only read run together. Returns whether all have their observations; `False` means that a person
        must decide first.
        """
        return await calling.run(self, calls)

    # -- stopping and ending

    async def stop(self) -> Stop | None:
        """Why the run must not go on, if so: limits, repeats, replies cut too often, a rejection that is not taken."""
        record = self.record
        if self._asked < len(record.replies):
            return None
        if record.over_calls:
            return "max_calls"
        newest = record.replies[record.fresh :][-CUTS:]
        if len(newest) == CUTS and all(reply.finish == "length" for reply in newest):
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
        if self._asked == len(self.record.replies) and (self._asked, text) not in self.record.noticed:
            await self.note(event("message.added", {"message": encode(Notice(text))}))

    async def finish(
        self, stop: Stop, reply: ReplyRecord | None = None, output: Json = None, error: str | None = None
    ) -> Run:
        """End the run with `stop` and the answer that `reply` holds."""
        return await self._end("the run is over", stop, reply, output, error)

    async def close(self, stop: Stop) -> Run:
        """End the run by a limit, with a closing answer where what is left allows one."""
        last = self.record.replies[-1] if self.record.replies else None
        reply = last if last is not None and last.closing else await asking.closing_answer(self, stop)
        return await self.finish(stop, reply)

    async def pause(self) -> Run | None:
        """End this process's work until a person decides; `None` when a decision came in meanwhile."""
        written = await self.write(lambda: repair.paused(self.record), release=True, durable=True)
        return await self.view() if written else None

    async def park(self) -> Run:
        """Let go of the run between two steps, for another worker to go on with."""
        await self.write(lambda: [repair.parked(self.record)], release=True, durable=True)
        return await self.view()

    async def fail(self, error: Exception) -> Run:
        """End the run with an error. It can be resumed."""
        return await self._end("the run failed", "error", error=f"{type(error).__name__}: {error}")

    async def cancel(self) -> Run:
        """End the run because somebody interrupted it: every open call gets its observation."""
        return await self._end("interrupted", "cancelled")

    async def _end(
        self, why: str, stop: Stop, reply: ReplyRecord | None = None, output: Json = None, error: str | None = None
    ) -> Run:
        """Close every open call and end the run, in one append; nothing when it ended or was given back already."""
        if not self.released:
            await self.write(
                lambda: [
                    *repair.close_calls(self.thread, self.record, why),
                    repair.finished(self.record, stop, time.time(), reply, output, error),
                ],
                release=True,
                durable=stop == "cancelled",
            )
            self.setup.forget_secrets(self.thread)
        return await self.view()

    async def view(self) -> Run:
        """The run as it stands."""
        return await run_of(self.journal, self.thread, self.record)


REPEATED = (
    "You made the same call as before and got the same result. Do something else, or answer with what you know; "
    "another repeat ends the run."
)
GO_ON = "Go on with the task from where it was broken off."

__all__ = ["Session", "Stopped", "Watcher"]
