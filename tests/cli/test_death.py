"""A process that dies while it waits or works loses nothing, and nothing happens twice (E-03, E-05)."""

from __future__ import annotations

import os
import signal

import pytest

from tests.cli.conftest import Bench
from tests.cli.test_terminal import QUESTION, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")]


def test_a_process_killed_while_it_asks_leaves_the_same_proposal(bench: Bench) -> None:
    """E-03: the id and the arguments are the same afterwards; approving in a new process completes the run."""
    child = bench.spawn("run", "drill", "--thread", "t", agent="driller")
    child.expect(QUESTION)
    before = bench.pending()
    child.kill(signal.SIGKILL)
    child.wait()
    assert bench.pending() == before
    assert bench.json("trail", "list")[0]["status"] == "waiting"
    done = bench.run("inbox", "approve", before[0]["id"], agent="driller")
    assert (done.exit_code, bench.effects) == (0, ["drill lid 4"])


def test_a_call_that_was_running_when_the_process_died_is_never_run_again_unasked(bench: Bench) -> None:
    """E-05 (4)."""
    child = bench.spawn("run", "weld", "--thread", "t", agent="welder")
    child.expect(QUESTION)
    id = bench.pending()[0]["id"]
    child.sendline("y")
    wait_for(lambda: bench.effects)
    child.kill(signal.SIGKILL)
    child.wait()
    assert bench.run("inbox", "approve", id, agent="welder").exit_code == 1
    resumed = bench.json("resume", "t", agent="welder", code=3)
    (doubt,) = resumed["pending"]
    assert doubt["kind"] == "unknown"
    assert bench.run("resume", "t", agent="welder").exit_code == 3
    assert bench.effects == ["weld frame"]
    assert "outcome unknown" in bench.run("inbox").stdout
    done = bench.run("inbox", "resolve", doubt["id"], "done", "--by", "ann", agent="welder")
    assert (done.exit_code, done.stdout) == (0, "Outcome: ok\n")
    assert bench.effects == ["weld frame"]


def test_an_explicit_retry_runs_it_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    child = bench.spawn("run", "weld", "--thread", "t", agent="welder")
    child.expect(QUESTION)
    child.sendline("y")
    wait_for(lambda: bench.effects)
    child.kill(signal.SIGKILL)
    child.wait()
    monkeypatch.setenv("WELDING", "0")
    again = bench.spawn("resume", "t", agent="welder")
    again.expect("was started, and its outcome is unknown")
    again.expect("did it happen?")
    again.sendline("r")
    again.expect("Outcome: ok")
    assert bench.effects == ["weld frame"] * 2


def test_a_decision_whose_process_died_before_the_call_is_carried_out_by_the_next(bench: Bench) -> None:
    """E-05 (4), before the start: the approval holds, once."""
    asked = bench.json("run", "drill", "--thread", "t", agent="driller", code=3)["pending"][0]["id"]
    bench.run("inbox", "approve", asked, "--no-resume")
    assert bench.json("inbox")["decided"] == ["t"]
    for _ in range(2):
        assert bench.run("resume", "t", agent="driller").exit_code == 0
    assert bench.effects == ["drill lid 4"]
