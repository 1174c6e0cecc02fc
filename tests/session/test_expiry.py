"""E-03: an approval that nobody gave in time is no approval."""

import asyncio

import pytest

from tropa import Agent, ApprovalError, open, tool
from tropa.model.scripted import Scripted

pytestmark = pytest.mark.anyio


async def waiting(store, seconds, done):
    @tool
    def pay(amount: int) -> str:
        """Pay an amount."""
        done.append(amount)
        return "paid"

    script = Scripted([[("pay", {"amount": 5})], "Nobody answered, so nothing was paid."])
    agent = Agent("till", model=script, tools=[pay], approval_seconds=seconds)
    run = await agent.run("Pay 5", store=store, thread="t")
    assert run.status == "waiting"
    return agent, run.pending[0]


async def test_an_expired_proposal_cannot_be_approved_and_the_run_goes_on_without_it(tmp_path):
    done = []
    async with open(tmp_path / "trail.db") as store:
        agent, proposal = await waiting(store, 0.05, done)
        assert proposal.expires - proposal.asked == pytest.approx(0.05, abs=0.05)
        await asyncio.sleep(0.1)
        with pytest.raises(ApprovalError, match="expired"):
            await store.approve(proposal.id, by="late")
        run = await agent.resume("t", store=store)
        assert run.answer.startswith("Nobody answered")
        call = (await store.trail("t")).runs[0].steps[0].calls[0]
        assert (call.observation.status, call.error) == ("rejected", "expired")
        assert not await store.pending()
    assert not done


async def test_an_approval_in_time_holds_also_when_it_is_carried_out_later(tmp_path):
    done = []
    async with open(tmp_path / "trail.db") as store:
        agent, proposal = await waiting(store, 0.3, done)
        await store.approve(proposal.id, by="quick")
        await asyncio.sleep(0.4)
        run = await agent.resume("t", store=store)
        assert run.ok
    assert done == [5]


async def test_before_it_expires_the_thread_waits(tmp_path):
    async with open(tmp_path / "trail.db") as store:
        agent, _ = await waiting(store, 60, [])
        assert (await agent.resume("t", store=store)).status == "waiting"
