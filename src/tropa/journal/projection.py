"""What a batch of events changes in the small tables beside the journal: pure data, the same for every store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from tropa.events import NewEvent
from tropa.journal.protocol import Head, PendingRow, RunRow
from tropa.messages import JsonObject

_TITLE = 80


@dataclass(slots=True)
class Changes:
    """The rows to write after a batch."""

    head: Head
    runs: dict[int, RunRow] = field(default_factory=dict[int, RunRow])
    pending: list[PendingRow] = field(default_factory=list[PendingRow])
    decided: list[str] = field(default_factory=list[str])
    """Proposals, by id, that no longer wait."""
    answered: list[str] = field(default_factory=list[str])
    """Calls whose approval no longer waits, as they have a result."""
    fields: list[tuple[str, int, bool]] = field(default_factory=list[tuple[str, int, bool]])
    """(name, seq, whether it replaces earlier ones)"""


def project(head: Head, events: Sequence[NewEvent], time: float) -> Changes:
    """What `events`, appended after `head` at `time`, change."""
    changes = Changes(head)
    seq = head.seq
    status, run, window, title = head.status, head.run, head.window, head.title
    for entry in events:
        seq += 1
        body = entry.body
        match entry.kind:
            case "run.started":
                status, run = "running", seq
                changes.runs[run] = RunRow(head.thread, run, "running", None, time, None, 0, 0, None)
            case "run.resumed":
                status = "running"
                changes.runs[run] = RunRow(head.thread, run, "running", None, time, None, 0, 0, None)
            case "run.paused":
                status = "waiting"
                changes.runs[run] = RunRow(head.thread, run, "waiting", None, time, None, 0, 0, None)
            case "run.finished":
                status = cast("str", body["status"])  # type: ignore[assignment]
                usage = cast("dict[str, float]", body["usage"])
                changes.runs[run] = RunRow(
                    head.thread,
                    run,
                    status,  # type: ignore[arg-type]
                    cast("str", body["stop"]),
                    time,
                    time,
                    int(usage.get("input", 0)),
                    int(usage.get("output", 0)),
                    usage.get("cost"),
                )
            case "message.added":
                title = title or _title(body)
            case "window.cut":
                window = cast("int", body["start"])
            case "field.set":
                changes.fields.append((cast("str", body["name"]), seq, body["op"] == "set"))
            case "call.proposed" if body["verdict"] == "ask":
                _answered(changes, body)  # a proposal made anew replaces the one before
                changes.pending.append(_waiting(head.thread, body, seq, time, "approval"))
            case "call.doubted":
                changes.pending.append(_waiting(head.thread, body, seq, time, "unknown"))
            case "call.decided":
                changes.decided.append(cast("str", body["id"]))
            case "call.finished":
                _answered(changes, body)
            case _:
                pass
    changes.head = replace(
        head,
        seq=seq,
        status=status,
        run=run,
        window=window,
        title=title,
        updated=time,
        opened=head.opened or time,
    )
    return changes


def _answered(changes: Changes, body: JsonObject) -> None:
    """The approval of this call no longer waits, be it stored or of this very batch."""
    call = cast("str", body["call"])
    changes.answered.append(call)
    changes.pending = [row for row in changes.pending if row.kind == "unknown" or row.call != call]


def _waiting(thread: str, body: JsonObject, seq: int, time: float, kind: str) -> PendingRow:
    return PendingRow(
        cast("str", body["id"]),
        thread,
        cast("str", body["call"]),
        seq,
        kind,  # type: ignore[arg-type]
        cast("str", body["tool"]),
        time,
    )


def _title(body: JsonObject) -> str:
    message = cast("JsonObject", body["message"])
    if message.get("role") != "user":
        return ""
    for part in cast("list[JsonObject]", message["parts"]):
        if part.get("type") == "text":
            return " ".join(cast("str", part["text"]).split())[:_TITLE]
    return ""
