"""A thread, its agent and a person at the terminal: run, ask, decide, resume, and say how it ended."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

from tropa.agent import Agent
from tropa.cli.agents import Choice
from tropa.cli.card import Card
from tropa.cli.faults import INTERRUPTED, STATUS_CODES, Interrupted, print_json
from tropa.cli.forms import run_form
from tropa.cli.plain import plain
from tropa.cli.screen import CALLS, Progress, Screen
from tropa.cli.stores import command, store_flags
from tropa.cli.work import Worker
from tropa.errors import ThreadNotFound
from tropa.gate import Budget, Proposal
from tropa.messages import JsonObject
from tropa.model import Usage
from tropa.session import Run
from tropa.store import Store

_UNTOLD: JsonObject = {}


@dataclass(slots=True)
class Conversation:
    """Everything that a command needs to work on one thread. `url` and `choice` are what the user gave."""

    worker: Worker
    screen: Screen
    store: Store
    url: str
    thread: str
    agent: Agent
    choice: Choice
    by: str
    left: set[str] = field(default_factory=set[str])
    """Proposals that the person left for later."""
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self.progress = Progress(self.screen)

    def work(self, work: Coroutine[Any, Any, Run]) -> Run:
        """Run the agent, then ask and resume as long as somebody answers.

        Raises `Interrupted` after Ctrl-C or SIGTERM; the run is then recorded as cancelled.
        """
        try:
            run = self.worker.run(work)
            while run.status == "waiting" and self.screen.interactive and self._ask(run):
                run = self.worker.run(self.resume())
        finally:
            self.progress.end_line()
        return run

    async def resume(self, budget: Budget | None = None) -> Run:
        """Go on with the thread's latest run. See `Agent.resume`."""
        journal = self.store.journal
        start = (await journal.head(self.thread)).run
        self.progress.know([one async for one in journal.events(self.thread, after=start, kinds=CALLS)])
        return await self.agent.resume(self.thread, store=self.store, budget=budget, watch=self.progress)

    def close(self) -> None:
        """Let go of the agent's model and of the store."""
        self.worker.run(self.agent.close())
        self.worker.run(self.store.close())

    def end(self, work: Coroutine[Any, Any, Run]) -> int:
        """`work`, then say how it ended and give the exit code."""
        try:
            run = self.work(work)
        except Interrupted:
            self.interrupted()
            return INTERRUPTED
        return self.report(run)

    def report(self, run: Run) -> int:
        """Say how a run ended; the exit code that it means."""
        if self.screen.json:
            print_json(run_form(run))
            return STATUS_CODES[run.status]
        if run.answer and run.answer != self.progress.said:
            self.screen.answer(run.answer)
        for text, style in self.words(run):
            self.screen.line(text, style)
        return STATUS_CODES[run.status]

    def interrupted(self) -> None:
        """Say that the run was interrupted, and how to go on."""
        try:
            run: Run | None = self.worker.run(self.store.run(self.thread))
        except ThreadNotFound:
            run = None
        if self.screen.json:
            print_json(
                {"thread": self.thread, "status": "cancelled", "exit": INTERRUPTED} if run is None else run_form(run)
            )
            return
        more = "" if run is None else f"; go on with: {self.again('resume', self.thread)}"
        self.screen.line(f"Interrupted{more}", "yellow")

    def words(self, run: Run) -> list[tuple[str, str]]:
        """How a run stands, in lines with a style."""
        facts = " · ".join(
            [
                f"{run.steps} {'step' if run.steps == 1 else 'steps'}",
                *usage_words(run.usage),
                f"{run.seconds:.1f} s",
                f"thread {plain(run.thread, lines=False)}",
            ]
        )
        match run.status:
            case "completed":
                return [(facts, "dim")]
            case "waiting":
                lines = [line for one in run.pending for line in self._how_to_decide(one)]
                if not lines:
                    lines = [
                        (f"Decided, not carried out yet; go on with: {self.again('resume', run.thread)}", "yellow")
                    ]
                return [(f"Waiting for a person · {facts}", "yellow"), *lines]
            case "stopped":
                again = self.again("resume", run.thread)
                return [(f"Stopped by {run.stop} · {facts}", "yellow"), (f"Give it more and go on with: {again}", "")]
            case "failed":
                again = self.again("resume", run.thread)
                return [
                    (f"Failed: {plain(run.error or 'no reason was given')}", "red"),
                    (f"Try again with: {again}", ""),
                ]
            case "cancelled":
                return [(f"Interrupted; go on with: {self.again('resume', run.thread)}", "yellow")]
            case "running":
                return [(f"Another process goes on with thread {plain(run.thread, lines=False)}", "")]

    def again(self, *parts: str) -> str:
        """A command about this thread, with the store and agent that this one was given."""
        return plain(command(*parts, *store_flags(self.url), *self.choice.flags), lines=False)

    def card(self, proposal: Proposal) -> Card:
        """A proposal with what its tool says about itself."""
        return self.worker.run(card_of(self.store, proposal))

    def _how_to_decide(self, proposal: Proposal) -> list[tuple[str, str]]:
        if proposal.kind == "unknown":
            resolve = self.again("inbox", "resolve", proposal.id, "done")
            return [(f"  {resolve}   (or not_done, retry)", "")]
        return [(f"  {self.again('inbox', 'approve', proposal.id)}   (or edit, reject)", "")]

    def _ask(self, run: Run) -> bool:
        """Ask about everything that waits. Whether something was decided, so that going on makes sense."""
        from tropa.cli.question import ask  # noqa: PLC0415  # it imports rich

        decided = False
        for proposal in run.pending:
            if proposal.id in self.left:
                continue
            answer = ask(self.worker, self.screen, self.store, self.card(proposal), by=self.by)
            if answer == "decided":
                decided = True
            else:
                self.left.add(proposal.id)
            if answer == "leave":
                self.left.update(one.id for one in run.pending)
                break
        return decided or not run.pending


async def card_of(store: Store, proposal: Proposal) -> Card:
    """A proposal with its tool's description, schema and hints from the journal; without, where they are not there."""
    from tropa.cli.agents import stored_agent  # noqa: PLC0415

    _, definition = await stored_agent(store, proposal.thread)
    tools = cast("list[JsonObject]", definition["tools"])
    return Card(proposal, next((one for one in tools if one.get("tool") == proposal.tool), _UNTOLD))


def usage_words(usage: Usage) -> list[str]:
    """Tokens and cost in words; an unknown cost is called unknown."""
    about = "about " if usage.estimated else ""
    tokens = f"{about}{usage.input:,} tokens in, {usage.output:,} out"
    if usage.cost is None:
        return [tokens, "cost unknown"]
    return [tokens, "no cost" if usage.cost == 0 else f"${usage.cost:.4f}"]
