"""A trail: everything that happened on a thread, in order, as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

from tropa.events import Event, in_call_order
from tropa.messages import Assistant, JsonObject, Message, Notice, Observation, User, decode
from tropa.model import Usage


@dataclass(slots=True)
class TrailCall:
    """One call: what was proposed, what a person said, how often it was started, what came of it.

    `arguments` are the canonical ones that were proposed, `given` the model's own, `decision` the latest of a person,
    with `arguments` where they were edited. `attempts` is how often it was started (0: never).
    """

    id: str
    tool: str
    arguments: JsonObject
    verdict: str
    seq: int
    given: JsonObject
    decision: JsonObject | None = None
    doubt: str | None = None
    attempts: int = 0
    observation: Observation | None = None
    error: str | None = None
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the call did not give a result: refused, rejected, raised, timed out, unknown."""
        return self.observation is not None and not self.observation.ok


@dataclass(slots=True)
class TrailStep:
    """One reply of the model and what its calls led to. `seconds` is how long the reply took."""

    number: int
    seq: int
    message: Assistant
    finish: str
    usage: Usage
    seconds: float
    prompt_tokens: int = 0
    exact: bool = True
    closing: str | None = None
    calls: list[TrailCall] = field(default_factory=list[TrailCall])
    notices: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class TrailRun:
    """One request and all that was done for it. `usage` is the sum so far until the run is over."""

    run: str
    name: str
    seq: int
    started: float
    dry: bool = False
    input: User | None = None
    steps: list[TrailStep] = field(default_factory=list[TrailStep])
    calls: dict[str, TrailCall] = field(default_factory=dict[str, TrailCall])
    resumed: int = 0
    paused: int = 0
    status: str = "running"
    stop: str | None = None
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    answer: str = ""
    error: str | None = None


@dataclass(slots=True)
class Trail:
    """A read-only view over a thread's events."""

    thread: str
    events: list[Event]
    runs: list[TrailRun]
    messages: list[Message]

    def __iter__(self) -> Iterator[TrailStep]:
        """The steps of all runs, in order."""
        return (step for run in self.runs for step in run.steps)


def trail_of(thread: str, events: Iterable[Event]) -> Trail:
    """Read events, oldest first, as a trail. Kinds that are not known stay in `events` and say nothing here."""
    trail = Trail(thread, [], [], [])
    request: JsonObject = {}
    for entry in events:
        trail.events.append(entry)
        body = entry.body
        if "message" in body:
            trail.messages.append(decode(cast("JsonObject", body["message"])))
        if entry.kind == "run.started":
            name = cast("str", body.get("name", ""))
            trail.runs.append(
                TrailRun(cast("str", body["run"]), name, entry.seq, entry.time, dry=bool(body.get("dry")))
            )
        elif entry.kind == "model.requested":
            request = body
        if trail.runs:
            _into_run(_concerned(trail.runs, entry), entry, request)
    trail.messages = in_call_order(trail.messages)
    return trail


def _concerned(runs: list[TrailRun], entry: Event) -> TrailRun:
    """The run that an event belongs to: a person may settle a call of a run that is long over."""
    call = entry.body.get("call")
    return next((run for run in reversed(runs) if call in run.calls), runs[-1])


def _into_run(run: TrailRun, entry: Event, request: JsonObject) -> None:
    body = entry.body
    match entry.kind:
        case "message.added":
            message = decode(cast("JsonObject", body["message"]))
            if isinstance(message, User):
                run.input = message
            elif isinstance(message, Notice) and run.steps:
                run.steps[-1].notices.append(message.text)
        case "model.replied":
            run.usage += Usage.from_json(cast("JsonObject", body["usage"]))
            run.steps.append(
                TrailStep(
                    len(run.steps) + 1,
                    entry.seq,
                    cast("Assistant", decode(cast("JsonObject", body["message"]))),
                    cast("str", body["finish"]),
                    Usage.from_json(cast("JsonObject", body["usage"])),
                    cast("float", body["seconds"]),
                    cast("int", request.get("tokens", 0)),
                    bool(request.get("exact", True)),
                    cast("str | None", request.get("closing")),
                )
            )
        case "call.proposed":
            call = TrailCall(
                cast("str", body["call"]),
                cast("str", body["tool"]),
                cast("JsonObject", body["arguments"]),
                cast("str", body["verdict"]),
                entry.seq,
                cast("JsonObject", body.get("given", body["arguments"])),
            )
            if call.id not in run.calls and run.steps:
                run.steps[-1].calls.append(call)
            elif run.steps:
                run.steps[-1].calls = [call if one.id == call.id else one for one in run.steps[-1].calls]
            run.calls[call.id] = call
        case "run.resumed":
            run.resumed += 1
            run.status = "running"
        case "run.paused":
            run.paused += 1
            run.status = "waiting"
        case "run.finished":
            run.status, run.stop = cast("str", body["status"]), cast("str", body["stop"])
            run.usage, run.seconds = Usage.from_json(cast("JsonObject", body["usage"])), cast("float", body["seconds"])
            run.error = cast("str | None", body.get("error"))
            run.answer = next((step.message.text for step in run.steps if step.seq == body.get("answer")), "")
        case _:
            if (known := run.calls.get(cast("str", body.get("call", "")))) is not None:
                _into_call(known, entry)


def _into_call(call: TrailCall, entry: Event) -> None:
    body = entry.body
    match entry.kind:
        case "call.decided":
            call.decision = body
        case "call.doubted":
            call.doubt = cast("str", body["why"])
        case "call.started":
            call.attempts = cast("int", body["attempt"])
        case "call.finished":
            call.observation = cast("Observation", decode(cast("JsonObject", body["message"])))
            call.error = cast("str | None", body.get("error"))
            call.seconds = cast("float", body.get("seconds", 0.0))
        case _:
            pass
