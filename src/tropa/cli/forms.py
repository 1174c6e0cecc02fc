"""What `--json` prints: runs, proposals, threads and events as plain JSON."""

from __future__ import annotations

from tropa.cli.faults import STATUS_CODES
from tropa.events import Event
from tropa.gate import Proposal
from tropa.journal import Head
from tropa.messages import Json, JsonObject
from tropa.model import Usage
from tropa.session import Run


def usage_form(usage: Usage) -> JsonObject:
    """Tokens and cost in US dollars; an unknown cost is null."""
    return {
        "input": usage.input,
        "output": usage.output,
        "cached": usage.cached,
        "reasoning": usage.reasoning,
        "cost": usage.cost,
        "estimated": usage.estimated,
    }


def run_form(run: Run) -> JsonObject:
    """A run as it stands, with the exit code that it means."""
    output: Json = None
    if run.output is not None:
        from pydantic_core import to_jsonable_python  # noqa: PLC0415  # heavy; only structured answers need it

        output = to_jsonable_python(run.output)
    return {
        "thread": run.thread,
        "status": run.status,
        "stop": run.stop,
        "answer": run.answer,
        "output": output,
        "steps": run.steps,
        "usage": usage_form(run.usage),
        "seconds": round(run.seconds, 6),
        "pending": [proposal_form(one) for one in run.pending],
        "error": run.error,
        "seq": run.seq,
        "exit": STATUS_CODES[run.status],
    }


def proposal_form(proposal: Proposal) -> JsonObject:
    """What waits for a person. `origins` says for each value where it came from."""
    return {
        "id": proposal.id,
        "thread": proposal.thread,
        "call": proposal.call_id,
        "kind": proposal.kind,
        "tool": proposal.tool,
        "arguments": proposal.arguments,
        "origins": {path: {"kind": one.kind, "source": one.source} for path, one in proposal.origins.items()},
        "reason": proposal.reason,
        "digest": proposal.digest,
        "asked": proposal.asked,
    }


def head_form(head: Head) -> JsonObject:
    """A thread in a list. Times are seconds since 1970."""
    return {
        "thread": head.thread,
        "status": head.status,
        "title": head.title,
        "events": head.seq,
        "opened": head.opened,
        "updated": head.updated,
    }


def event_form(event: Event) -> JsonObject:
    """An event of the journal."""
    return {"seq": event.seq, "time": event.time, "kind": event.kind, "body": event.body}
