"""Options that several commands share, each with the words that `--help` shows."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

ThreadArgument: TypeAlias = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's identifier.")]
IdArgument: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The proposal, as `tropa inbox` names it.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document, and ask nothing.")]
StoreUrl: TypeAlias = Annotated[
    str,
    typer.Option(
        "--store", envvar="TROPA_STORE", show_envvar=True, metavar="URL", help="`sqlite:///FILE`, or the file's path."
    ),
]
ModelName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="The model, such as needle or openai:NAME; `tropa models` lists them. [default: $TROPA_MODEL, else needle]",
    ),
]
AgentName: TypeAlias = Annotated[
    str | None, typer.Option("--agent", metavar="MOD:NAME", help="An `Agent`, or a function that makes one.")
]
ToolNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tools", metavar="MOD:NAME", help="A tool, a function, or a list of them; may be repeated."),
]
Instructions: TypeAlias = Annotated[
    str | None, typer.Option("--instructions", metavar="TEXT", help="The system instruction (without --agent).")
]
ThreadName: TypeAlias = Annotated[
    str | None, typer.Option("--thread", metavar="ID", help="The conversation to go on with; a new one otherwise.")
]
Approve: TypeAlias = Annotated[
    Literal["ask", "never"],
    typer.Option("--approve", help="Side effects: ask a person, or never allow any (they are refused)."),
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Execute no side effects; the trail says what would have happened.")
]
MaxSteps: TypeAlias = Annotated[
    int | None, typer.Option("--max-steps", "--budget-steps", min=1, help="Most steps of the model.")
]
MaxTokens: TypeAlias = Annotated[int | None, typer.Option(min=0, help="Most tokens, input and output together.")]
MaxCost: TypeAlias = Annotated[float | None, typer.Option(min=0, help="Most money, in US dollars.")]
MaxSeconds: TypeAlias = Annotated[
    float | None, typer.Option(min=0, help="Most working time; waiting for people is not counted.")
]
MaxCalls: TypeAlias = Annotated[int | None, typer.Option(min=0, help="Most executed tool calls.")]
Fields: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="NAME=VALUE", help="Set a field of the state (JSON, else text); may be repeated."),
]
By: TypeAlias = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides. [default: the user of this system]")
]
Reason: TypeAlias = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; the model is told the reason of a rejection.")
]
NoResume: TypeAlias = Annotated[
    bool, typer.Option("--no-resume", help="Only record the decision; `tropa resume` goes on later.")
]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", min=1, help="Most rows.")]

DEFAULT_STORE = ".tropa/trail.db"
"""Where threads live when nothing else is said: in the current folder."""
