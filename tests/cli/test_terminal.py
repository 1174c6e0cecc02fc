"""At a terminal: the question at an approval, and Ctrl-C in every place (K-05)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import termios
import time

import pexpect
import pytest

from tests.cli.conftest import ROOT, Bench, finish

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")]

QUESTION = r"\[l\]ater: "
PROMPT = "you> "
CTRL_C = "\x03"


def modes(child: pexpect.spawn) -> tuple[bool, bool]:
    """Whether the terminal echoes, and reads by lines: what a shell expects to find again."""
    flags = termios.tcgetattr(child.child_fd)[3]
    return bool(flags & termios.ECHO), bool(flags & termios.ICANON)


# -- the question


def test_yes_runs_the_call_once_and_shows_it(bench: Bench) -> None:
    child = bench.spawn("run", "drill the lid", agent="driller")
    child.expect(QUESTION)
    shown = " ".join(re.sub(r"\x1b\[[\d;]*m", "", child.before).split())
    for words in (
        "drill waits for approval",
        'part "lid" the user said it',
        "holes 4 invented by the model",
        "does Drill holes into a part.",
        "effect may overwrite or delete; repeating it does it again",
        bench.pending()[0]["id"],
    ):
        assert words in shown
    child.sendline("y")
    child.expect(r'✓ drill\(part="lid", holes=4\) → 4 holes in lid  \d+\.\d s')
    child.expect("Outcome: ok, 4 holes in lid")
    assert finish(child) == 0
    assert bench.effects == ["drill lid 4"]


def test_the_answer_is_shown_once(bench: Bench) -> None:
    child = bench.spawn("run", "sing a song", agent="parrot")
    child.expect(pexpect.EOF)
    assert child.before.count("turn 1: sing a song") == 1


def test_what_was_typed_before_the_question_does_not_answer_it(bench: Bench) -> None:
    child = bench.spawn("run", "drill", agent="driller")
    child.sendline("y")
    child.expect(QUESTION)
    with pytest.raises(pexpect.TIMEOUT):
        child.expect("Outcome", timeout=1.5)
    assert bench.effects == []
    child.sendline("l")
    child.expect("tropa inbox approve")
    assert finish(child) == 3


def test_no_takes_a_reason_and_runs_nothing(bench: Bench) -> None:
    """E-06."""
    child = bench.spawn("run", "drill", agent="driller")
    child.expect(QUESTION)
    child.sendline("maybe")
    child.expect("none of y, n, e, l")
    child.expect(QUESTION)
    child.sendline("n")
    child.expect("why.*: ")
    child.sendline("wrong lid")
    child.expect("Outcome: rejected, The user rejected this call. Reason: wrong lid")
    assert finish(child) == 0
    assert bench.effects == []


def test_an_edit_is_shown_again_before_it_runs(bench: Bench) -> None:
    child = bench.spawn("run", "drill", agent="driller")
    child.expect(QUESTION)
    child.sendline("e")
    child.expect(re.escape('part ["lid"]: '))
    child.sendline("box")
    child.expect(re.escape("holes [4]: "))
    child.sendline("zero")
    child.expect("you changed it")
    child.expect(QUESTION)
    child.sendline("y")
    child.expect("These arguments do not fit")
    child.expect(QUESTION)
    child.sendline("e")
    child.expect(re.escape('part ["box"]: '))
    child.sendline("")
    child.expect(re.escape("holes"))
    child.sendline("6")
    child.expect(QUESTION)
    child.sendline("yes")
    child.expect("Outcome: ok, 6 holes in box")
    assert finish(child) == 0
    assert bench.effects == ["drill box 6"]


def test_later_leaves_it_pending_for_another_process(bench: Bench) -> None:
    child = bench.spawn("run", "drill", agent="driller")
    child.expect(QUESTION)
    child.sendline("l")
    child.expect(r"tropa inbox approve (\w+) --agent tests.cli.workshop:driller")
    id = child.match[1]
    assert finish(child) == 3
    assert bench.run("inbox", "approve", id, agent="driller").exit_code == 0
    assert bench.effects == ["drill lid 4"]


def test_every_proposal_is_asked_and_decided_on_its_own(bench: Bench) -> None:
    """E-02."""
    child = bench.spawn("run", "drill both", agent="pair")
    child.expect(r'"lid"')
    child.expect(QUESTION)
    child.sendline("n")
    child.expect(": ")
    child.sendline("")
    child.expect(r'"box"')
    child.expect(QUESTION)
    child.sendline("y")
    child.expect("rejected The user rejected this call.; ok 2 holes in box")
    assert finish(child) == 0
    assert bench.effects == ["drill box 2"]


def test_a_decision_taken_elsewhere_meanwhile_is_noticed(bench: Bench) -> None:
    """E-05 (3): one winner; the tool ran once."""
    child = bench.spawn("run", "drill", agent="driller")
    child.expect(QUESTION)
    assert bench.run("inbox", "approve", bench.pending()[0]["id"], agent="driller").exit_code == 0
    child.sendline("y")
    child.expect("unknown or was decided")
    finish(child)
    assert bench.effects == ["drill lid 4"]


def test_what_a_stranger_wrote_acts_on_nothing(bench: Bench) -> None:
    """I-08."""
    child = bench.spawn("run", "go", agent="stranger")
    child.expect(QUESTION)
    child.sendline("y")
    child.expect(pexpect.EOF)
    shown = child.before
    assert not {"\x07", "\u202e", "\U000e0041", "\u200b"} & set(shown)
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown
    assert "[red]m[/red]" in shown


# -- K-05: Ctrl-C


def test_at_an_empty_prompt_it_says_how_to_leave(bench: Bench) -> None:
    """K-05 (a)."""
    child = bench.spawn("chat", agent="parrot")
    child.expect(PROMPT)
    child.send(CTRL_C)
    child.expect("Ctrl-D leaves")
    child.expect(PROMPT)
    child.sendline("still here")
    child.expect("turn 1: still here")
    child.expect(PROMPT)
    child.sendeof()
    child.expect("Go on later with: tropa chat --thread")
    assert finish(child) == 0


def test_with_half_a_line_typed_it_clears_the_line(bench: Bench) -> None:
    """K-05 (b)."""
    child = bench.spawn("chat", agent="parrot")
    child.expect(PROMPT)
    child.send("half a li")
    child.expect("half a li")
    child.send(CTRL_C)
    child.expect(PROMPT)
    assert "Ctrl-D" not in child.before
    child.sendline("whole")
    child.expect("turn 1: whole\r")


def test_during_streaming_it_stops_the_turn_keeps_the_text_and_the_next_turn_goes_on(bench: Bench) -> None:
    """K-05 (c)."""
    child = bench.spawn("chat", "--thread", "k", agent="talker")
    child.expect(PROMPT)
    child.sendline("talk")
    child.expect("word3")
    start = time.monotonic()
    child.send(CTRL_C)
    child.expect("Stopped")
    child.expect(PROMPT)
    assert time.monotonic() - start < 2
    time.sleep(2)  # the next Ctrl-C must not count as the second
    child.sendline("again")
    child.expect("after 1 earlier")
    child.expect(PROMPT)
    child.sendeof()
    assert finish(child) == 0
    step = bench.json("trail", "show", "k")["runs"][0]["steps"][0]
    assert step["finish"] == "cancelled"
    assert "word3" in step["text"]


def test_during_parallel_tools_it_closes_every_call(bench: Bench) -> None:
    """K-05 (d)."""
    child = bench.spawn("chat", "--thread", "k", agent="gauge")
    child.expect(PROMPT)
    child.sendline("measure")
    child.expect("measure")
    wait_for(lambda: len(bench.effects) == 2)
    start = time.monotonic()
    child.send(CTRL_C)
    child.expect("Stopped")
    child.expect(PROMPT)
    assert time.monotonic() - start < 2
    child.sendline("and again")
    child.expect("all is well")
    calls = bench.json("trail", "show", "k")["runs"][0]["steps"][0]["calls"]
    assert [one["status"] for one in calls] == ["cancelled"] * 2


@pytest.mark.parametrize("place", ["prompt", "stream"])
def test_twice_within_two_seconds_it_ends_the_program(bench: Bench, place: str) -> None:
    """K-05 (e)."""
    child = bench.spawn("chat", "--thread", "k", agent="talker")
    child.expect(PROMPT)
    if place == "stream":
        child.sendline("talk")
        child.expect("word3")
    child.send(CTRL_C)
    child.expect(PROMPT)
    child.send(CTRL_C)
    assert finish(child) == 130
    again = bench.run("run", "again", "--thread", "k", agent="talker")
    assert again.exit_code == 0, again.output


def test_a_tool_that_does_not_listen_is_left_by_the_second_ctrl_c(bench: Bench) -> None:
    """K-05 (e): the process is gone at once, and the thread goes on."""
    child = bench.spawn("run", "brood", "--thread", "k", agent="rock")
    wait_for(lambda: bench.effects == ["brood"])
    child.send(CTRL_C)
    wait_for(lambda: "not listening" in bench.effects)
    child.send(CTRL_C)
    child.expect(pexpect.EOF, timeout=3)
    assert modes(child) == (True, True)
    assert finish(child) == 130
    again = bench.run("run", "again", "--thread", "k", agent="rock")
    assert (again.exit_code, again.stdout) == (0, "over\n")


@pytest.mark.parametrize("how", ["ctrl-c", "ctrl-d", "sigterm"])
def test_at_the_question_it_leaves_the_approval_pending(bench: Bench, how: str) -> None:
    """K-05 (f)."""
    child = bench.spawn("run", "drill", "--thread", "k", agent="driller")
    child.expect(QUESTION)
    {"ctrl-c": lambda: child.send(CTRL_C), "ctrl-d": child.sendeof, "sigterm": lambda: child.kill(signal.SIGTERM)}[
        how
    ]()
    child.expect("tropa inbox approve")
    child.expect(pexpect.EOF)
    assert modes(child) == (True, True)
    assert finish(child) == 3
    (waiting,) = bench.pending()
    assert bench.run("inbox", "approve", waiting["id"], agent="driller").exit_code == 0
    assert bench.effects == ["drill lid 4"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_work_leaves_a_thread_that_goes_on(bench: Bench, number: signal.Signals) -> None:
    """K-05: SIGTERM likewise."""
    child = bench.spawn("run", "talk", "--thread", "k", agent="talker")
    child.expect("word3")
    child.kill(number)
    child.expect("Interrupted; go on with: tropa resume k --agent tests.cli.workshop:talker")
    assert finish(child) == 130
    assert bench.json("trail", "list")[0]["status"] == "cancelled"
    done = bench.run("run", "again", "--thread", "k", agent="talker")
    assert (done.exit_code, done.stdout) == (0, "after 1 earlier messages\n")


def test_an_interrupted_run_still_prints_its_json(bench: Bench) -> None:
    arguments = ["run", "measure", "--thread", "k", "--json", "--agent", "tests.cli.workshop:gauge"]
    path = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "tropa", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=path) as child:
        wait_for(lambda: len(bench.effects) == 2)
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=20)
    assert child.returncode == 130
    assert json.loads(out)["status"] == "cancelled"


def test_following_prints_events_while_they_happen_and_ends_with_the_run(bench: Bench) -> None:
    run = bench.spawn("run", "talk", "--thread", "k", agent="talker")
    run.expect("word1")
    follower = bench.spawn("trail", "follow", "k")
    follower.expect("model.requested")
    assert run.isalive()
    run.send(CTRL_C)
    follower.expect("run.finished")
    assert finish(follower) == 130
    assert finish(run) == 130


def test_a_signal_during_a_side_effect_says_that_its_outcome_is_unknown(bench: Bench) -> None:
    child = bench.spawn("run", "weld", "--thread", "k", agent="welder")
    child.expect(QUESTION)
    child.sendline("y")
    wait_for(lambda: bench.effects)
    child.kill(signal.SIGTERM)
    assert finish(child) == 130
    (doubt,) = bench.pending()
    assert (doubt["kind"], doubt["tool"]) == ("unknown", "weld")
    assert bench.run("inbox", "approve", doubt["id"]).exit_code == 1
    assert bench.run("inbox", "resolve", doubt["id"], "done", agent="welder").exit_code in {0, 130}
    assert bench.effects == ["weld frame"]


def test_what_waits_is_asked_first_when_a_chat_begins(bench: Bench) -> None:
    bench.run("run", "drill", "--thread", "k", agent="driller")
    child = bench.spawn("chat", "--thread", "k", agent="driller")
    child.expect(QUESTION)
    child.sendline("l")
    child.expect(PROMPT)
    child.sendline("hello")
    child.expect(QUESTION)
    child.sendline("y")
    child.expect("Outcome: ok")
    child.expect("waits for approval")  # the message was sent after all, and this agent always drills
    child.expect(QUESTION)
    child.send(CTRL_C)
    child.expect(PROMPT)
    child.sendeof()
    assert finish(child) == 3
    assert bench.effects == ["drill lid 4"]


def test_modes_are_restored_after_every_end(bench: Bench) -> None:
    child = bench.spawn("chat", agent="parrot")
    child.expect(PROMPT)
    child.send(CTRL_C)
    child.expect(PROMPT)
    child.send(CTRL_C)
    child.expect(pexpect.EOF)
    assert modes(child) == (True, True)


def wait_for(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
