"""Workers as real processes on a real Postgres: spread, woken, killed, frozen, told to stop, cut from their database."""

from __future__ import annotations

import collections
import json
import re
import signal
import time

import pytest
from typer.testing import CliRunner

from tests.fleet.conftest import wait_for
from tropa.cli.app import app

pytestmark = pytest.mark.slow


def cli(*arguments: str, code: int | None = 0):
    done = CliRunner().invoke(app, [*arguments], prog_name="tropa")
    assert code is None or done.exit_code == code, done.output
    return done


def pids(fleet, effect: str) -> list[int]:
    return [int(line.rpartition(" ")[2]) for line in fleet.effects if line.startswith(effect)]


def test_two_workers_that_start_at_once_share_twenty_threads_and_do_each_once(fleet):
    workers = [fleet.start(), fleet.start()]  # both make the tables, at the same moment
    wait_for(lambda: len(fleet.do(lambda _, queue: queue.workers())) == 2, why="both workers join")
    names = [f"t{number}" for number in range(18)] + ["../\x00 ' \U0001f69a", "x" * 10_000]
    fleet.submit("hoist", *names)
    for name in names:
        assert fleet.until(name, "completed").answer == "ok: lifted"
    assert collections.Counter(fleet.effects) == {f"lift 7 {name}".partition("\n")[0]: 1 for name in names}
    done = [fleet.said(worker).count("completed") for worker in workers]
    assert sum(done) == 20
    assert min(done) >= 1, fleet.all_said()
    assert [fleet.stop(worker) for worker in workers] == [0, 0]
    assert fleet.do(lambda _, queue: queue.workers()) == []


def test_an_approval_from_a_third_process_wakes_the_run_on_any_worker(fleet):
    """E-03, E-01: nothing is held while it waits; the decision wakes it; what was done is not done again."""
    first = fleet.start("crane")
    fleet.submit("crane", "t")
    (proposal,) = fleet.until("t", "waiting").pending
    assert fleet.owner("t") is None
    fleet.stop(first, signal.SIGKILL)
    fleet.start("crane")
    assert fleet.until("t", "waiting").pending[0].id == proposal.id
    told = cli("inbox", "approve", proposal.id, "--no-resume", "--by", "ada", "--store", fleet.url, "--json", code=3)
    assert json.loads(told.stdout)["decision"]["woken"] is True
    assert fleet.until("t", "completed").answer == "ok: lifted"
    assert fleet.effects == ["lift 7 t"]


def test_a_decision_without_an_agent_at_hand_is_left_to_the_workers(fleet):
    fleet.start("crane")
    fleet.submit("crane", "t")
    (proposal,) = fleet.until("t", "waiting").pending
    told = cli("inbox", "approve", proposal.id, "--store", fleet.url, code=3)
    assert "a worker that knows the agent goes on" in told.stderr
    fleet.until("t", "completed")


def test_a_decision_that_woke_nobody_is_found(fleet):
    fleet.start("crane")
    fleet.submit("crane", "t")
    (proposal,) = fleet.until("t", "waiting").pending
    fleet.do(lambda store, _: store.approve(proposal.id, by="ada"))
    fleet.until("t", "completed")


def test_an_approval_that_expires_wakes_its_run_and_one_that_does_not_stands_in_no_way(fleet):
    """E-03."""
    fleet.start("brief", "patient")
    fleet.submit("brief", "t")
    fleet.submit("patient", "u")
    assert "expired" in fleet.until("t", "completed").answer
    (proposal,) = fleet.until("u", "waiting").pending
    wait_for(lambda: fleet.sql("SELECT count(*) FROM procrastinate_jobs WHERE lock IS NULL") == [(1,)])
    cli("inbox", "approve", proposal.id, "--no-resume", "--store", fleet.url, code=3)
    began = time.monotonic()
    fleet.until("u", "completed")
    assert time.monotonic() - began < 5
    assert fleet.effects == ["lift 7 u"]


def test_killed_inside_an_idempotent_tool_the_other_runs_it_again_under_the_same_key(fleet):
    fleet.hold()
    fleet.start()
    fleet.start()
    fleet.submit("bank", "t")
    (pid,) = wait_for(lambda: pids(fleet, "try"))
    killed = next(one for one in fleet.workers if one.pid == pid)
    fleet.stop(killed, signal.SIGKILL)
    fleet.let_go()
    began = time.monotonic()
    assert fleet.until("t", "completed").answer == "ok: paid"
    assert time.monotonic() - began < 12, "the claim of a process that is gone on the same machine ends at once"
    first, second, paid = fleet.effects
    assert first.split()[1:3] == [paid.split()[1], "1"]
    assert second.split()[1:3] == [paid.split()[1], "2"]
    assert pids(fleet, "try")[1] != pid


