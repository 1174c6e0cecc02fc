"""The warehouse demo with the real model."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.conftest import Bench, finish
from tests.cli.test_terminal import QUESTION
from tropa.demo import Warehouse, warehouse_agent
from tropa.errors import ToolFailed

needs_needle = pytest.mark.slow
SLOW_MACHINE = 90


def stock(bench: Bench) -> dict[tuple[str, str], int]:
    return {(sku, site): number for sku, site, number in Warehouse(bench.folder / ".tropa/demo").rows()}


@needs_needle
def test_a_yes_moves_the_stock_once_and_shows_the_trail(bench: Bench) -> None:
    child = bench.spawn("demo", "warehouse")
    child.timeout = SLOW_MACHINE
    child.expect(QUESTION)
    shown = re.sub(r"\x1b\[[\d;]*m", "", child.before)
    assert "move_stock waits for approval" in shown
    assert re.search(r"quantity\s+40\s+the user said it", shown)
    child.sendline("y")
    assert finish(child) == 0
    shown = re.sub(r"\x1b\[[\d;]*m", "", child.before)
    for words in ("120 → 80", "15 → 55", "approved by", "tokens in", "completed (answered)", "moved 40"):
        assert words in shown, words
    assert (stock(bench)["A-113", "Hamburg"], stock(bench)["A-113", "Rotterdam"]) == (80, 55)


@needs_needle
def test_without_a_terminal_it_waits_and_the_inbox_finishes_it(bench: Bench) -> None:
    done = bench.run("demo")
    assert done.exit_code == 3
    assert stock(bench)["A-113", "Hamburg"] == 120
    id = re.search(r"tropa inbox approve (\w+)", done.stdout)[1]
    assert bench.run("inbox", "approve", id).exit_code == 0
    assert (stock(bench)["A-113", "Hamburg"], stock(bench)["A-113", "Rotterdam"]) == (80, 55)
    assert bench.run("inbox", "approve", id).exit_code == 1
    assert stock(bench)["A-113", "Hamburg"] == 80


@needs_needle
def test_the_request_that_once_moved_stock_eight_times_moves_it_once_at_most(bench: Bench) -> None:
    """Approving whatever is asked, the same move never runs twice and the run ends."""
    done = bench.run("demo", "warehouse", "--json")
    run = json.loads(done.stdout)
    for _ in range(8):
        if run["status"] != "waiting":
            break
        run = bench.json("inbox", "approve", run["pending"][0]["id"])["run"]
    assert (run["status"], run["stop"]) == ("completed", "answered")
    assert stock(bench)["A-113", "Hamburg"] == 80


def test_the_stock_is_reset_at_each_start(bench: Bench) -> None:
    house = Warehouse(bench.folder)
    house.reset()
    opening = house.rows()
    house.move_stock("A-113", 20, "Hamburg", "Gdansk")
    assert house.rows() != opening
    house.reset()
    assert house.rows() == opening


@pytest.mark.parametrize(
    ("move", "complaint"),
    [
        (("A-113", 121, "Hamburg", "Gdansk"), "Hamburg has 120 pieces of A-113, not 121"),
        (("X-1", 1, "Hamburg", "Gdansk"), "Hamburg has 0 pieces of X-1"),
        (("A-113", 0, "Hamburg", "Gdansk"), "at least 1"),
        (("A-113", -5, "Hamburg", "Gdansk"), "at least 1"),
        (("A-113", 5, "Hamburg", "Hamburg"), "are both Hamburg"),
    ],
)
def test_an_impossible_move_moves_nothing(bench: Bench, move: tuple, complaint: str) -> None:
    house = Warehouse(bench.folder)
    house.reset()
    before = house.rows()
    with pytest.raises(ToolFailed, match=complaint):
        house.move_stock(*move)
    assert house.rows() == before


def test_a_warehouse_that_is_not_there_is_named(bench: Bench) -> None:
    with pytest.raises(ToolFailed, match="tropa demo warehouse"):
        Warehouse(bench.folder).rows()


def test_only_the_move_has_side_effects(bench: Bench) -> None:
    from tropa.model import Scripted

    hints = {one.name: one.hints.read_only for one in warehouse_agent(bench.folder, Scripted([])).setup.toolbox}
    assert hints == {"stock": True, "move_stock": False}
