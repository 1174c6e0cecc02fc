"""The kinds of events and the shape of each body.

Bodies are plain JSON; the classes here only name their keys. A kind or key that this version does not know is kept
and shown, never dropped. Large texts (over 32 KiB) are stored apart by the journal and are invisible here.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from tropa.events.event import NewEvent
from tropa.messages import Json, JsonObject

Verdict: TypeAlias = Literal["run", "ask", "refuse", "dry"]
Decision: TypeAlias = Literal["approve", "edit", "reject", "done", "not_done", "retry"]
RunStatus: TypeAlias = Literal["running", "waiting", "completed", "stopped", "failed", "cancelled"]
Stop: TypeAlias = Literal[
    "answered",
    "max_steps",
    "max_tokens",
    "max_cost",
    "max_seconds",
    "max_calls",
    "repeat",
    "rejected",
    "empty_reply",
    "truncated",
    "cancelled",
    "error",
    "refused",
]


class ThreadOpened(TypedDict):
    """The first event of a thread. `parent` names the thread and call that a sub-agent works for."""

    version: int
    parent: NotRequired[JsonObject]


class RunStarted(TypedDict):
    """A request was accepted. `agent` is the hash of the stored definition: instructions, tools, model, template.

    `fields` is the version of the agent's fields; 1 where it is not there.
    """

    run: str
    agent: str
    name: str
    budget: NotRequired[JsonObject]
    dry: NotRequired[bool]
    fields: NotRequired[int]


class RunResumed(TypedDict):
    """The run goes on after a pause, a crash or a failure; `budget` replaces the earlier one."""

    budget: NotRequired[JsonObject]
    fields: NotRequired[int]


class MessageAdded(TypedDict):
    """A message that neither a model nor a tool wrote: the user's, or a notice of the runtime."""

    message: JsonObject


class FieldSet(TypedDict):
    """A field changed: `set` replaces the value, `append` adds the items of `value` to a list, `unset` removes it.

    A reducer of the user's own is recorded by its outcome (`set`), with what was passed in `given`.
    """

    name: str
    op: Literal["set", "append", "unset"]
    value: Json
    given: NotRequired[Json]


class ModelRequested(TypedDict):
    """A request is about to be sent. `tokens` is the counted prompt; both sums (and their cost) are reserved until the reply.

    `closing` is the limit that this last request answers to.
    """

    digest: str
    tokens: int
    exact: bool
    max_output: int
    cost: NotRequired[float]
    closing: NotRequired[Stop]


class ModelReplied(TypedDict):
    """What the model said. `seconds` is how long it took. `ids` are the provider's own call ids, for the trace."""

    message: JsonObject
    finish: str
    usage: JsonObject
    seconds: float
    model: NotRequired[str]
    ids: NotRequired[list[Json]]
    warnings: NotRequired[list[Json]]


class CallProposed(TypedDict):
    """A call passed (or failed) the gate. `id` names the proposal for people; `digest` is what an approval binds.

    `arguments` are canonical (validated, coerced). `given` are the model's own where they differ. After `expires`
    (seconds since 1970) a person can no longer approve it.
    """

    call: str
    tool: str
    arguments: JsonObject
    verdict: Verdict
    id: NotRequired[str]
    digest: NotRequired[str]
    given: NotRequired[JsonObject]
    origins: NotRequired[JsonObject]
    reason: NotRequired[str]
    expires: NotRequired[float]


class CallDecided(TypedDict):
    """A person decided. `digest` is that of what will run; `arguments` only where they were edited."""

    call: str
    id: str
    decision: Decision
    by: str
    digest: NotRequired[str]
    arguments: NotRequired[JsonObject]
    reason: NotRequired[str]


class CallStarted(TypedDict):
    """The tool is about to run. `attempt` counts from 1; `key` (of a side effect) is the same for all attempts.

    `atomic`: the effect and the call's end are stored in one transaction, so a start without an end had no effect.
    """

    call: str
    attempt: int
    key: NotRequired[str]
    atomic: NotRequired[bool]


class CallDoubted(TypedDict):
    """The tool was started and its outcome is not known: it waits for a person under `id`."""

    call: str
    id: str
    tool: str
    why: str


class CallFinished(TypedDict):
    """The call has its observation. `error` is the type of what went wrong, for the trail."""

    call: str
    message: JsonObject
    seconds: NotRequired[float]
    error: NotRequired[str]


class WindowCut(TypedDict):
    """Messages before event `start` are no longer sent to the model; they stay in the journal."""

    start: int
    tokens: int


class RunPaused(TypedDict):
    """Nothing more can be done until a person decides on these proposals."""

    waits: list[Json]


class RunCancelling(TypedDict):
    """Somebody asked the worker that has the run to stop it."""

    by: str


class RunFinished(TypedDict):
    """The run is over. `answer` is the event whose message holds it, `output` the validated structured answer."""

    status: RunStatus
    stop: Stop
    usage: JsonObject
    seconds: float
    answer: NotRequired[int]
    output: NotRequired[Json]
    error: NotRequired[str]


Body: TypeAlias = (
    ThreadOpened
    | RunStarted
    | RunResumed
    | MessageAdded
    | FieldSet
    | ModelRequested
    | ModelReplied
    | CallProposed
    | CallDecided
    | CallStarted
    | CallDoubted
    | CallFinished
    | WindowCut
    | RunPaused
    | RunCancelling
    | RunFinished
)


def event(kind: str, body: Body) -> NewEvent:
    """An event of `kind` with a typed body."""
    return NewEvent(kind, body)  # type: ignore[arg-type]
