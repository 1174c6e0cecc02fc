"""C-06: the fields of a thread outlive the code that wrote them."""

import pytest

from tropa import Agent, UsageError, open, tool
from tropa.model.scripted import Scripted
from tropa.session import Field

pytestmark = pytest.mark.anyio

OLD = {"notes": Field([], "append"), "plan": ""}
NEW = {"notes": Field([], "append"), "steps": [], "owner": "nobody"}


def old(script="hello"):
    return Agent("planner", model=Scripted([script] if isinstance(script, str) else script), fields=OLD)


def new(**more):
    instructions = "Steps: {steps}. Owner: {owner}."
    return Agent("planner", model=Scripted(["again", "more"]), fields=NEW, instructions=instructions, **more)


def to_two(fields):
    plan = fields.pop("plan", None)
    return {**fields, "owner": "ann", **({} if plan is None else {"steps": plan.split("; ")})}


async def begun(store):
    await old().run("hi", store=store, thread="t", plan="pack; ship", notes=["fragile"])


async def test_a_registered_migration_brings_a_thread_along_with_its_messages(tmp_path):
    async with open(tmp_path / "trail.db") as store:
        await begun(store)
    async with open(tmp_path / "trail.db") as store:
        agent = new(fields_version=2, migrations={1: to_two})
        await agent.run("go on", store=store, thread="t", notes=["heavy"])
        assert agent.setup.model.requests[0].system == 'Steps: ["pack","ship"]. Owner: ann.'
        thread = await store.thread("t")
        assert thread.state.fields == {"notes": ["fragile", "heavy"], "steps": ["pack", "ship"], "owner": "ann"}
        assert [message.parts[0].text for message in thread.state.messages] == ["hi", "hello", "go on", "again"]
        assert await store.journal.verify("t")
        await agent.run("and on", store=store, thread="t")
        assert (await store.thread("t")).state.owner == "ann", "a migration runs once"


async def test_a_missing_migration_is_said_and_nothing_is_written(tmp_path):
    async with open(tmp_path / "trail.db") as store:
        await begun(store)
        before = (await store.journal.head("t")).seq
        with pytest.raises(UsageError, match=r"`plan`.* have version 1, .* has 3: register a migration from 2 to 3"):
            await new(fields_version=3, migrations={1: to_two}).run("go on", store=store, thread="t")
        assert (await store.journal.head("t")).seq == before
        assert (await store.thread("t")).state.plan == "pack; ship"


async def test_older_code_refuses_a_newer_thread_and_drops_nothing(tmp_path):
    async with open(tmp_path / "trail.db") as store:
        await begun(store)
        await new(fields_version=2, migrations={1: to_two}).run("go on", store=store, thread="t")
    async with open(tmp_path / "trail.db") as store:
        with pytest.raises(UsageError, match="have version 2, the agent `planner` knows up to 1"):
            await old().run("what?", store=store, thread="t")
        assert (await store.thread("t")).state.owner == "ann"


async def test_fields_that_the_agent_does_not_know_are_kept(tmp_path):
    async with open(tmp_path / "trail.db") as store:
        await begun(store)
        await Agent("planner", model=Scripted(["ok"]), fields={"language": "en"}).run("x", store=store, thread="t")
        assert (await store.thread("t")).state.plan == "pack; ship"


async def test_a_run_that_waits_is_brought_along_when_it_is_resumed(tmp_path):
    @tool
    def ship(n: int) -> str:
        """Ship."""
        return "shipped"

    async with open(tmp_path / "trail.db") as store:
        first = Agent("planner", model=Scripted([[("ship", {"n": 1})]]), fields=OLD, tools=[ship])
        run = await first.run("hi", store=store, thread="t", plan="pack")
        await store.approve(run.pending[0].id, by="me")
        agent = Agent(
            "planner", model=Scripted(["done"]), tools=[ship], fields=NEW, fields_version=2, migrations={1: to_two}
        )
        assert (await agent.resume("t", store=store)).answer == "done"
        assert (await store.thread("t")).state.steps == ["pack"]
