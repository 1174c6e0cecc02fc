"""A trail for people: what was asked, each step with its calls, decisions and results, what it took.

The number at the right is the event in the journal: a place that `tropa trail fork --at` and findings point to.
"""

from __future__ import annotations

from datetime import datetime
from typing import cast

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tropa.cli.conversation import usage_words
from tropa.cli.plain import call_line, one_line, plain, shorten
from tropa.cli.screen import result_line
from tropa.events import Event
from tropa.messages import JsonObject, Media, User
from tropa.model import Usage
from tropa.session import Run
from tropa.trail import Trail, TrailCall, TrailRun, TrailStep

_SHORT = 400
"""Characters of an argument list or a result without --full."""
_LONG = 2000
"""Characters of a text without --full."""
_STYLES = {
    "completed": "green",
    "running": "cyan",
    "failed": "red",
    "ok": "green",
    "error": "red",
}
_DECISIONS = {
    "approve": "approved",
    "edit": "approved with other arguments",
    "reject": "rejected",
    "done": "resolved as done",
    "not_done": "resolved as not done",
    "retry": "to be tried again",
}


def print_trail(console: Console, trail: Trail, latest: Run, *, model: str, full: bool = False) -> None:
    """Print a trail. `latest` is its latest run as it stands, `model` that run's model."""
    usage = Usage()
    for run in trail.runs:
        usage += latest.usage if run.seq == latest.seq else _usage(run)
    seconds = sum(latest.seconds if run.seq == latest.seq else run.seconds for run in trail.runs)
    steps = sum(len(run.steps) for run in trail.runs)
    head = Text("Thread ")
    head.append(plain(trail.thread, lines=False), style="bold")
    names = list(dict.fromkeys(plain(run.name, lines=False) for run in trail.runs))
    head.append(f"  {', '.join(names)} on {plain(model, lines=False)}")
    head.append("  ")
    head.append(_status(latest.status, latest.stop), style=_STYLES.get(latest.status, "yellow"))
    console.print(head)
    counts = [_count(len(trail.runs), "run"), _count(steps, "step"), _count(len(trail.events), "event")]
    facts = [*usage_words(usage), f"{seconds:.1f} s of work", *counts]
    console.print(Text(" · ".join(facts), style="dim"))
    places = _places(trail)
    for number, run in enumerate(trail.runs, 1):
        console.print()
        _print_run(console, run, number, places.get(run.seq, {}), full=full)


def _places(trail: Trail) -> dict[int, dict[str, int]]:
    """For each run (by its first event) the events of the user's message and of the end."""
    places: dict[int, dict[str, int]] = {}
    run = 0
    for entry in trail.events:
        if entry.kind == "run.started":
            run = entry.seq
        elif entry.kind in {"message.added", "run.finished"}:
            known = places.setdefault(run, {})
            known[entry.kind] = entry.seq if entry.kind == "run.finished" else known.get(entry.kind, entry.seq)
    return places


def _print_run(console: Console, run: TrailRun, number: int, places: dict[str, int], *, full: bool) -> None:
    title = Text(f"Run {number}", style="bold")
    title.append(f"  {datetime.fromtimestamp(run.started).astimezone():%Y-%m-%d %H:%M:%S}", style="dim")
    if run.dry:
        title.append("  dry run: no side effects", style="cyan")
    if run.resumed:
        title.append(f"  resumed {_count(run.resumed, 'time')}", style="dim")
    _row(console, title, run.seq)
    if run.input is not None:
        said = _labelled("user", _cut(_words(run.input), _LONG, full=full), "bold blue")
        _row(console, said, places.get("message.added"), 1)
    for step in run.steps:
        _print_step(console, step, final=step.seq == run.steps[-1].seq and run.stop == "answered", full=full)
    end = Text("■ ", style=_STYLES.get(run.status, "yellow"))
    end.append(_status(run.status, run.stop), style=_STYLES.get(run.status, "yellow"))
    if run.error:
        end.append(f": {plain(run.error)}")
    if run.usage.tokens:
        end.append(f"  {' · '.join([*usage_words(run.usage), f'{run.seconds:.1f} s'])}", style="dim")
    _row(console, end, places.get("run.finished"), 1)


