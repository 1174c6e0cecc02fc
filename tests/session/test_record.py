"""The fold of one run."""

from __future__ import annotations

from tropa.events import Event
from tropa.session import RunRecord


def fold(*events):
    record = RunRecord()
    for seq, (kind, body) in enumerate(events, 1):
        record.apply(Event("t", seq, float(seq), kind, body))
    return record


PROPOSED = (
    "call.proposed",
    {"call": "c", "tool": "pay", "arguments": {"n": 1}, "verdict": "ask", "id": "p1", "digest": "d1"},
)
STARTED = ("call.started", {"call": "c", "attempt": 1, "key": "k"})
DOUBTED = ("call.doubted", {"call": "c", "id": "u1", "tool": "pay", "why": "?"})


def decided(id, decision, **more):
    return ("call.decided", {"call": "c", "id": id, "decision": decision, "by": "me", **more})


def test_a_decision_on_another_proposal_of_the_call_counts_for_nothing():
    again = ("call.proposed", {**PROPOSED[1], "id": "p2", "digest": "d2"})
    assert fold(PROPOSED, again, decided("p1", "approve")).calls["c"].id_waiting == "p2"
    assert fold(PROPOSED, again, decided("p2", "approve")).calls["c"].id_waiting is None
    assert fold(PROPOSED, STARTED, DOUBTED, decided("p1", "approve")).calls["c"].id_waiting == "u1"
    assert fold(PROPOSED, STARTED, DOUBTED, decided("u1", "done")).calls["c"].id_waiting is None


def test_a_proposal_made_anew_forgets_what_was_said_about_the_old():
    record = fold(PROPOSED, decided("p1", "edit", arguments={"n": 9}), ("call.proposed", {**PROPOSED[1], "id": "p2"}))
    assert record.calls["c"].arguments == {"n": 1}
    assert record.calls["c"].id_waiting == "p2"


def test_an_edit_stays_through_doubts_and_retries():
    edit = decided("p1", "edit", arguments={"n": 9}, digest="d9")
    second = ("call.started", {"call": "c", "attempt": 2, "key": "k"})
    record = fold(PROPOSED, edit, STARTED, DOUBTED, decided("u1", "retry"), second)
    assert record.calls["c"].arguments == {"n": 9}
    assert (record.calls["c"].attempts, record.calls["c"].running, record.calls["c"].effect) == (2, True, True)
    assert record.spent.calls["pay"] == 1


def test_the_time_between_a_crash_and_the_next_process_is_not_working_time():
    record = RunRecord()
    record.apply(Event("t", 1, 100.0, "run.started", {"run": "r1", "agent": "a", "name": "x"}))
    record.apply(Event("t", 2, 103.0, "model.requested", {"digest": "", "tokens": 10, "exact": True, "max_output": 5}))
    record.apply(Event("t", 3, 9000.0, "run.resumed", {}))
    assert record.seconds(9001.0) == 4.0
    assert record.usage.tokens == 15


def test_kinds_that_are_not_known_change_nothing():
    assert fold(PROPOSED, ("call.blessed", {"call": "c"}), ("weather.changed", {})).calls["c"].id_waiting == "p1"
