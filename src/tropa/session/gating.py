"""The gate as a session passes calls through it: valid? asked before? within the budget? allowed?"""

from __future__ import annotations

import copy
import hmac
import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import cast

from tropa.errors import InvalidArguments
from tropa.events import NewEvent, event
from tropa.gate import Proposed, ask_before_effects, call_digest, canonical, proposal_id, refuse_call, trace
from tropa.messages import Call, JsonObject, Observation, Status, Text, encode
from tropa.session.held import Held
from tropa.session.record import CallRecord
from tropa.tool import Tool, masked

CUT_OFF = "not run: the reply was cut off by the length limit; send this call again, shorter"
ONE_AT_A_TIME = "not run: make one call at a time"
SECRETS_LOST = "not run: its secret argument was kept in memory only, and that process is gone; make the call again"


async def propose(session: Held, calls: Sequence[Call]) -> None:
    """Bring every call of the reply to the gate, in one record, so that all open questions are asked at once."""
    reply = session.record.replies[-1] if session.record.replies else None
    cut = reply is not None and reply.finish == "length" and any(call in reply.calls for call in calls)

    def build() -> list[NewEvent]:
        events: list[NewEvent] = []
        taken: list[str] = []
        for index, call in enumerate(calls):
            known = session.record.calls.get(call.id)
            if known is not None and (known.finished is not None or _still_valid(session, known)):
                continue
            extra = index > 0 and not session.setup.model.profile.parallel_calls
            refusal = CUT_OFF if cut else ONE_AT_A_TIME if extra else None
            events += _gate(session, call, taken, refusal)
        return events

    await session.write(build, later=True)


def _still_valid(session: Held, known: CallRecord) -> bool:
    """Whether the call need not come to the gate again: it was started, or it is what was proposed."""
    return known.attempts > 0 or is_proposed(session, known)


def is_proposed(session: Held, known: CallRecord) -> bool:
    """Whether what was proposed is what would run, here and now. Not so in a fork, or with a tool that changed."""
    if "digest" not in known.proposed:
        return True
    tool = session.setup.toolbox.get(known.tool)
    proposed = cast("JsonObject", known.proposed["arguments"])
    return tool is not None and known.proposed["digest"] == digest_of(session, known.call, tool, proposed)


def _gate(session: Held, call: Call, taken: list[str], refusal: str | None) -> list[NewEvent]:
    """The events of one call at the gate; `taken` collects the tools of calls that will count in the budget."""
    tool = session.setup.toolbox.get(call.tool)
    if refusal is not None:
        return _refused(call, refusal, "error", "cut" if refusal == CUT_OFF else "extra")
    if tool is None:
        return _refused(call, session.setup.toolbox.unknown(call.tool), "error", "unknown_tool")
    if call.fault is not None:
        return _refused(call, call.fault, "error", "invalid_arguments")
    if secrets_lost(session, call, tool):
        return _refused(call, SECRETS_LOST, "error", "secret_lost")
    try:
        arguments = tool.validate(given(session, call))
    except InvalidArguments as error:
        return _refused(call, str(error), "error", "invalid_arguments")
    shown = masked(tool, arguments.canonical)
    body: JsonObject = {"call": call.id, "tool": tool.name, "arguments": shown}
    if shown != call.arguments:
        body["given"] = call.arguments
    draft = CallRecord(call.id, tool.name, body)
    if before := session.record.rejections(draft.signature):
        first = cast("Observation", before[0].finished)
        text = f"{first.value} Do not ask for it again in this turn; answer, or do something else."
        return _refused(call, text, "rejected", "rejected_before", body)
    spent = session.record.spent
    for name in taken:
        spent.calls[name] += 1
    over = refuse_call(session.record.budget, spent, tool.name)
    for name in taken:
        spent.calls[name] -= 1
    if over is not None:
        return _refused(call, over, "cancelled", "budget", body)
    if session.record.dry and not tool.hints.read_only:
        return [event("call.proposed", {**body, "verdict": "dry"})]  # type: ignore[typeddict-item]
    taken.append(tool.name)
    origins = (
        {}
        if tool.hints.read_only and session.setup.policy is ask_before_effects
        else trace(shown, session.messages(), session.setup.instructions)
    )
    ruling = session.setup.policy(
        Proposed(
            tool.name,
            tool.hints,
            copy.deepcopy(shown),
            session.thread,
            (session.setup.name,),
            MappingProxyType(origins),
        )
    )
    if ruling.verdict == "refuse":
        taken.pop()
        return _refused(call, f"Refused: {ruling.reason or 'the policy forbids it'}", "rejected", "policy", body)
    body["verdict"] = ruling.verdict
    if ruling.reason:
        body["reason"] = ruling.reason
    if not tool.hints.read_only or ruling.verdict == "ask":
        digest = digest_of(session, call.id, tool, shown)
        body["digest"], body["id"] = digest, proposal_id(digest)
        body["origins"] = {path: {"kind": o.kind, "source": o.source} for path, o in origins.items()}
    if ruling.verdict == "ask" and session.setup.approval_seconds is not None:
        body["expires"] = time.time() + session.setup.approval_seconds
    return [event("call.proposed", body)]  # type: ignore[arg-type]


def _refused(call: Call, text: str, status: Status, reason: str, body: JsonObject | None = None) -> list[NewEvent]:
    proposed: JsonObject = body or {"call": call.id, "tool": call.tool, "arguments": call.arguments}
    observation = Observation(call.id, call.tool, status, (Text(text),))
    return [
        event("call.proposed", {**proposed, "verdict": "refuse", "reason": reason}),  # type: ignore[typeddict-item]
        event("call.finished", {"call": call.id, "message": encode(observation), "error": reason}),
    ]


def given(session: Held, call: Call) -> JsonObject:
    """The arguments with their secrets, where this process still has them."""
    return session.setup.secret(session.thread, call.id) or call.arguments


def secrets_lost(session: Held, call: Call, tool: Tool) -> bool:
    """Whether the call had secret arguments that this process does not have."""
    return bool(tool.secret & call.arguments.keys()) and session.setup.secret(session.thread, call.id) is None


def digest_of(session: Held, call: str, tool: Tool, arguments: JsonObject) -> str:
    """What an approval binds. Secret values take part by their hash, which only this process can make."""
    real = session.setup.secret(session.thread, call)
    if tool.secret and real is not None:
        hidden = canonical({name: real.get(name) for name in sorted(tool.secret)})
        arguments = {**arguments, "\0secret": hmac.digest(session.setup.seal, hidden, "sha256").hex()}
    return call_digest(session.thread, call, tool.name, tool.digest, arguments)
