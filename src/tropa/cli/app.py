"""The commands. Only words and options stand here; what they need is imported when they run, so `--help` is quick."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from tropa.cli import demos, inbox, models, trails
from tropa.cli.faults import guarded
from tropa.cli.groups import group
from tropa.cli.options import (
    DEFAULT_STORE,
    AgentName,
    Approve,
    By,
    DryRun,
    Fields,
    Instructions,
    Json,
    MaxCalls,
    MaxCost,
    MaxSeconds,
    MaxSteps,
    MaxTokens,
    ModelName,
    StoreUrl,
    ThreadArgument,
    ThreadName,
    ToolNames,
)

app = group("An agent runtime: the model proposes; Tropa validates, asks, executes, records, stops.")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415

        typer.echo(f"tropa {version('tropa')}")
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """An agent runtime: the model proposes; Tropa validates, asks, executes, records, stops."""
    if debug:
        os.environ["TROPA_DEBUG"] = "1"


@app.command()
@guarded
def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The request, in your words.")],
    model: ModelName = None,
    tools: ToolNames = None,
    agent: AgentName = None,
    instructions: Instructions = None,
    thread: ThreadName = None,
    store: StoreUrl = DEFAULT_STORE,
    approve: Approve = "ask",
    dry_run: DryRun = False,
    max_steps: MaxSteps = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_seconds: MaxSeconds = None,
    max_calls: MaxCalls = None,
    field: Fields = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Leave the work to `tropa worker`s of this Postgres store.")
    ] = False,
    json: Json = False,
) -> int:
    """Take one request and work until it is answered, waits for a person, or is stopped."""
    from tropa.cli.agents import Choice  # noqa: PLC0415
    from tropa.cli.running import Limits, run_task  # noqa: PLC0415

    take = run_task
    if detach:
        from tropa.cli.workers import detach as take  # noqa: PLC0415
    return take(
        task,
        Choice(agent, tuple(tools or ()), model, instructions),
        Limits(max_steps, max_tokens, max_cost, max_seconds, max_calls),
        thread=thread,
        url=store,
        never=approve == "never",
        dry_run=dry_run,
        fields=field or [],
        json=json,
    )


@app.command()
@guarded
def chat(
    model: ModelName = None,
    tools: ToolNames = None,
    agent: AgentName = None,
    instructions: Instructions = None,
    thread: ThreadName = None,
    store: StoreUrl = DEFAULT_STORE,
    approve: Approve = "ask",
    max_steps: MaxSteps = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_seconds: MaxSeconds = None,
    max_calls: MaxCalls = None,
    field: Fields = None,
    json: Json = False,
) -> int:
    """Talk to an agent, line by line. Limits are for each turn. Leave with Ctrl-D."""
    from tropa.cli.agents import Choice  # noqa: PLC0415
    from tropa.cli.chatting import chat_on  # noqa: PLC0415
    from tropa.cli.running import Limits  # noqa: PLC0415

    return chat_on(
        Choice(agent, tuple(tools or ()), model, instructions),
        Limits(max_steps, max_tokens, max_cost, max_seconds, max_calls),
        thread=thread,
        url=store,
        never=approve == "never",
        fields=field or [],
        json=json,
    )


@app.command()
@guarded
def resume(
    thread: ThreadArgument,
    model: ModelName = None,
    tools: ToolNames = None,
    agent: AgentName = None,
    instructions: Instructions = None,
    store: StoreUrl = DEFAULT_STORE,
    max_steps: MaxSteps = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_seconds: MaxSeconds = None,
    max_calls: MaxCalls = None,
    by: By = None,
    json: Json = False,
) -> int:
    """Go on with a thread's latest run: after a decision, a crash, a failure, Ctrl-C or a limit."""
    from tropa.cli.agents import Choice  # noqa: PLC0415
    from tropa.cli.running import Limits, resume_thread  # noqa: PLC0415

    return resume_thread(
        thread,
        Choice(agent, tuple(tools or ()), model, instructions),
        Limits(max_steps, max_tokens, max_cost, max_seconds, max_calls),
        url=store,
        by=by,
        json=json,
    )


@app.command()
@guarded
def worker(
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="MOD:NAME",
            help="An agent whose threads to work on; may be repeated. [default: those the project lists]",
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Most threads at once.")] = 4,
    store: StoreUrl = DEFAULT_STORE,
    json: Json = False,
) -> int:
    """Work on the threads of a Postgres store, beside other workers, until SIGTERM or Ctrl-C."""
    from tropa.cli.worker import work  # noqa: PLC0415

    return work(store, agent, concurrency, json=json)


@app.command()
@guarded
def workers(store: StoreUrl = DEFAULT_STORE, json: Json = False) -> int:
    """Show which workers are alive, what they work on, and what waits."""
    from tropa.cli.workers import list_workers  # noqa: PLC0415

    return list_workers(store, json=json)


@app.command()
@guarded
def doctor(store: StoreUrl = DEFAULT_STORE, json: Json = False) -> int:
    """Check what Tropa needs on this machine: Python, the store, models, the terminal."""
    from tropa.cli.doctoring import examine  # noqa: PLC0415

    return examine(store, json=json)


app.add_typer(inbox.app, name="inbox")
app.add_typer(trails.app, name="trail")
app.add_typer(models.app, name="models")
app.add_typer(demos.app, name="demo")