def _print_step(console: Console, step: TrailStep, *, final: bool, full: bool) -> None:
    about = "~" if step.usage.estimated else ""
    title = Text(f"step {step.number}", style="bold")
    title.append(f"  {about}{step.usage.input:,} in · {step.usage.output:,} out · {step.seconds:.1f} s", style="dim")
    if step.closing:
        title.append(f"  closing answer ({step.closing})", style="yellow")
    if step.finish in {"length", "cancelled", "filter"}:
        words = {"length": "cut off by the length limit", "cancelled": "interrupted", "filter": "refused by the server"}
        title.append(f"  {words[step.finish]}", style="yellow")
    _row(console, title, step.seq, 1)
    if step.message.reasoning.strip():
        reasoning = _cut(plain(step.message.reasoning.strip()), _LONG, full=full)
        _row(console, _labelled("thought", reasoning, "dim italic", "dim italic"), None, 2)
    if step.message.text.strip():
        label = "answer" if final and not step.calls else "text"
        said = _cut(plain(step.message.text.strip()), _LONG, full=full)
        _row(console, _labelled(label, said, "bold green" if label == "answer" else "bold"), None, 2)
    for call in step.calls:
        _print_call(console, call, full=full)
    for notice in step.notices:
        _row(console, _labelled("notice", plain(notice), "dim", "dim"), None, 2)


def _print_call(console: Console, call: TrailCall, *, full: bool) -> None:
    line = Text(_cut(call_line(call.tool, call.arguments), _SHORT, full=full))
    line.stylize("bold", 0, len(plain(call.tool, lines=False)))
    _row(console, _labelled("call", line, "bold magenta"), call.seq, 2)
    if call.decision is not None:
        _below(console, _decision(call.decision))
    elif call.verdict == "ask" and call.observation is None:
        _below(console, Text("waits for a person", style="yellow"))
    elif call.verdict == "dry":
        _below(console, Text("dry run: not executed", style="cyan"))
    if call.doubt:
        _below(console, Text(f"outcome unknown: {plain(call.doubt)}", style="yellow"))
    if call.observation is not None:
        status = call.observation.status
        result = Text("→ ", style=_STYLES.get(status, "yellow"))
        if status != "ok":
            result.append(f"{status}: ", style=_STYLES.get(status, "yellow"))
        result.append(_cut(result_line(call.observation), _SHORT, full=full))
        attempts = f", attempt {call.attempts}" if call.attempts > 1 else ""
        result.append(f"  {call.seconds:.1f} s{attempts}", style="dim")
        _below(console, result)


def _below(console: Console, text: Text) -> None:
    """A line under a call."""
    _row(console, _labelled("", text, ""), None, 2)


def _decision(decision: JsonObject) -> Text:
    kind = cast("str", decision["decision"])
    text = Text(f"{_DECISIONS.get(kind, plain(kind))} by {plain(str(decision['by']), lines=False)}")
    text.stylize("yellow" if kind in {"reject", "not_done"} else "cyan")
    if "arguments" in decision:
        text.append(f": {one_line(decision['arguments'])}")
    if reason := decision.get("reason"):
        text.append(f": {plain(str(reason), lines=False)}", style="italic")
    return text


def event_line(entry: Event) -> Text:
    """An event on one line: number, time, kind, and the start of its body."""
    line = Text(f"{entry.seq:>5}  ", style="dim")
    line.append(f"{datetime.fromtimestamp(entry.time).astimezone():%H:%M:%S}  ", style="dim")
    line.append(f"{plain(entry.kind, lines=False):<16}  ", style="bold")
    line.append(one_line(entry.body, _SHORT))
    return line


def _row(console: Console, what: RenderableType, place: int | None, indent: int = 0) -> None:
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1, overflow="fold")
    table.add_column(justify="right", no_wrap=True, style="dim", min_width=5)
    table.add_row(what, "" if place is None else f"#{place}")
    console.print(Padding(table, (0, 0, 0, 2 * indent)))


def _labelled(label: str, text: str | Text, style: str, text_style: str = "") -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, min_width=7)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, style=style), text if isinstance(text, Text) else Text(text, style=text_style))
    return grid


def _words(message: User) -> str:
    return plain(
        "".join(
            f"[{part.media_type}, {len(part.data)} bytes]" if isinstance(part, Media) else part.text
            for part in message.parts
        )
    )


def _usage(run: TrailRun) -> Usage:
    if run.usage.tokens:
        return run.usage
    total = Usage()
    for step in run.steps:
        total += step.usage
    return total


def _status(status: str, stop: str | None) -> str:
    return status if stop is None or stop in {"error", "cancelled"} else f"{status} ({stop})"


def _cut(text: str, limit: int, *, full: bool) -> str:
    return text if full else shorten(text, limit)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