def test_killed_inside_a_side_effect_the_outcome_is_unknown_until_a_person_says(fleet):
    fleet.hold()
    fleet.start()
    fleet.start()
    fleet.submit("port", "t")
    (pid,) = wait_for(lambda: pids(fleet, "ship"))
    fleet.stop(next(one for one in fleet.workers if one.pid == pid), signal.SIGKILL)
    (doubt,) = fleet.until("t", "waiting").pending
    assert doubt.kind == "unknown"
    cli("inbox", "resolve", doubt.id, "done", "--no-resume", "--store", fleet.url, code=3)
    assert fleet.until("t", "completed").answer.startswith("ok: A person confirmed")
    assert len(fleet.effects) == 1


def test_a_frozen_worker_that_wakes_up_late_does_nothing_twice(fleet):
    fleet.hold()
    fleet.start()
    fleet.start()
    fleet.submit("walker", "t")
    (pid,) = wait_for(lambda: pids(fleet, "weigh"))
    frozen = next(one for one in fleet.workers if one.pid == pid)
    frozen.send_signal(signal.SIGSTOP)
    fleet.let_go()
    assert fleet.until("t", "completed", seconds=60).answer == "done after 9 steps"
    before = fleet.events("t")
    frozen.send_signal(signal.SIGCONT)
    time.sleep(3)
    assert fleet.events("t") == before
    assert fleet.effects.count("lift 8 t") == 1
    assert pids(fleet, "weigh").count(pid) == 1
    fleet.submit("hoist", *(f"more{number}" for number in range(8)))
    for number in range(8):
        fleet.until(f"more{number}", "completed")
    wait_for(lambda: "more" in fleet.said(frozen), why="it works again")


def test_a_worker_frozen_inside_a_side_effect_is_not_believed_when_it_wakes_up(fleet):
    fleet.hold()
    fleet.start()
    fleet.start()
    fleet.submit("port", "t")
    (pid,) = wait_for(lambda: pids(fleet, "ship"))
    frozen = next(one for one in fleet.workers if one.pid == pid)
    frozen.send_signal(signal.SIGSTOP)
    (doubt,) = fleet.until("t", "waiting", seconds=60).pending
    fleet.let_go()
    frozen.send_signal(signal.SIGCONT)
    time.sleep(3)
    assert [one.id for one in fleet.run("t").pending] == [doubt.id]
    cli("inbox", "resolve", doubt.id, "done", "--no-resume", "--store", fleet.url, code=3)
    assert fleet.until("t", "completed").answer.startswith("ok: A person confirmed")
    assert len(fleet.effects) == 1


def test_told_to_stop_a_worker_parks_its_run_after_the_step_and_another_finishes_it(fleet):
    fleet.hold()
    first = fleet.start("walker")
    fleet.submit("walker", "t")
    wait_for(lambda: pids(fleet, "weigh"))
    first.send_signal(signal.SIGTERM)
    time.sleep(1)
    second = fleet.start("walker")
    fleet.let_go()
    assert first.wait(10) == 0
    assert "t: parked" in fleet.said(first)
    assert fleet.until("t", "completed").answer == "done after 9 steps"
    assert collections.Counter(re.sub(r" pid.*", "", one) for one in fleet.effects) == {
        **{f"weigh {crate}": 1 for crate in range(8)},
        "lift 8 t": 1,
    }
    assert set(pids(fleet, "weigh")) == {first.pid, second.pid}
    assert "completed" in fleet.said(second)


def test_told_twice_to_stop_a_worker_leaves_at_once(fleet):
    fleet.hold()
    worker = fleet.start("bank")
    fleet.submit("bank", "t")
    wait_for(lambda: pids(fleet, "try"))
    worker.send_signal(signal.SIGINT)
    wait_for(lambda: "stopping" in fleet.said(worker, "err"))
    assert fleet.stop(worker, signal.SIGINT, 2) == 130
    fleet.let_go()
    fleet.start("bank")
    assert fleet.until("t", "completed").answer == "ok: paid"


def test_a_thread_that_is_put_many_times_runs_once(fleet):
    fleet.submit("hoist", "t")

    async def put(_, queue):
        for _ in range(5):
            await queue.put("t", "hoist")

    fleet.do(put)
    fleet.start()
    fleet.until("t", "completed")
    fleet.do(put)
    wait_for(lambda: fleet.sql("SELECT count(*) FROM procrastinate_jobs") == [(0,)])
    assert fleet.effects == ["lift 7 t"]
    assert fleet.kinds("t").count("run.resumed") == 1
    second = cli(
        "run", "Go.", "--detach", "--agent", "tests.fleet.yard:hoist", "--thread", "u", "--store", fleet.url, "--json"
    )
    assert json.loads(second.stdout)["thread"] == "u"
    fleet.until("u", "completed")


