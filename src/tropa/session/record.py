"""One run as a fold over its events. The same fold serves the running session and the one that takes over after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from tropa.events import Event, NewEvent, Stop
from tropa.gate import Budget, Spent, sha256
from tropa.messages import Assistant, Call, Json, JsonObject, Notice, Observation, decode, encode
from tropa.model import Usage


@dataclass(slots=True)
class CallRecord:
    """What is known of one call."""

    call: str
    tool: str
    proposed: JsonObject
    approval: JsonObject | None = None
    """The decision before it ran: approve, edit or reject."""
    doubted: JsonObject | None = None
    resolution: JsonObject | None = None
    """The decision on the latest doubt: done, not_done or retry."""
    attempts: int = 0
    running: bool = False
    effect: bool = False
    """Whether it was started as a call whose side effect may outlive the loss of its outcome."""
    finished: Observation | None = None

    @property
    def id_waiting(self) -> str | None:
        """The proposal that a person must still decide on, if the call waits for one."""
        if self.finished is not None:
            return None
        if self.doubted is not None:
            return None if self.resolution is not None else cast("str", self.doubted["id"])
        if self.proposed["verdict"] == "ask" and not self.attempts and self.approval is None:
            return cast("str", self.proposed["id"])
        return None

    def expired(self, now: float) -> bool:
        """Whether nobody decided in the time that the proposal gave, at `now` (seconds since 1970)."""
        expires = cast("float | None", self.proposed.get("expires"))
        undecided = self.doubted is None and self.id_waiting is not None
        return expires is not None and undecided and now >= expires

    @property
    def arguments(self) -> JsonObject:
        """The arguments that would run: as proposed, or as a person edited them."""
        if self.approval is not None and "arguments" in self.approval:
            return cast("JsonObject", self.approval["arguments"])
        return cast("JsonObject", self.proposed["arguments"])

    @property
    def signature(self) -> str:
        """Tool and arguments in one digest, whatever the order of the keys."""
        return sha256([self.tool, self.proposed["arguments"]])


@dataclass(frozen=True, slots=True)
class ReplyRecord:
    """A reply as it was journaled. `seq` is its event; `closing` is the limit that it answers to, if it does."""

    seq: int
    message: Assistant
    finish: str
    usage: Usage
    closing: Stop | None = None

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of the reply."""
        return self.message.calls

    @property
    def text(self) -> str:
        """The text of the reply."""
        return self.message.text


