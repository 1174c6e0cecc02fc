"""Appending: whole or absent, in order, by one writer at a time."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from tests.journal.build import collect, decided, field, parked, proposed, rows, said, turn, user
from tropa.errors import Conflict, NotStorable, StoreError, ThreadNotFound
from tropa.events import NewEvent
from tropa.journal import new_owner

pytestmark = pytest.mark.anyio
GONE = "|".join(new_owner().split("|")[:1]) + "|4194304|1|0"  # a process of this machine that does not exist
ELSEWHERE = "another-host/pid:[1]|17|99|0"


async def test_what_was_appended_is_read_back(journal):
    bodies = [
        {"n": 2**63 - 1, "small": -(2**63), "huge": 10**30, "half": 0.1},
        {"text": "nul \0, lone \ud800 and \udfff, emoji \U0001f9ed, line\u2028", "\0": None, "\ud812": [True, []]},
        {"__type__": "datetime", "v": "2026", "lc": 1, "id": ["os", "system"]},  # I-01: plain data stays plain data
    ]
    assert await journal.append("t", 0, [NewEvent("x.y", body) for body in bodies]) == 3
    found = await collect(journal.events("t"))
    assert [event.body for event in found] == bodies
    assert [event.seq for event in found] == [1, 2, 3]
    assert await journal.verify("t") == 3


async def test_a_kind_of_a_newer_version_is_kept(journal):
    await journal.append("t", 0, [NewEvent("moon.landed", {"crew": 3})])
    assert [(event.kind, event.body) for event in await collect(journal.events("t"))] == [("moon.landed", {"crew": 3})]


@pytest.mark.parametrize("kind", ["", "a\0b", "\ud800", "é", "x" * 201])
async def test_a_kind_that_is_no_name_is_refused(journal, kind):
    with pytest.raises(NotStorable, match="kind"):
        await journal.append("t", 0, [NewEvent(kind, {})])


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": {"b": [float("nan")]}}, r"value\.a\.b\[0\]"),
        ({"a": {"b": [1, object()]}}, r"value\.a\.b\[1\].*object"),
        ({"a": {(1, 2): "x"}}, r"key \(1, 2\)"),
        ({"a": [float("-inf")]}, "-inf"),
    ],
)
async def test_what_is_no_json_is_refused_with_its_path_and_leaves_nothing(journal, value, path):
    """C-05."""
    await journal.append("t", 0, [user()])
    with pytest.raises(NotStorable, match=path):
        await journal.append("t", 1, [user(), NewEvent("x.y", value)])
    assert (await journal.head("t")).seq == 1
    assert len(await collect(journal.events("t"))) == 1


async def test_an_append_that_fails_in_the_middle_leaves_nothing(journal):
    await journal.append("t", 0, [user()])
    with pytest.raises(KeyError):
        await journal.append("t", 1, [user(), NewEvent("call.decided", {"no": "id"})], texts={"ab" * 32: "text"})
    assert (await journal.head("t")).seq == 1
    assert rows(journal, "SELECT count(*) FROM tropa_events") == [(1,)]
    assert rows(journal, "SELECT count(*) FROM tropa_blobs") == [(0,)]


async def test_a_new_thread_whose_first_append_fails_does_not_exist(journal):
    with pytest.raises(Conflict):
        await journal.append("t", 4, [user()])
    assert (await journal.head("t")).seq == 0
    assert await journal.threads() == []
    with pytest.raises(ThreadNotFound):
        await journal.state("t")


async def test_the_wrong_expectation_is_a_conflict_and_writes_nothing(journal):
    """C-01."""
    await journal.append("t", 0, [user()])
    for wrong in (0, 2, -1):
        with pytest.raises(Conflict, match="event 1"):
            await journal.append("t", wrong, [user("lost?")])
    assert (await journal.head("t")).seq == 1


async def test_a_claim_keeps_others_out_and_lets_decisions_in(store):
    journal, other = store(), store()
    mine, theirs = new_owner(), new_owner()
    await journal.append("t", 0, [proposed()], owner=mine)
    with pytest.raises(Conflict, match="worked on"):
        await other.append("t", 1, [user()], owner=theirs)
    assert await other.append("t", 1, [decided()]) == 2
    assert (await journal.head("t")).owner == mine
    with pytest.raises(Conflict):  # the worker learns of the decision before it goes on
        await journal.append("t", 1, [said()], owner=mine)
    await journal.append("t", 2, [said()], owner=mine, release=True)
    assert (await other.head("t")).owner is None
    assert await other.append("t", 3, [user()], owner=theirs) == 4


async def test_a_claim_of_a_dead_process_ends_at_once_and_one_of_another_machine_by_time(journal):
    await journal.append("t", 0, [user()], owner=GONE)
    assert await journal.append("t", 1, [user()], owner=ELSEWHERE) == 2
    with pytest.raises(Conflict, match="worked on"):
        await journal.append("t", 2, [user()], owner=new_owner())
    rows(journal, "UPDATE tropa_threads SET lease = lease - 16")
    late = new_owner()
    assert await journal.append("t", 2, [user()], owner=late) == 3
    with pytest.raises(Conflict, match="taken over"):
        await journal.renew("t", ELSEWHERE)
    with pytest.raises(Conflict):
        await journal.append("t", 3, [user()], owner=ELSEWHERE)
    before = (await journal.head("t")).lease
    assert (await journal.renew("t", late)).owner == late
    assert (await journal.head("t")).lease >= before


@pytest.mark.parametrize("owner", ["", "nobody", "a|b", "|||cancel by x|y|z", "\ud800|\0|1|2"])
async def test_any_text_is_an_owner(journal, owner):
    await journal.append("t", 0, [user()], owner=owner)
    assert (await journal.head("t")).owner == owner
    with pytest.raises(Conflict):
        await journal.append("t", 1, [user()], owner=new_owner())


async def test_two_tasks_race_for_a_new_thread_and_one_wins(store):
    """C-01."""
    first, second = store(), store()
    done = await asyncio.gather(
        first.append("t", 0, [user("A")]), second.append("t", 0, [user("B")]), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in done) == ["Conflict", "int"]
    assert len(await collect(first.events("t"))) == 1


NAMES = [
    "../../x",
    "'; DROP TABLE tropa_threads; --",
    "a\0b",
    "x" * 10_000,
    "\U0001f9ed\u200d\U0001f33e",
    "\ud800",
    " ",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
async def test_any_text_is_a_thread(journal, name):
    """I-02: an id is a value, never a path, never SQL."""
    await turn(journal, name)
    await turn(journal, "neighbour")
    await parked(journal, name, id=name)
    assert {head.thread for head in await journal.threads()} == {name, "neighbour"}
    assert [row.thread for row in await journal.pending(name, id=name)] == [name]
    assert await journal.pending(id=name + "x") == []
    assert {row.thread for row in await journal.runs(name)} == {name}
    await journal.fork(name, 3, name + "/fork")
    assert await journal.verify(name) == 10
    assert (await journal.state(name + "/fork")).messages
    await journal.delete(name)
    assert (await journal.head(name)).seq == 0


@pytest.mark.parametrize("limit", ["1; DROP TABLE tropa_events", -5])
async def test_a_limit_is_a_number(journal, limit):
    """I-02."""
    await turn(journal, "t")
    try:
        assert len(await journal.threads(limit=limit)) <= 1
    except (StoreError, TypeError, ValueError):
        pass
    assert await journal.verify("t") == 5


async def test_a_title_is_made_of_any_first_words(journal):
    await journal.append("t", 0, [user("lone \ud800 and \0 nul " + "y" * 200)])
    head = await journal.head("t")
    assert head.title.startswith("lone")
    assert len(head.title) == 80
    assert await journal.verify("t") == 1


async def test_absurd_usage_of_a_server_is_no_reason_to_lose_a_run(journal):
    await turn(journal, "t")
    end = NewEvent(
        "run.finished", {"status": "stopped", "stop": "max_tokens", "usage": {"input": 10**30}, "seconds": 1}
    )
    await journal.append("t", 5, [end])
    assert (await journal.runs("t"))[0].input == 2**63 - 1
    assert await journal.verify("t") == 6


async def test_a_renewal_does_not_change_what_is_verified(journal):
    owner = new_owner()
    await journal.append("t", 0, [user()], owner=owner)
    before = dataclasses.replace(await journal.head("t"), lease=0)
    await journal.renew("t", owner)
    assert dataclasses.replace(await journal.head("t"), lease=0) == before


async def test_fields_of_any_name(journal):
    values = {"plain": 1, "a.b": [2], 'q"uote': {"x": None}, "nul\0": "n", "\ud800": "lone", "$": True}
    await journal.append("t", 0, [field(name, value) for name, value in values.items()])
    await journal.append("t", 6, [field("a.b", [3], "append"), field("plain", 2)])
    assert await journal.fields("t") == values | {"a.b": [2, 3], "plain": 2}
    assert (await journal.state("t", at=6)).fields == values
    assert await journal.fields("nobody") == {}
    assert await journal.verify("t") == 8


async def test_a_decision_is_known_by_its_thread_too(journal):
    """The same id in two threads: deciding in one leaves the other waiting."""
    await parked(journal, "a", id="same")
    await parked(journal, "b", id="same")
    await journal.append("a", 5, [decided(id="same")])
    assert [row.thread for row in await journal.pending(id="same")] == ["b"]


async def test_proposal_and_decision_in_one_append_leave_nothing_waiting(journal):
    await journal.append("t", 0, [proposed(), decided(), proposed("c2", "p2"), proposed("c2", "p3")])
    assert [row.id for row in await journal.pending()] == ["p3"]
    assert await journal.verify("t") == 4
