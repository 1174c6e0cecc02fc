"""Secret arguments: in memory only, masked everywhere else."""

from __future__ import annotations

import pytest

from tests.session.history import results, texts, well_formed
from tropa import Agent, ApprovalError, tool
from tropa import open as open_store
from tropa.messages import dumps, encode
from tropa.model import RawCall, Reply
from tropa.model.scripted import Scripted, calls

pytestmark = pytest.mark.anyio
PIN = "hunter2-4711"


def lock():
    opened = []

    @tool(secret=["pin"])
    def unlock(door: str, pin: str) -> str:
        opened.append((door, pin))
        return f"{door} is open"

    return opened, unlock


def stored(path):
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name))


async def test_the_value_runs_but_is_nowhere_in_the_file_nor_in_the_approval(tmp_path):
    opened, unlock = lock()
    path = tmp_path / "s.db"
    one = Agent("x", model=Scripted([calls(("unlock", {"door": "front", "pin": PIN})), "ok"]), tools=[unlock])
    async with open_store(path) as store:
        run = await one.run("open", store=store, thread="t")
        assert run.pending[0].arguments == {"door": "front", "pin": "•••"}
        with pytest.raises(ApprovalError, match="secret"):
            await store.approve(run.pending[0].id, by="me", edit={"door": "back", "pin": "1"})
        await store.approve(run.pending[0].id, by="me")
        run = await one.resume("t", store=store)
        assert run.ok
        assert PIN.encode() not in stored(path)
    assert opened == [("front", PIN)]
    assert PIN.encode() not in stored(path)
    assert all(
        PIN not in dumps(encode(message)) for request in one.setup.model.requests for message in request.messages
    )
    assert one.setup.secrets == {}


@pytest.mark.parametrize(
    "arguments", ['{"door": "a", "pin": "' + PIN, f'["{PIN}"]', {"door": 1, "pin": [PIN]}, {"pim": PIN, "door": "a"}]
)
async def test_a_call_that_is_refused_does_not_leave_it_behind_either(tmp_path, arguments):
    _, unlock = lock()
    path = tmp_path / "s.db"
    one = Agent("x", model=Scripted([Reply("", (RawCall("unlock", arguments),), finish="calls"), "ok"]), tools=[unlock])
    async with open_store(path) as store:
        await one.run("open", store=store, thread="t")
    assert PIN.encode() not in stored(path)


@pytest.mark.parametrize("approved", [True, False])
async def test_after_a_restart_the_call_is_answered_clearly_and_nothing_runs(tmp_path, approved):
    opened, unlock = lock()
    path = tmp_path / "s.db"
    first = Agent("x", model=Scripted([calls(("unlock", {"door": "front", "pin": PIN}))]), tools=[unlock])
    async with open_store(path) as store:
        run = await first.run("open", store=store, thread="t")
        if approved:
            await store.approve(run.pending[0].id, by="me")
        else:
            await store.reject(run.pending[0].id, by="me")
    other = Agent("x", model=Scripted(["I need the pin again."]), tools=[unlock])
    async with open_store(path) as store:
        run = await other.resume("t", store=store)
        messages = (await store.thread("t")).state.messages
    assert run.answer == "I need the pin again."
    assert well_formed(messages)
    assert opened == []
    assert "memory only" in texts(messages)[0]
    assert results(messages)[0].status == "error"


async def test_two_equal_proposals_do_not_betray_a_short_secret_by_their_digest():
    digests = set()
    for _ in range(2):
        _, unlock = lock()
        one = Agent("x", model=Scripted([calls(("unlock", {"door": "front", "pin": "1"}))]), tools=[unlock])
        async with open_store(":memory:") as store:
            digests.add((await one.run("open", store=store, thread="t")).pending[0].digest)
    assert len(digests) == 2


async def test_who_watches_a_run_does_not_see_it_on_its_way(tmp_path):
    seen = []
    _, unlock = lock()
    one = Agent("x", model=Scripted([calls(("unlock", {"door": "front", "pin": PIN})), "ok"]), tools=[unlock])
    async with open_store(tmp_path / "s.db") as store:
        await one.run("open", store=store, thread="t", watch=lambda item: seen.append(repr(item)))
    assert seen
    assert not any(PIN in item for item in seen)