def test_a_run_that_was_cancelled_in_the_queue_is_not_started(fleet):
    """F-06: a late job does not bring it back."""
    fleet.submit("hoist", "t")
    fleet.do(lambda store, _: store.cancel("t", by="ada"))
    fleet.start()
    wait_for(lambda: fleet.sql("SELECT count(*) FROM procrastinate_jobs") == [(0,)])
    assert fleet.run("t").status == "cancelled"
    assert fleet.effects == []


def test_a_run_at_work_is_cancelled_from_elsewhere(fleet):
    """F-06."""
    fleet.hold()
    worker = fleet.start()
    fleet.submit("walker", "t")
    wait_for(lambda: pids(fleet, "weigh"))
    began = time.monotonic()
    assert fleet.do(lambda store, _: store.cancel("t", by="ada")).status == "cancelled"
    assert time.monotonic() - began < 5
    fleet.let_go()
    time.sleep(4)
    assert fleet.run("t").status == "cancelled"
    fleet.submit("hoist", "u")
    fleet.until("u", "completed")
    assert worker.poll() is None


def test_threads_of_an_unknown_agent_are_left_to_a_worker_that_knows_it(fleet):
    ignorant = fleet.start("scale")
    fleet.submit("hoist", "t")
    time.sleep(4)
    assert fleet.sql("SELECT status::text, attempts FROM procrastinate_jobs") == [("todo", 0)]
    assert fleet.said(ignorant) == ""
    shown = json.loads(cli("workers", "--store", fleet.url, "--json").stdout)
    assert shown["queued"] == {"hoist": 1}
    assert [one["alive"] for one in shown["workers"]] == [True]
    fleet.start("hoist")
    fleet.until("t", "completed")
    assert fleet.said(ignorant, "err").count("\n") == 1


def test_a_lost_job_is_found_again(fleet):
    fleet.submit("hoist", "t")
    fleet.sql("DELETE FROM procrastinate_jobs")
    fleet.start()
    fleet.until("t", "completed")
    assert fleet.effects == ["lift 7 t"]


def test_a_fork_is_not_worked_on_until_somebody_starts_a_run_in_it(fleet):
    fleet.hold()
    fleet.start()
    fleet.submit("walker", "t")
    wait_for(lambda: pids(fleet, "weigh"))

    async def fork(store, _):
        await (await store.thread("t")).fork("other")

    fleet.do(fork)
    time.sleep(6)
    assert fleet.owner("other") is None
    fleet.let_go()
    fleet.until("t", "completed")
    assert not [line for line in fleet.effects if line.endswith(" other")]


@pytest.mark.parametrize("down", [0.0, 6.0], ids=["restarted", "away for six seconds"])
def test_workers_survive_their_database(fleet, server, down):
    fleet.hold()
    workers = [fleet.start(), fleet.start()]
    fleet.submit("walker", "t", "u")
    wait_for(lambda: len(fleet.do(lambda _, queue: queue.workers())) == 2)
    wait_for(lambda: len(pids(fleet, "weigh")) == 2)
    if down:
        server.stop()
        fleet.let_go()
        time.sleep(down)
        server.start()
    else:
        server.restart()
        fleet.let_go()
    for thread in ("t", "u"):
        assert fleet.until(thread, "completed", seconds=60).answer == "done after 9 steps"
        assert fleet.effects.count(f"lift 8 {thread}") == 1
    assert [worker.poll() for worker in workers] == [None, None], fleet.all_said()
    fleet.submit("hoist", *(f"more{number}" for number in range(8)))
    for number in range(8):
        fleet.until(f"more{number}", "completed")
    wait_for(lambda: len([1 for one in fleet.do(lambda _, queue: queue.workers()) if one.silent < 3]) == 2)
    assert "Traceback" not in fleet.all_said()


def test_a_worker_without_a_database_or_on_a_file_says_so(tmp_path):
    agent = ("--agent", "tests.fleet.yard:scale")
    told = cli("worker", *agent, "--store", str(tmp_path / "trail.db"), code=2)
    assert "workers share a Postgres store" in told.stderr
    told = cli("run", "Go.", "--detach", *agent, "--store", str(tmp_path / "trail.db"), code=2)
    assert "workers share a Postgres store" in told.stderr
    told = cli("worker", *agent, "--store", "postgresql://nobody:secret@127.0.0.1:1/none", code=1)
    assert "is the server running?" in told.stderr
    assert "secret" not in told.output
    assert "--agent" in cli("worker", "--store", "postgresql://nobody@127.0.0.1:1/none", code=2).stderr
