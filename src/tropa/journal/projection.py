"""What a batch of events changes in the small tables beside the journal: pure data, the same for every store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from tropa.events import NewEvent, RunStatus
from tropa.journal.protocol import Head, PendingRow, RunRow
from tropa.messages import JsonObject

_TITLE = 80
_TOUCHES = {"thread.opened", "run.started", "run.resumed", "run.paused", "run.finished", "message.added"}
"""Kinds that make a thread stand first in a list. The many in between cost an append less, as no index changes."""


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

    def decide(self, id: str) -> None:
        """Nothing waits under `id` any more, be it stored or of this very batch."""
        self.decided.append(id)
        self.pending = [row for row in self.pending if row.id != id]

    def answer(self, call: str) -> None:
        """No approval of `call` waits any more, be it stored or of this very batch."""
        self.answered.append(call)
        self.pending = [row for row in self.pending if row.kind == "unknown" or row.call != call]


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
                status = cast("RunStatus", body["status"])
                usage = cast("dict[str, float]", body["usage"])
                changes.runs[run] = RunRow(
                    head.thread,
                    run,
                    status,
                    cast("str", body["stop"]),
                    time,
                    time,
                    _tokens(usage.get("input", 0)),
                    _tokens(usage.get("output", 0)),
                    usage.get("cost"),
                )
            case "message.added":
                title = title or _title(body)
            case "window.cut":
                window = cast("int", body["start"])
            case "field.set":
                changes.fields.append((cast("str", body["name"]), seq, body["op"] != "append"))
            case "call.proposed" if body["verdict"] == "ask":
                changes.answer(cast("str", body["call"]))  # a proposal made anew replaces the one before
                changes.pending.append(_waiting(head.thread, body, seq, time, "approval"))
            case "call.doubted":
                changes.pending.append(_waiting(head.thread, body, seq, time, "unknown"))
            case "call.decided":
                changes.decide(cast("str", body["id"]))
            case "call.finished":
                changes.answer(cast("str", body["call"]))
            case _:
                pass
    if not events:  # a claim alone
        return changes
    opened = head.opened or time
    updated = time if any(entry.kind in _TOUCHES for entry in events) else head.updated or time
    changes.head = Head(
        head.thread, seq, head.hash, status, run, window, title, opened, updated, head.owner, head.lease
    )
    return changes


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
            words = " ".join(cast("str", part["text"])[: 8 * _TITLE].split())[:_TITLE]
            # A title is for people: what a database's text cannot carry is shown as unreadable. The message keeps it.
            return words.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return ""


def _tokens(count: float) -> int:
    """A count as a database can carry it, whatever a server claimed."""
    return min(int(count), 2**63 - 1)
