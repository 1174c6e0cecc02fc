"""`tropa run` and `tropa resume`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tropa.cli.agents import Choice, agent_of, chosen, parse_fields, refuse_all_effects, with_limits
from tropa.cli.conversation import Conversation
from tropa.cli.faults import WAITING, complain, print_json
from tropa.cli.forms import run_form
from tropa.cli.plain import plain
from tropa.cli.screen import Screen
from tropa.cli.stores import command, demo_folder, open_store, store_flags, whoever
from tropa.cli.work import Worker
from tropa.errors import UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run as the flags gave them; their names are those of `Budget`."""

    steps: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    calls: int | None = None


def new_thread() -> str:
    """A fresh identifier that is easy to copy and never looks like an option."""
    return f"t{secrets.token_hex(6)}"


def run_task(
    task: str,
    choice: Choice,
    limits: Limits,
    *,
    thread: str | None,
    url: str,
    never: bool,
    dry_run: bool,
    fields: Sequence[str],
    json: bool,
) -> int:
    """Take one request; the exit code."""
    if not task.strip():
        raise UsageError("the task is empty; say what is to be done")
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
            work = agent.run(
                task,
                store=talk.store,
                thread=talk.thread,
                budget=with_limits(agent, asdict(limits)),
                dry_run=dry_run,
                watch=talk.progress,
                **given,  # type: ignore[arg-type]
            )
            return talk.end(work)
        finally:
            talk.close()


def resume_thread(thread: str, choice: Choice, limits: Limits, *, url: str, by: str | None, json: bool) -> int:
    """Go on with a thread; in a terminal, what it waits for is asked first. The exit code."""
    with Worker() as worker:
        store = open_store(url)
        try:
            agent = worker.run(agent_of(store, thread, choice, demo_folder(url)))
            if agent is None:
                complain(no_agent(thread, url), as_json=json, code=WAITING)
                return WAITING
            talk = Conversation(worker, Screen(json=json), store, url, thread, agent, choice, whoever(by))
            budget = with_limits(agent, asdict(limits))
            try:
                return talk.end(talk.resume(budget))
            finally:
                worker.run(agent.close())
        finally:
            worker.run(store.close())


def no_agent(thread: str, url: str) -> str:
    """What to do when nobody said which agent goes on."""
    again = plain(command("resume", thread, "--agent", "MODULE:NAME", *store_flags(url)), lines=False)
    return (
        f"which agent goes on with thread {thread!r} is not known here: run `{again}`,"
        ' or list your agents in pyproject.toml under [tool.tropa] as agents = ["MODULE:NAME"]'
    )


def carry_on(
    worker: Worker, url: str, thread: str, choice: Choice, by: str, *, json: bool, decision: dict[str, object]
) -> int:
    """After a recorded decision: go on with the thread in this process, say how it ended, and give the exit code.

    Where the agent is not known, the decision stays recorded and the way to go on is said; that is exit code 3.
    """
    store = open_store(url)
    screen = Screen(json=json)
    screen.interactive = False  # one decision was asked for; what waits next is shown, not asked
    try:
        agent = worker.run(agent_of(store, thread, choice, demo_folder(url)))
        if agent is None:
            from tropa.cli.workers import woken  # noqa: PLC0415  # only Postgres has workers

            sentence = f"the decision is recorded, but {no_agent(thread, url)}"
            if woken(url, thread):
                decision["woken"] = True
                sentence = (
                    "the decision is recorded; a worker that knows the agent goes on (`tropa workers` shows them)"
                )
            if json:
                print_json({"decision": decision, "run": None, "error": sentence, "exit": WAITING})
            complain(sentence)
            return WAITING
        talk = Conversation(worker, screen, store, url, thread, agent, choice, by)
        try:
            if not json:
                return talk.end(talk.resume())
            run = talk.work(talk.resume())
            form = run_form(run)
            print_json({"decision": decision, "run": form, "exit": form["exit"]})
            return int(str(form["exit"]))
        finally:
            worker.run(agent.close())
    finally:
        worker.run(store.close())
