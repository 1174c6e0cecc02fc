"""`tropa inbox`: what waits for a person, and the person's decisions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tropa.cli.faults import DONE, WAITING, guarded
from tropa.cli.groups import group
from tropa.cli.options import (
    DEFAULT_STORE,
    AgentName,
    By,
    IdArgument,
    Json,
    ModelName,
    NoResume,
    Reason,
    StoreUrl,
    ToolNames,
)

if TYPE_CHECKING:
    from tropa.cli.agents import Choice
    from tropa.gate import Proposal
    from tropa.store import Store

app = group("Decide on what waits for a person. Alone it lists.", default="list")


@app.command("list")
@guarded
def list_pending(store: StoreUrl = DEFAULT_STORE, json: Json = False) -> int:
    """List what waits, oldest first."""
    from tropa.cli.pending import list_all  # noqa: PLC0415

    return list_all(store, json=json)


@app.command()
@guarded
def show(id: IdArgument, store: StoreUrl = DEFAULT_STORE, json: Json = False) -> int:
    """Show one proposal: its arguments, where each came from, what the tool does."""
    from tropa.cli.pending import show_one  # noqa: PLC0415

    return show_one(id, store, json=json)


@app.command()
@guarded
def approve(
    id: IdArgument,
    by: By = None,
    reason: Reason = None,
    no_resume: NoResume = False,
    model: ModelName = None,
    tools: ToolNames = None,
    agent: AgentName = None,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Let exactly this call run, once, and go on with its run."""
    from tropa.cli.agents import Choice  # noqa: PLC0415

    who = _who(by)
    choice = Choice(agent, tuple(tools or ()), model)
    return _decide(
        id, store, lambda held: held.approve(id, by=who, reason=reason), "approve", who, choice, no_resume, json=json
    )


@app.command()
@guarded
def edit(
    id: IdArgument,
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another value for an argument; may be repeated."),
    ] = None,
    arguments: Annotated[
        str | None, typer.Option("--arguments", metavar="JSON", help="All arguments anew, as a JSON object.")
    ] = None,
    by: By = None,
    reason: Reason = None,
    no_resume: NoResume = False,
    model: ModelName = None,
    tools: ToolNames = None,
    agent: AgentName = None,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Let the call run with other arguments; they are checked first, and recorded beside the original."""
    from tropa.cli.agents import Choice  # noqa: PLC0415
    from tropa.cli.pending import edited  # noqa: PLC0415

    who = _who(by)
    choice = Choice(agent, tuple(tools or ()), model)

    async def take(held: Store) -> Proposal:
        changed = await edited(held, id, set or [], arguments)
        return await held.approve(id, by=who, reason=reason, edit=changed)

    return _decide(id, store, take, "edit", who, choice, no_resume, json=json)


@app.command()
@guarded
def reject(
    id: IdArgument,
    reason: Reason = None,
    by: By = None,
    no_resume: NoResume = False,
    model: ModelName = None,
    tools: ToolNames = None,
    agent: AgentName = None,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Do not let the call run; the model is told so, with the reason, and goes on."""
    from tropa.cli.agents import Choice  # noqa: PLC0415

    who = _who(by)
    choice = Choice(agent, tuple(tools or ()), model)
    return _decide(
        id, store, lambda held: held.reject(id, by=who, reason=reason), "reject", who, choice, no_resume, json=json
    )


@app.command()
@guarded
def resolve(
    id: IdArgument,
    outcome: Annotated[
        Literal["done", "not_done", "retry"],
        typer.Argument(metavar="done|not_done|retry", help="What became of the call; retry runs it again."),
    ],
    by: By = None,
    reason: Reason = None,
    no_resume: NoResume = False,
    model: ModelName = None,
    tools: ToolNames = None,
    agent: AgentName = None,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Say what became of a call that was started and whose outcome is unknown."""
    from tropa.cli.agents import Choice  # noqa: PLC0415

    who = _who(by)
    choice = Choice(agent, tuple(tools or ()), model)
    return _decide(
        id,
        store,
        lambda held: held.resolve(id, outcome, by=who, reason=reason),
        outcome,
        who,
        choice,
        no_resume,
        json=json,
    )


def _who(by: str | None) -> str:
    from tropa.cli.stores import whoever  # noqa: PLC0415

    return whoever(by)


def _decide(
    id: str,
    url: str,
    take: Callable[[Store], Coroutine[Any, Any, Proposal]],
    decision: str,
    by: str,
    choice: Choice,
    no_resume: bool,
    *,
    json: bool,
) -> int:
    from tropa.cli.pending import record  # noqa: PLC0415
    from tropa.cli.running import carry_on  # noqa: PLC0415
    from tropa.cli.work import Worker  # noqa: PLC0415

    with Worker() as worker:
        proposal, over = record(worker, url, take, decision, by, announce=not json)
        told: dict[str, object] = {"id": id, "decision": decision, "by": by, "thread": proposal.thread}
        if not no_resume and not over:
            return carry_on(worker, url, proposal.thread, choice, by, json=json, decision=told)
    if not over:
        from tropa.cli.workers import woken  # noqa: PLC0415

        if woken(url, proposal.thread):
            told["woken"] = True
    code = DONE if over else WAITING
    if json:
        from tropa.cli.faults import print_json  # noqa: PLC0415

        print_json({"decision": told, "run": None, "exit": code})
    return code
