"""Looking at what happened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Bench


def test_a_trail_shows_steps_calls_decisions_results_tokens_time_and_places(
    drilled: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = drilled.run("trail", "show", "t").stdout
    for words in (
        "Thread t  pair on scripted:test  completed (answered)",
        "cost unknown",
        "1 run · 2 steps",
        "user    drill both\\x1b[2J",
        "step 1",
        'call    drill(part="lid", holes=1)',
        "rejected by ann: not the lid",
        "→ rejected: The user rejected this call. Reason: not the lid",
        "approved by ann",
        "→ 2 holes in box",
        "answer  rejected The user",
        "■ completed (answered)",
        "tokens in",
        "#2",
    ):
        assert words in shown, words
    assert "\x1b" not in shown


def test_the_places_of_a_trail_are_events(drilled: Bench) -> None:
    trail = drilled.json("trail", "show", "t")
    step = trail["runs"][0]["steps"][0]
    events = {one["seq"]: one for one in drilled.json("trail", "follow", "t")}
    assert events[step["place"]]["kind"] == "model.replied"
    assert [events[call["place"]]["kind"] for call in step["calls"]] == ["call.proposed"] * 2
    assert trail["latest"]["status"] == "completed"


def test_long_results_are_shortened_unless_asked_in_full(bench: Bench) -> None:
    bench.run("run", "x" * 3000, "--thread", "t", agent="parrot")
    assert bench.run("trail", "show", "t").stdout.count("x") < 5000
    assert bench.run("trail", "show", "t", "--full").stdout.count("x") == 6000


def test_a_waiting_trail_says_so(bench: Bench) -> None:
    bench.run("run", "drill", "--thread", "t", agent="driller")
    shown = bench.run("trail", "show", "t").stdout
    assert "waits for a person" in shown
    assert "waiting" in shown


def test_a_trail_of_a_stranger_acts_on_nothing(bench: Bench) -> None:
    bench.run("run", "go", "--thread", "\x1b[31m", agent="stranger")
    for done in (
        bench.run("trail", "list"),
        bench.run("trail", "show", "\x1b[31m"),
        bench.run("trail", "show", "\x1b[31m", "--json"),
    ):
        assert done.exit_code == 0
        assert not {"\x1b", "\u202e", "\U000e0041", "\u200b", "\x07"} & set(done.output)


def test_threads_are_listed_newest_first_and_by_status(bench: Bench) -> None:
    bench.run("run", "one", "--thread", "a", agent="parrot")
    bench.run("run", "drill", "--thread", "b", agent="driller")
    assert [one["thread"] for one in bench.json("trail", "list")] == ["b", "a"]
    assert [one["thread"] for one in bench.json("trail", "list", "--status", "waiting")] == ["b"]
    assert [one["thread"] for one in bench.json("trail", "list", "--limit", "1")] == ["b"]
    assert "drill" in bench.run("trail").stdout


def test_one_changed_byte_is_found(drilled: Bench) -> None:
    assert drilled.json("trail", "verify")["threads"] == 1
    assert "intact" in drilled.run("trail", "verify", "t").stdout
    database = sqlite3.connect(".tropa/trail.db")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    file = Path(".tropa/trail.db")
    assert b"not the lid" in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(b"not the lid", b"not the lit"))
    done = drilled.run("trail", "verify")
    assert done.exit_code == 1
    assert "thread" in done.stderr


def test_a_fork_goes_its_own_way_and_carries_no_approval(bench: Bench) -> None:
    asked = bench.json("run", "drill", "--thread", "t", agent="driller", code=3)["pending"][0]["id"]
    assert bench.json("trail", "fork", "t", "u") == {
        "thread": "u",
        "origin": "t",
        "at": bench.json("trail", "list")[0]["events"],
    }
    bench.run("inbox", "approve", asked, agent="driller")
    done = bench.run("resume", "u", agent="driller")
    assert done.exit_code == 3
    assert bench.effects == ["drill lid 4"]
    assert bench.run("trail", "fork", "t", "u").exit_code == 1
    assert bench.run("trail", "fork", "t", "v", "--at", "999").exit_code == 2


def test_following_ends_with_the_run(drilled: Bench) -> None:
    done = drilled.run("trail", "follow", "t")
    assert done.exit_code == 0
    assert "run.started" in done.stdout
    assert "run.finished" in done.stdout