@dataclass(slots=True)
class RunRecord:
    """A run so far. `apply` takes its events in order, beginning with `run.started`."""

    seq: int = 0
    budget: Budget = field(default_factory=Budget)
    dry: bool = False
    fields_version: int = 1
    replies: list[ReplyRecord] = field(default_factory=list[ReplyRecord])
    calls: dict[str, CallRecord] = field(default_factory=dict[str, CallRecord])
    spent: Spent = field(default_factory=Spent)
    noticed: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    """Notices given, each with how many replies there were."""
    fresh: int = 0
    """The first reply after a person let an ended run go on: cuts and repeats before it are forgiven."""
    over_calls: bool = False
    """Whether a call was refused because the budget of calls is used up."""
    cancelling: bool = False
    finished: JsonObject | None = None
    _steps: list[str] = field(default_factory=list[str])
    _stepped: int = 0
    _open_request: JsonObject | None = None
    _since: float = 0.0
    last: float = 0.0
    """When the run last did something, in seconds since 1970."""

    def apply(self, event: Event) -> None:
        """Fold one event. Kinds that do not concern a run are passed over."""
        body = event.body
        match event.kind:
            case "run.started":
                self.seq = event.seq
                self.budget = Budget.from_json(cast("JsonObject", body.get("budget", {})))
                self.dry = bool(body.get("dry"))
                self.fields_version = cast("int", body.get("fields", 1))
                self._since = event.time
            case "run.resumed":
                self.fields_version = cast("int", body.get("fields", 1))
                if "budget" in body:
                    self.budget = Budget.from_json(cast("JsonObject", body["budget"]))
                self._lose_request()
                self._pause_clock(self.last)
                self._forget_end()
                self._since, self.finished, self.cancelling = event.time, None, False
                self.over_calls = False
            case "run.paused":
                self._pause_clock(event.time)
            case "run.cancelling":
                self.cancelling = True
            case "run.finished":
                self._lose_request()
                self._pause_clock(event.time)
                self.finished = body
            case "model.requested":
                self._open_request = body
                if not body.get("closing"):
                    self.spent.steps += 1
            case "model.replied":
                self._reply(event)
            case "message.added":
                if isinstance(message := decode(cast("JsonObject", body["message"])), Notice):
                    self.noticed.add((len(self.replies), message.text))
            case _:
                self._call(event)
        if event.kind != "call.decided":  # people take their time, and it is not working time
            self.last = event.time

    def apply_new(self, seq: int, entry: NewEvent, now: float) -> None:
        """Fold an event that is about to be appended as number `seq`."""
        self.apply(Event("", seq, now, entry.kind, entry.body))

    @property
    def usage(self) -> Usage:
        """All that is spent; what was reserved for a request that has no reply counts in full."""
        return self.spent.usage if self._open_request is None else self.spent.usage + _reserved(self._open_request)

    def seconds(self, now: float) -> float:
        """Working time so far; waiting for people is not counted."""
        return self.spent.seconds + (max(0.0, now - self._since) if self._since else 0.0)

    def steps(self) -> list[str]:
        """A digest of each step whose calls all ended: its calls and their results, for repeat detection."""
        while self._stepped < len(self.replies):
            records = [self.calls.get(call.id) for call in self.replies[self._stepped].calls]
            if any(item is None or item.finished is None for item in records):
                break
            if records:
                self._steps.append(sha256([_outcome(cast("CallRecord", item)) for item in records]))
            self._stepped += 1
        return self._steps

    def steps_warned(self, notice: str) -> int:
        """How many steps had been made when the model was last given this notice; 0 for never."""
        given = max((count for count, text in self.noticed if text == notice), default=0)
        return sum(1 for reply in self.replies[self.fresh : given] if reply.calls)

    def rejections(self, signature: str) -> list[CallRecord]:
        """Calls of this run with this signature that a person rejected (or that were refused since)."""
        return [
            item
            for item in self.calls.values()
            if item.finished is not None and item.finished.status == "rejected" and item.signature == signature
        ]

    def said(self) -> set[int]:
        """The events of the replies that are steps of the run."""
        return {reply.seq for reply in self.replies}

    def open_calls(self) -> Sequence[CallRecord | Call]:
        """Calls of replies that have no result yet, in order: records, or calls that never reached the gate."""
        return [
            self.calls.get(call.id, call)
            for reply in self.replies
            for call in reply.calls
            if call.id not in self.calls or self.calls[call.id].finished is None
        ]

    def _reply(self, event: Event) -> None:
        body = event.body
        usage = Usage.from_json(cast("JsonObject", body["usage"]))
        message = cast("Assistant", decode(cast("JsonObject", body["message"])))
        closing = cast("Stop | None", (self._open_request or {}).get("closing"))
        self.replies.append(ReplyRecord(event.seq, message, cast("str", body["finish"]), usage, closing))
        self.spent.usage += usage
        self._open_request = None

    def _call(self, event: Event) -> None:
        body = event.body
        if event.kind == "call.proposed":
            call = cast("str", body["call"])
            self.calls[call] = CallRecord(call, cast("str", body["tool"]), body)
            if body.get("reason") == "budget":
                self.over_calls = True
            return
        record = self.calls.get(cast("str", body.get("call", "")))
        if record is None:
            return
        match event.kind:
            case "call.decided" if record.doubted is not None:
                if body["id"] == record.doubted["id"]:
                    record.resolution = body
            case "call.decided":
                if body["id"] == record.proposed.get("id"):
                    record.approval = body
            case "call.doubted":
                record.doubted, record.resolution, record.running = body, None, False
            case "call.started":
                if not record.attempts:
                    self.spent.calls[record.tool] += 1
                record.attempts, record.running = cast("int", body["attempt"]), True
                record.effect = "key" in body and not body.get("atomic")
                record.doubted = record.resolution = None
            case "call.finished":
                record.finished = cast("Observation", decode(cast("JsonObject", body["message"])))
                record.running = False
            case _:
                pass

    def _lose_request(self) -> None:
        """A request that never got its reply counts as spent, all that was reserved for it."""
        self.spent.usage, self._open_request = self.usage, None

    def _forget_end(self) -> None:
        """What was broken off, or said to end a run that now goes on, is no step of it."""
        end = self.finished
        self.replies = [
            one
            for one in self.replies
            if one.finish != "cancelled" and (end is None or not (one.closing or one.seq == end.get("answer")))
        ]
        if end is not None:
            self.fresh = self._stepped = len(self.replies)
            self._steps = []

    def _pause_clock(self, now: float) -> None:
        if self._since:
            self.spent.seconds += max(0.0, now - self._since)
            self._since = 0.0


def _outcome(record: CallRecord) -> list[Json]:
    observation = cast("Observation", record.finished)
    # A rejection counts by its status: its text changes between the person's words and the runtime's.
    result = None if observation.status == "rejected" else encode(observation)["parts"]
    return [record.signature, observation.status, result]


def _reserved(request: JsonObject) -> Usage:
    cost = cast("float | None", request.get("cost"))
    return Usage(cast("int", request["tokens"]), cast("int", request["max_output"]), cost=cost, estimated=True)
