"""`tropa chat`: one line, one turn."""

from __future__ import annotations

import signal
import sys
from collections.abc import Coroutine, Sequence
from dataclasses import asdict
from typing import Any

from tropa.cli.agents import Choice, chosen, parse_fields, refuse_all_effects, with_limits
from tropa.cli.conversation import Conversation
from tropa.cli.faults import DONE, INTERRUPTED, WAITING, Interrupted, print_json
from tropa.cli.forms import run_form
from tropa.cli.plain import plain
from tropa.cli.running import Limits, new_thread
from tropa.cli.screen import Screen
from tropa.cli.stores import open_store, whoever
from tropa.cli.work import Break, Worker
from tropa.errors import StoreError, ThreadNotFound
from tropa.messages import Json, JsonObject
from tropa.session import Run

_PROMPT = "you> "
_LEAVE = "Ctrl-D leaves; the conversation stays. Ctrl-C during an answer stops it, and twice in a row ends the program."


def chat_on(
    choice: Choice, limits: Limits, *, thread: str | None, url: str, never: bool, fields: Sequence[str], json: bool
) -> int:
    """Talk until the input ends. The exit code is that of the last turn, or 3 when something waits."""
    given = parse_fields(fields)
    agent = chosen(choice, given)
    if never:
        refuse_all_effects(agent)
    with Worker() as worker:
        talk = Conversation(
            worker,
            Screen(json=json),
            open_store(url, create=True),
            url,
            new_thread() if thread is None else thread,
            agent,
            choice,
            whoever(None),
        )
        try:
            return _Chat(talk, limits, given).loop()
        finally:
            talk.close()


class _Chat:
    """The loop at the prompt. Without a terminal, each line of stdin is a turn."""

    def __init__(self, talk: Conversation, limits: Limits, fields: dict[str, Json]) -> None:
        self.talk = talk
        self.limits = limits
        self.fields = fields
        self.turns: list[JsonObject] = []
        self.code = DONE

    def loop(self) -> int:
        talk = self.talk
        if talk.screen.interactive:
            name = plain(talk.agent.setup.model.name, lines=False)
            talk.screen.line(f"{name} · thread {plain(talk.thread, lines=False)} · Ctrl-D leaves", "dim")
        self._take_up()
        while True:
            try:
                line = self._read()
            except Break as broken:
                if broken.signal != signal.SIGINT:
                    self.code = INTERRUPTED
                    break
                talk.worker.pressed()
                if not broken.typed:
                    talk.screen.line(_LEAVE, "dim")
                continue
            except EOFError:
                break
            if line.strip() in {"/quit", "/exit"}:
                break
            if line.strip():
                self._turn(line)
        return self._leave()

    def _read(self) -> str:
        if self.talk.screen.interactive:
            return self.talk.worker.read_line(_PROMPT, remember=True)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    def _take_up(self) -> None:
        """Finish what an earlier process left: ask what waits, carry out what was decided."""
        try:
            run = self.talk.worker.run(self.talk.store.run(self.talk.thread))
        except ThreadNotFound:
            return
        if run.status == "waiting":
            self._do(self.talk.resume())

    def _turn(self, line: str) -> None:
        talk = self.talk
        try:
            waits = talk.worker.run(talk.store.run(talk.thread)).status == "waiting"
        except ThreadNotFound:
            waits = False
        if waits:
            # What was left for later comes first now: a waiting thread takes no new message.
            talk.left.clear()
            self._do(talk.resume())
            if self.code == WAITING:
                talk.screen.line("Your message was not sent: decide first.", "yellow")
                return
        self._do(
            talk.agent.run(
                line,
                store=talk.store,
                thread=talk.thread,
                budget=with_limits(talk.agent, asdict(self.limits)),
                watch=talk.progress,
                **self.fields,  # type: ignore[arg-type]
            )
        )
        self.fields = {}

    def _do(self, work: Coroutine[Any, Any, Run]) -> None:
        talk = self.talk
        try:
            run = talk.work(work)
        except Interrupted:
            self.code = INTERRUPTED
            if talk.screen.interactive:
                talk.screen.line("Stopped. What was said and done is kept.", "yellow")
                self.code = DONE
                return
            raise
        except StoreError as error:
            if not talk.screen.interactive:
                raise
            talk.screen.line(plain(str(error)), "red")
            return
        self.turns.append(run_form(run))
        self.code = int(str(self.turns[-1]["exit"]))
        if talk.screen.json:
            return
        if run.answer and run.answer != talk.progress.said:
            talk.screen.answer(run.answer)
        if run.status != "completed":
            for text, style in talk.words(run):
                talk.screen.line(text, style)

    def _leave(self) -> int:
        talk = self.talk
        if talk.screen.json:
            print_json({"thread": talk.thread, "turns": [*self.turns], "exit": self.code})
        elif self.turns or not talk.screen.interactive:
            talk.screen.line(f"Go on later with: {talk.again('chat', '--thread', talk.thread)}", "dim")
        return self.code
