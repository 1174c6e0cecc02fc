"""Deciding from another process than the one that asked."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import WORKSHOP, Bench


def test_an_approval_runs_the_call_once_and_finishes_the_run(bench: Bench) -> None:
    """E-03: what waits is found, with the same id and arguments, by a process that did not ask."""
    asked = bench.json("run", "drill", agent="driller", code=3)["pending"][0]
    assert bench.pending() == [asked]
    done = bench.run("inbox", "approve", asked["id"], agent="driller")
    assert (done.exit_code, done.stdout) == (0, "Outcome: ok, 4 holes in lid\n")
    assert bench.effects == ["drill lid 4"]
    assert bench.pending() == []


def test_a_second_decision_changes_nothing(bench: Bench) -> None:
    asked = bench.json("run", "drill", agent="driller", code=3)["pending"][0]
    bench.run("inbox", "approve", asked["id"], agent="driller")
    for command in ("approve", "reject"):
        done = bench.run("inbox", command, asked["id"], agent="driller")
        assert done.exit_code == 1
        assert "unknown or was decided" in done.stderr
    assert bench.effects == ["drill lid 4"]


def test_a_rejection_reaches_the_model_with_its_reason(bench: Bench) -> None:
    """E-06."""
    asked = bench.json("run", "drill", agent="driller", code=3)["pending"][0]
    done = bench.run("inbox", "reject", asked["id"], "--reason", "wrong lid", agent="driller")
    assert done.exit_code == 0
    assert done.stdout == "Outcome: rejected, The user rejected this call. Reason: wrong lid\n"
    assert bench.effects == []


def test_a_model_that_insists_after_a_rejection_is_stopped_without_asking_again(bench: Bench) -> None:
    """E-06: the same call in the same turn is not asked again; the next turn may ask."""
    asked = bench.json("run", "drill", "--thread", "m", agent="mule", code=3)["pending"][0]
    decided = bench.json("inbox", "reject", asked["id"], "--reason", "no", agent="mule", code=4)
    assert decided["run"]["stop"] in {"rejected", "repeat"}
    assert bench.pending() == []
    assert len(bench.json("run", "now really", "--thread", "m", agent="mule", code=3)["pending"]) == 1
    assert bench.effects == []


def test_an_edit_runs_what_it_says_and_keeps_the_original(bench: Bench) -> None:
    asked = bench.json("run", "drill", "--thread", "e", agent="driller", code=3)["pending"][0]
    done = bench.run("inbox", "edit", asked["id"], "--set", "holes=7", "--set", "part=box", agent="driller")
    assert done.exit_code == 0
    assert bench.effects == ["drill box 7"]
    call = bench.json("trail", "show", "e")["runs"][0]["steps"][0]["calls"][0]
    assert call["arguments"] == {"part": "lid", "holes": 4}
    assert call["decision"]["arguments"] == {"part": "box", "holes": 7}


def test_an_edit_that_does_not_fit_is_refused_and_decides_nothing(bench: Bench) -> None:
    asked = bench.json("run", "drill", agent="driller", code=3)["pending"][0]["id"]
    for flags, code in (
        (["--set", "holes=many"], 1),
        (["--arguments", "[1]"], 2),
        (["--arguments", "{}"], 1),
        (["--set", "holes"], 2),
        ([], 2),
    ):
        assert bench.run("inbox", "edit", asked, *flags, agent="driller").exit_code == code
    assert [one["id"] for one in bench.pending()] == [asked]
    assert bench.effects == []


def test_text_stays_text_where_the_tool_takes_text(bench: Bench) -> None:
    asked = bench.json("run", "drill", agent="driller", code=3)["pending"][0]["id"]
    bench.run("inbox", "edit", asked, "--set", "part=113", agent="driller")
    assert bench.effects == ["drill 113 4"]


def test_decisions_out_of_order_each_reach_their_own_call(bench: Bench) -> None:
    """E-02: the second is approved first; nothing runs before the first is decided, and each gets its own decision."""
    first, second = bench.json("run", "drill both", agent="pair", code=3)["pending"]
    assert bench.run("inbox", "approve", second["id"], agent="pair").exit_code == 3
    assert bench.effects == []
    done = bench.run("inbox", "reject", first["id"], agent="pair")
    assert done.exit_code == 0
    assert bench.effects == ["drill box 2"]
    assert done.stdout.startswith("rejected")


def test_a_decision_without_an_agent_is_recorded_and_says_how_to_go_on(bench: Bench) -> None:
    asked = bench.json("run", "drill", "--thread", "t", agent="driller", code=3)["pending"][0]["id"]
    done = bench.run("inbox", "approve", asked)
    assert done.exit_code == 3
    assert "the decision is recorded" in done.stderr
    assert "tropa resume t --agent MODULE:NAME" in done.stderr
    assert bench.json("inbox") == {"pending": [], "decided": ["t"]}
    assert "tropa resume t" in bench.run("inbox").stdout
    assert bench.run("resume", "t", agent="driller").exit_code == 0
    assert bench.effects == ["drill lid 4"]


def test_a_name_in_the_store_is_never_imported(bench: Bench) -> None:
    Path("trap.py").write_text("raise SystemExit('imported')\n")
    Path("bait.py").write_text(
        f"from tropa import Agent\nfrom tropa.model import Scripted\nfrom {WORKSHOP} import drill, one_drill\n"
        "agent = Agent('trap:agent', model=Scripted(one_drill), tools=[drill])\n"
    )
    asked = bench.json("run", "drill", "--agent", "bait:agent", code=3)["pending"][0]["id"]
    assert bench.run("inbox", "approve", asked).exit_code == 3


def test_the_projects_list_names_the_agents_that_go_on(bench: Bench) -> None:
    for file, text in (
        ("pyproject.toml", f'[tool.tropa]\nagents = ["{WORKSHOP}:parrot", "{WORKSHOP}:driller"]\n'),
        ("tropa.toml", f'agents = ["{WORKSHOP}:driller"]\n'),
    ):
        asked = bench.json("run", "drill", agent="driller", code=3)["pending"][0]["id"]
        Path(file).write_text(text)
        assert bench.run("inbox", "approve", asked).exit_code == 0
        Path(file).unlink()
    assert bench.effects == ["drill lid 4"] * 2


def test_a_broken_list_is_named(bench: Bench) -> None:
    asked = bench.json("run", "drill", agent="driller", code=3)["pending"][0]["id"]
    Path("pyproject.toml").write_text("[tool.tropa]\nagents = 3\n")
    done = bench.run("inbox", "approve", asked)
    assert done.exit_code == 2
    assert "`agents` in pyproject.toml" in done.stderr


def test_no_resume_only_records(bench: Bench) -> None:
    asked = bench.json("run", "drill", "--thread", "t", agent="driller", code=3)["pending"][0]["id"]
    decided = bench.json("inbox", "approve", asked, "--no-resume", "--by", "ann", agent="driller", code=3)
    assert decided == {
        "decision": {"id": asked, "decision": "approve", "by": "ann", "thread": "t"},
        "run": None,
        "exit": 3,
    }
    assert bench.effects == []
    assert bench.run("resume", "t", agent="driller").exit_code == 0
    shown = bench.run("trail", "show", "t").stdout
    assert "approved by ann" in shown


def test_the_inbox_shows_what_hides_in_a_proposal(bench: Bench) -> None:
    """I-08: control characters, direction marks and tags are shown escaped to the person who decides."""
    asked = bench.json("run", "go", agent="stranger", code=3)["pending"][0]["id"]
    for done in (bench.run("inbox"), bench.run("inbox", "show", asked), bench.run("inbox", "show", asked, "--json")):
        assert done.exit_code == 0
        assert not {"\x1b", "\u202e", "\U000e0041", "\u200b", "\x07"} & set(done.stdout)
    shown = bench.run("inbox", "show", asked).stdout
    assert "\\u202e" in shown
    assert "[red]m[/red]" in shown
    assert "invented by the model" in shown
    assert "from the result of page" in shown


def test_a_thread_that_waits_takes_no_new_message_and_exits_with_3(bench: Bench) -> None:
    asked = bench.json("run", "drill", "--thread", "t", agent="driller", code=3)["pending"]
    done = bench.run("run", "and now?", "--thread", "t", agent="driller")
    assert done.exit_code == 3
    assert "tropa inbox" in done.stderr
    assert bench.pending() == asked
