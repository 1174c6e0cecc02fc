"""A limit is a limit: spent is never more than the budget, whatever the model says."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.session.crash import Fuse, FusedJournal, Killed, by_exception
from tests.session.history import results, well_formed
from tropa import Agent, Budget, BudgetError, Store, tool
from tropa import open as open_store
from tropa.errors import ModelError
from tropa.gate import RUN
from tropa.messages import Assistant
from tropa.model import Price, Profile, RawCall, Reply
from tropa.model.scripted import Scripted, calls

RATE = Price(3.0, 15.0, 0.3)


def free(proposed):
    return RUN


@tool(read_only=True)
def look(n: int) -> str:
    return "x" * n


@tool
def act(n: int) -> str:
    return "y" * n


STEP = st.one_of(
    st.integers(0, 900).map(lambda size: "w" * size),
    st.tuples(st.integers(0, 900), st.integers(0, 200)).map(
        lambda pair: Reply("t" * pair[0], (RawCall("look", {"n": pair[1]}),), reasoning="r" * pair[1], finish="calls")
    ),
    st.lists(st.tuples(st.sampled_from(["look", "act", "none"]), st.integers(0, 300)), min_size=1, max_size=6).map(
        lambda batch: calls(*[(name, {"n": n}) for name, n in batch])
    ),
    st.just(ModelError("down")),
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "steps": st.integers(1, 6),
        "tokens": st.integers(0, 3000),
        "cost": st.floats(0, 0.02),
        "calls": st.integers(0, 5),
        "per_tool": st.fixed_dictionaries({}, optional={"look": st.integers(0, 3), "act": st.integers(0, 3)}),
    },
)


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEP, min_size=1, max_size=10), limits=LIMITS, room=st.integers(16, 600), again=st.integers(0, 2))
def test_spent_is_never_over_the_budget_also_with_parallel_calls_failures_and_resumes(steps, limits, room, again):
    budget = Budget(**limits)
    ran = []

    async def play():
        script = iter([*steps, *["end"] * 20])

        def reply(request):
            return next(script)

        model = Scripted(reply, price=RATE, profile=Profile(context=1200, max_output=room))

        @tool(read_only=True)
        def look(n: int) -> str:
            ran.append("look")
            return "x" * n

        @tool
        def act(n: int) -> str:
            ran.append("act")
            return "y" * n

        one = Agent("spender", model=model, tools=[look, act], budget=budget, policy=free)
        async with open_store(":memory:") as store:
            run = await one.run("go " * 10, store=store, thread="t")
            for _ in range(again):
                run = await one.resume("t", store=store)
            return run, model, (await store.thread("t")).state.messages, await store.trail("t")

    run, model, messages, trail = asyncio.run(play())
    assert well_formed(messages)
    if budget.tokens is not None:
        assert run.usage.tokens <= budget.tokens
    if budget.cost is not None:
        assert (run.usage.cost or 0.0) <= budget.cost + 1e-12
    closings = sum(step.closing is not None for step in trail)
    if budget.steps is not None:
        assert len(model.requests) <= budget.steps + closings + again + 1
        assert run.steps <= budget.steps
    if budget.calls is not None:
        assert len(ran) <= budget.calls
    for name, most in budget.per_tool.items():
        assert ran.count(name) <= most
    assert sum(request.max_output for request in model.requests) >= run.usage.output


@pytest.mark.anyio
async def test_a_model_that_wants_to_say_5050_tokens_is_never_asked_for_more_than_fits():
    model = Scripted(["word" * 5050] * 9)
    run = await Agent("x", model=model).run("tell me all", budget=Budget(tokens=100))
    assert run.usage.tokens <= 100
    assert all(request.max_output <= 100 for request in model.requests)
    assert run.status == "stopped"
    assert run.stop in {"truncated", "max_tokens"}


@pytest.mark.anyio
async def test_a_closing_answer_is_kept_in_reserve():
    def reply(request):
        return calls(("look", {"n": 50})) if request.tools else "what I know"

    model = Scripted(
        lambda request: (
            Reply(f"{len(model.requests)}" * 40, (RawCall("look", {"n": len(model.requests)}),), finish="calls")
            if request.tools
            else "what I know"
        )
    )
    run = await Agent("x", model=model, tools=[look]).run("go", budget=Budget(steps=None, tokens=600))
    assert (run.stop, run.answer) == ("max_tokens", "what I know")
    assert run.usage.tokens <= 600
    assert model.requests[-1].tools == ()


@pytest.mark.anyio
async def test_the_last_step_is_followed_by_one_answer_without_tools():
    model = Scripted(lambda request: calls(("look", {"n": len(model.requests)})) if request.tools else "closing words")
    run = await Agent("x", model=model, tools=[look]).run("go", budget=Budget(steps=3))
    assert (run.stop, run.answer, run.steps, run.ok) == ("max_steps", "closing words", 3, False)


@pytest.mark.anyio
async def test_a_model_that_ignores_its_limit_is_broken_off_and_the_run_stops_with_honest_usage():
    model = Scripted(["word" * 5050] * 9, ignore_limits=True)
    deltas = []
    async with open_store(":memory:") as store:
        run = await Agent("x", model=model).run(
            "go", store=store, thread="t", budget=Budget(tokens=100), watch=deltas.append
        )
        trail = await store.trail("t")
        replied = [entry for entry in trail.events if entry.kind == "model.replied"]
    assert len(model.requests) == 1
    assert run.stop == "truncated"
    assert run.usage.tokens > 100
    assert run.usage.estimated
    assert "max_output" in replied[0].body["warnings"][0]
    assert run.usage.output < 5050  # broken off at the first delta that went clearly over


@pytest.mark.anyio
async def test_a_parallel_batch_does_not_pass_the_limit_of_calls():
    """F-02: five of six used, a reply with three; exactly one more runs."""
    ran = []

    @tool
    def act(n: int) -> str:
        ran.append(n)
        return "ok"

    def reply(request):
        if not request.tools:
            return "closing"
        return (
            calls(*[("act", {"n": n}) for n in range(5)]) if not ran else calls(*[("act", {"n": n}) for n in (7, 8, 9)])
        )

    one = Agent("x", model=Scripted(reply), tools=[act], policy=free)
    async with open_store(":memory:") as store:
        run = await one.run("go", store=store, thread="t", budget=Budget(calls=6))
        messages = (await store.thread("t")).state.messages
    assert ran == [0, 1, 2, 3, 4, 7]
    assert (run.stop, run.answer) == ("max_calls", "closing")
    assert [item.status for item in results(messages)][-3:] == ["ok", "cancelled", "cancelled"]


@pytest.mark.anyio
async def test_a_reply_that_crosses_the_cost_is_not_followed_by_another():
    """F-02, second run: the reply itself uses up the money."""
    one = Agent("x", model=Scripted(lambda request: calls(("look", {"n": 3})), price=RATE), tools=[look])
    run = await one.run("go", budget=Budget(cost=0.0006))
    assert run.stop == "max_cost"
    assert run.usage.cost <= 0.0006


@pytest.mark.anyio
async def test_a_limit_of_money_without_a_price_is_refused_before_anything_is_written():
    async with open_store(":memory:") as store:
        with pytest.raises(BudgetError, match="price"):
            await Agent("x", model=Scripted(["a"])).run("go", store=store, thread="t", budget=Budget(cost=1))
        assert await store.threads() == []


@pytest.mark.anyio
async def test_seconds_stop_a_slow_model_and_what_was_spent_is_counted():
    model = Scripted(["slow"], delay=5)
    run = await Agent("x", model=model).run("go", budget=Budget(seconds=0.2))
    assert (run.stop, run.status) == ("max_seconds", "stopped")
    assert run.usage.input > 0
    assert run.seconds < 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("hints", "status"), [({"read_only": True}, "error"), ({}, "unknown"), ({"idempotent": True}, "error")]
)
async def test_seconds_stop_a_slow_tool_and_a_side_effect_is_unknown_then(hints, status):
    @tool(**hints)
    async def wait() -> str:
        await asyncio.sleep(5)
        return "late"

    one = Agent("x", model=Scripted([calls(("wait", {})), "ok"]), tools=[wait], policy=free)
    async with open_store(":memory:") as store:
        run = await one.run("go", store=store, thread="t", budget=Budget(seconds=0.3))
        messages = (await store.thread("t")).state.messages
        waiting = await store.pending("t")
    assert run.stop == "max_seconds"
    assert results(messages)[0].status == status
    assert [item.kind for item in waiting] == (["unknown"] if status == "unknown" else [])


@pytest.mark.anyio
async def test_a_request_that_got_no_reply_counts_as_spent():
    model = Scripted([ModelError("down"), "ok"], profile=Profile(max_output=50), price=RATE)
    one = Agent("x", model=model)
    async with open_store(":memory:") as store:
        lost = await one.run("go", store=store, thread="t")
        run = await one.resume("t", store=store)
        (row,) = await store.runs("t")
    assert lost.status == "failed"
    assert (lost.usage.output, lost.usage.estimated) == (50, True)
    assert lost.usage.cost == pytest.approx(RATE.of(lost.usage))
    assert (run.usage.output, run.usage.input) == (51, 2)
    assert (row.output, row.input) == (51, 2)


@pytest.mark.anyio
async def test_a_request_whose_process_died_counts_as_spent_too():
    class Dead(BaseException):
        pass

    def reply(request):
        if not died:
            died.append(1)
            raise Dead
        return "ok"

    died = []
    one = Agent("x", model=Scripted(reply, profile=Profile(max_output=50)))
    async with open_store(":memory:") as store:
        with pytest.raises(Dead):
            await one.run("go", store=store, thread="t", budget=Budget(tokens=60))
        await store.journal.append("t", (await store.thread("t")).seq, [], release=True)
        run = await one.resume("t", store=store)
        assert (run.stop, run.usage.tokens) == ("max_tokens", 51)
        assert len(one.setup.model.requests) == 1  # the second was not made: less is left than is worth asking for
        run = await one.resume("t", store=store, budget=Budget(tokens=200))
        assert (run.answer, run.usage.tokens) == ("ok", 53)


@pytest.mark.anyio
async def test_a_bigger_budget_lets_a_stopped_run_go_on():
    turn = iter(range(100))
    model = Scripted(
        lambda request: (
            (calls(("look", {"n": n})) if (n := next(turn)) < 4 else "all seen") if request.tools else "so far"
        )
    )
    one = Agent("x", model=model, tools=[look])
    async with open_store(":memory:") as store:
        first = await one.run("go", store=store, thread="t", budget=Budget(steps=2))
        run = await one.resume("t", store=store, budget=Budget(steps=9))
        assert well_formed((await store.thread("t")).state.messages)
    assert (first.stop, first.answer) == ("max_steps", "so far")
    assert (run.stop, run.answer) == ("answered", "all seen")


@pytest.mark.anyio
async def test_a_crash_at_any_point_does_not_let_a_run_spend_more_than_its_budget():
    at, most = 0, 700
    while True:
        at += 1
        fuse = Fuse(at, by_exception)
        store = Store(FusedJournal(":memory:", fuse))
        script = [calls(("look", {"n": 40}), ("look", {"n": 60})), calls(("act", {"n": 80})), "words " * 40]
        model = Scripted(
            lambda request: (
                script[sum(isinstance(m, Assistant) for m in request.messages)] if request.tools else "so far"
            ),
            profile=Profile(max_output=90),
        )
        one = Agent("x", model=model, tools=[look, act], policy=free, budget=Budget(tokens=most))
        died = False
        try:
            await one.run("go", store=store, thread="t")
        except Killed:
            died, fuse.at = True, 0
            head = await store.journal.head("t")
            if head.seq:
                await store.journal.append("t", head.seq, [], release=True)
                run = await one.resume("t", store=store)
                while run.status == "waiting":
                    await store.resolve(run.pending[0].id, "done", by="me")
                    run = await one.resume("t", store=store)
                assert run.usage.tokens <= most, at
                assert well_formed((await store.thread("t")).state.messages)
        await store.close()
        if not died:
            break
    assert at > 15
