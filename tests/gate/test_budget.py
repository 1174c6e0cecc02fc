"""Limits and reservations."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tropa.errors import BudgetError
from tropa.gate import Budget, Reservation, Spent, refuse_call, reserve, stop_before_ask
from tropa.model import Price, Usage


@pytest.mark.parametrize("limit", [-1, math.nan, math.inf])
@pytest.mark.parametrize("name", ["tokens", "cost", "seconds", "calls"])
def test_a_limit_that_is_no_limit_is_refused_by_name(name, limit):
    with pytest.raises(BudgetError, match=name):
        Budget(**{name: limit})


def test_a_run_needs_a_step():
    with pytest.raises(BudgetError, match="steps"):
        Budget(steps=0)


def test_a_limit_of_one_tool_is_checked_too():
    with pytest.raises(BudgetError, match=r"per_tool\['pay'\]"):
        Budget(per_tool={"pay": -1})


def test_a_budget_survives_storage():
    budget = Budget(steps=3, tokens=100, cost=0.5, seconds=9.0, calls=2, per_tool={"pay": 1})
    assert Budget.from_json(budget.to_json()) == budget
    assert Budget.from_json(Budget(steps=None).to_json()) == Budget(steps=None)


@example(tokens=None, cost=0.0, spent=0, prompt=1, want=1, keep=0, price=(1.0, 5e-324))
@example(tokens=None, cost=0.0625, spent=0, prompt=1, want=1, keep=0, price=(0.0, 2.3e-309))
@given(
    tokens=st.none() | st.integers(0, 5000),
    cost=st.none() | st.floats(0, 0.1),
    spent=st.integers(0, 3000),
    prompt=st.integers(1, 3000),
    want=st.integers(1, 2000),
    keep=st.integers(0, 500),
    price=st.tuples(st.floats(0, 20), st.floats(0, 80)),
)
def test_what_is_reserved_always_fits_what_is_left(tokens, cost, spent, prompt, want, keep, price):
    rate = Price(*price)
    used = Usage(spent, 0)
    before = Spent(Usage(spent, 0, cost=rate.of(used)))
    fits = reserve(Budget(tokens=tokens, cost=cost), before, prompt, want, rate, Usage(keep))
    if not isinstance(fits, Reservation):
        assert fits in {"max_tokens", "max_cost"}
        return
    assert 0 < fits.max_output <= want
    if tokens is not None:
        assert spent + prompt + fits.max_output + keep <= tokens
    if cost is not None:
        total = rate.of(used) + rate.of(Usage(prompt, fits.max_output)) + rate.of(Usage(keep))
        assert total <= cost + 1e-9


def test_the_output_shrinks_to_what_is_left_and_below_a_floor_nothing_is_asked():
    spent = Spent(Usage(50, 0))
    assert reserve(Budget(tokens=100), spent, 20, 500, None) == Reservation(20, 30)
    assert reserve(Budget(tokens=100), spent, 40, 500, None) == "max_tokens"


def test_money_needs_a_price():
    with pytest.raises(BudgetError, match="Price"):
        reserve(Budget(cost=1.0), Spent(), 10, 10, None)


def test_calls_are_counted_in_all_and_by_tool():
    spent = Spent()
    spent.calls.update({"pay": 2, "list": 3})
    assert refuse_call(Budget(calls=6), spent, "pay") is None
    assert "5 tool calls" in str(refuse_call(Budget(calls=5), spent, "list"))
    assert "`pay`" in str(refuse_call(Budget(per_tool={"pay": 2}), spent, "pay"))
    assert refuse_call(Budget(per_tool={"pay": 2}), spent, "list") is None


def test_steps_and_seconds_stop_before_the_next_request():
    assert stop_before_ask(Budget(steps=2), Spent(steps=2), 0) == "max_steps"
    assert stop_before_ask(Budget(seconds=5), Spent(), 5.0) == "max_seconds"
    assert stop_before_ask(Budget(seconds=5), Spent(), 4.9) is None
