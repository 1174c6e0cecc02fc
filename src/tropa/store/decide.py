"""A person's decisions, each bound to what was shown, each taken once."""

from __future__ import annotations

import json
import time
from typing import cast

from tropa.errors import ApprovalError, Conflict, UsageError
from tropa.events import Decision, NewEvent, event
from tropa.gate import Proposal, call_digest
from tropa.journal import Journal, PendingRow
from tropa.messages import JsonObject, Notice, encode
from tropa.session import load_record, proposals
from tropa.tool import Tool

_TRIES = 20


async def decide(
    journal: Journal,
    id: str,
    decision: Decision,
    *,
    by: str,
    reason: str | None = None,
    edit: JsonObject | None = None,
) -> Proposal:
    """Record a decision and return the proposal it was about.

    Raises `ApprovalError` when nothing waits under `id` (also when somebody else just decided), when the decision does
    not fit what waits, and when edited arguments do not fit the tool.
    """
    for _ in range(_TRIES):
        row = await _row(journal, id)
        head = await journal.head(row.thread)
        row = await _row(journal, id)  # read after the head: whoever decides in between moves the head
        proposal = (await proposals(journal, [row]))[0]
        _fits(proposal, decision)
        body: JsonObject = {"call": row.call, "id": row.id, "decision": decision, "by": by}
        if reason:
            body["reason"] = reason
        if decision in {"approve", "edit"}:
            body["digest"] = proposal.digest
        if edit is not None:
            body["arguments"], body["digest"] = await _edited(journal, proposal, head.run, edit)
        events = [NewEvent("call.decided", body), *await _told(journal, row, proposal, decision, head.run)]
        try:
            await journal.append(row.thread, head.seq, events, durable=True)
        except Conflict:
            continue
        return proposal
    raise ApprovalError(f"thread of `{id}` changes faster than it can be decided; try again")


async def _row(journal: Journal, id: str) -> PendingRow:
    rows = await journal.pending(id=id)
    if not rows:
        raise ApprovalError(f"nothing waits under {id!r}: it is unknown or was decided; `tropa inbox` lists what waits")
    return rows[0]


def _fits(proposal: Proposal, decision: Decision) -> None:
    wanted = "unknown" if decision in {"done", "not_done", "retry"} else "approval"
    if proposal.kind == wanted:
        if decision in {"approve", "edit"} and proposal.expires is not None and time.time() >= proposal.expires:
            raise ApprovalError(f"`{proposal.id}` expired before it was approved; resume the thread to tell the model")
        return
    if proposal.kind == "unknown":
        raise ApprovalError(
            f"`{proposal.id}` was started and its outcome is unknown: resolve it as done, not_done or retry"
        )
    raise ApprovalError(f"`{proposal.id}` was not started: approve or reject it")


async def _edited(journal: Journal, proposal: Proposal, run: int, edit: JsonObject) -> tuple[JsonObject, str]:
    """The edited arguments, checked against the tool's stored schema, and the digest that binds them."""
    spec = await stored_tool(journal, proposal, run)
    if "•••" in json.dumps(proposal.arguments, ensure_ascii=False):
        raise ApprovalError(f"`{proposal.id}` has secret arguments, which cannot be edited; reject it with a reason")
    schema = cast("JsonObject", spec["schema"])
    tool = Tool.from_schema(proposal.tool, "", schema, lambda _: None)
    arguments = tool.validate(edit).canonical
    digest = call_digest(proposal.thread, proposal.call_id, proposal.tool, cast("str", spec["digest"]), arguments)
    return arguments, digest


async def stored_tool(journal: Journal, proposal: Proposal, run: int) -> JsonObject:
    """A tool as the run's stored definition describes it. Raises `UsageError` when it is not in there."""
    async for entry in journal.events(proposal.thread, after=run - 1, until=run):
        definition = cast("JsonObject", json.loads(await journal.text(cast("str", entry.body["agent"]))))
        for spec in cast("list[JsonObject]", definition["tools"]):
            if spec["tool"] == proposal.tool:
                return spec
    raise UsageError(f"the tool `{proposal.tool}` is not among those of its run")


async def _told(journal: Journal, row: PendingRow, proposal: Proposal, decision: Decision, run: int) -> list[NewEvent]:
    """Where the call was closed as unknown already, the model learns the outcome by a notice."""
    if proposal.kind != "unknown":
        return []
    record = (await load_record(journal, row.thread, run)).calls.get(row.call)
    if record is not None and record.finished is None:
        return []
    if decision == "retry":
        raise ApprovalError(f"`{row.id}` belongs to a step that is over: resolve it as done or not_done, and ask anew")
    words = "was done" if decision == "done" else "was not done"
    text = f"A person looked into the call `{proposal.tool}` ({row.call}) whose outcome was unknown: it {words}."
    return [event("message.added", {"message": encode(Notice(text))})]
