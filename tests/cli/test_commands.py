"""Every command: help, JSON, exit codes, and errors that say what to do."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from tests.cli.conftest import ROOT, WORKSHOP, Bench
from tropa.cli.app import app

LATE = {"openai", "pydantic", "rich", "jsonschema_rs", "genai_prices", "jinja2", "asyncio", "sqlite3", "anyio"}


def leaves(command: object = None, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    """Every command by its path."""
    command = get_command(app) if command is None else command
    inside = getattr(command, "commands", None)
    if inside is None:
        return {path: command}
    return {key: one for name, sub in inside.items() for key, one in leaves(sub, (*path, name)).items()}


COMMANDS = leaves()


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_command_has_help_with_a_sentence_for_it_and_for_each_option(path: tuple[str, ...], bench: Bench) -> None:
    done = bench.run(*path, "--help")
    assert done.exit_code == 0
    assert COMMANDS[path].help
    assert [one.name for one in COMMANDS[path].params if not getattr(one, "help", "")] == []


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_command_has_json(path: tuple[str, ...]) -> None:
    assert "--json" in {flag for one in COMMANDS[path].params for flag in one.opts}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_command_is_in_the_guide(path: tuple[str, ...]) -> None:
    page = (ROOT / "docs/guides/command-line.md").read_text("utf-8")
    assert f"tropa {' '.join(path)}" in page


def test_every_option_is_in_the_guide() -> None:
    page = (ROOT / "docs/guides/command-line.md").read_text("utf-8")
    flags = {flag for one in COMMANDS.values() for param in one.params for flag in param.opts if flag.startswith("--")}
    assert sorted(flag for flag in flags if not re.search(rf"{flag}\b", page)) == []


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\nsys.argv = ['tropa', '--help']\nfrom tropa.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "typer" in loaded
    assert loaded & LATE == set()


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "tropa", "--version"], check=True, capture_output=True, text=True)
    assert re.fullmatch(r"tropa \d+\.\d+\.\d+\S*\n", done.stdout)


# -- exit codes


def test_an_answer_is_alone_on_stdout_and_exits_with_0(bench: Bench) -> None:
    done = bench.run("run", "sing", agent="parrot")
    assert (done.exit_code, done.stdout) == (0, "turn 1: sing\n")
    assert "1 step" in done.stderr


def test_a_proposal_exits_with_3_and_says_how_to_approve_it(bench: Bench) -> None:
    done = bench.run("run", "drill the lid", agent="driller")
    (proposal,) = bench.pending()
    assert done.exit_code == 3
    assert f"tropa inbox approve {proposal['id']} --agent {WORKSHOP}:driller" in done.stderr
    assert bench.effects == []


def test_a_limit_exits_with_4(bench: Bench) -> None:
    done = bench.run("run", "drill the lid", "--approve", "never", "--max-steps", "1", agent="mule")
    assert done.exit_code == 4
    assert "max_steps" in done.stderr
    assert bench.effects == []


def test_a_failing_model_exits_with_1_and_its_reason(bench: Bench) -> None:
    Path("sick.py").write_text(
        "from tropa import Agent, ModelError\nfrom tropa.model import Scripted\n"
        "agent = Agent('sick', model=Scripted([ModelError('the server is on fire')]))\n"
    )
    done = bench.run("run", "hello", "--agent", "sick:agent")
    assert done.exit_code == 1
    assert "the server is on fire" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run"], "Missing argument 'TASK'"),
        (["run", "  "], "the task is empty"),
        (["fly"], "No such command 'fly'"),
        (["run", "x", "--model", "gpt"], "model 'gpt' is not known; possible are"),
        (["run", "x", "--agent", "nowhere:agent"], "cannot import 'nowhere'"),
        (["run", "x", "--agent", "nowhere"], "write MODULE:NAME"),
        (["run", "x", "--agent", f"{WORKSHOP}:nobody"], "has no 'nobody'"),
        (["run", "x", "--agent", f"{WORKSHOP}:HOSTILE"], "not an `Agent`"),
        (["run", "x", "--agent", f"{WORKSHOP}:parrot", "--tools", f"{WORKSHOP}:drill"], "leave out --tools"),
        (["run", "x", "--agent", f"{WORKSHOP}:parrot", "--field", "language"], "write NAME=VALUE"),
        (["run", "x", "--agent", f"{WORKSHOP}:parrot", "--field", "language=Dutch"], "has no field `language`"),
        (["run", "x", "--agent", f"{WORKSHOP}:parrot", "--max-cost", "1"], "price of `scripted:test` is not known"),
        (["run", "x", "--agent", f"{WORKSHOP}:parrot", "--store", "mysql://h/x"], "cannot open a store"),
        (["trail", "list", "--status", "lost"], "is none of running, waiting"),
        (["models", "get", "gpt-4"], "cannot be fetched"),
    ],
)
def test_wrong_usage_exits_with_2_and_one_sentence(bench: Bench, arguments: list[str], complaint: str) -> None:
    done = bench.run(*arguments)
    assert done.exit_code == 2, done.output
    assert complaint in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.output


def test_a_missing_store_is_named_and_not_made(bench: Bench) -> None:
    for command in (["trail", "show", "t1"], ["trail", "verify"], ["resume", "t1"], ["inbox", "approve", "x"]):
        done = bench.run(*command)
        assert done.exit_code == 1
        assert "there is no store at `.tropa/trail.db`" in done.stderr
    assert bench.json("inbox") == {"pending": [], "decided": []}
    assert bench.json("trail") == []
    assert not Path(".tropa").exists()


def test_an_unknown_thread_is_said_to_be_unknown(bench: Bench) -> None:
    bench.run("run", "sing", agent="parrot")
    for command in (["trail", "show", "-x"], ["trail", "follow", "t9"], ["trail", "verify", "t9"], ["resume", "t9"]):
        done = bench.run(*(["trail", "show", "--", "-x"] if "-x" in command else command))
        assert done.exit_code == 1
        assert "tropa trail list" in done.stderr


def test_an_error_with_json_is_one_document_too(bench: Bench) -> None:
    bench.run("run", "sing", agent="parrot")
    found = bench.json("trail", "show", "t9", code=1)
    assert found["exit"] == 1
    assert "t9" in found["error"]


def test_an_unexpected_error_shows_its_traceback_only_on_demand(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("broken.py").write_text("def agent():\n    raise RuntimeError('a bug\\x1b[2J')\n")
    done = bench.run("run", "x", "--agent", "broken:agent")
    assert done.exit_code == 1
    assert done.stderr.startswith("tropa: RuntimeError: a bug\\x1b[2J")
    monkeypatch.setenv("TROPA_DEBUG", "1")
    assert isinstance(bench.run("run", "x", "--agent", "broken:agent").exception, RuntimeError)


# -- JSON


def test_json_of_a_run_is_one_document_with_everything(bench: Bench) -> None:
    run = bench.json("run", "drill", agent="driller", code=3)
    assert (run["status"], run["exit"], run["steps"], run["answer"]) == ("waiting", 3, 1, "")
    (proposal,) = run["pending"]
    assert proposal["arguments"] == {"part": "lid", "holes": 4}
    assert proposal["origins"]["holes"] == {"kind": "invented", "source": None}
    assert run["usage"]["cost"] is None


def test_json_survives_anything_that_a_model_says(bench: Bench) -> None:
    run = bench.json("run", "go", "--thread", "\x1b\u202e", agent="stranger", code=3)
    assert run["thread"] == "\x1b\u202e"
    raw = bench.run("inbox", "list", "--json").stdout
    assert raw.isascii()
    assert "\x1b" not in raw


# -- flags


def test_tools_and_instructions_make_an_agent(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from tropa.cli.agents import Choice, chosen

    Path("mine.py").write_text(f"from {WORKSHOP} import drill, page\ntools = [drill, page]\n")
    agent = chosen(Choice(tools=("mine:tools",), model="openai:m@http://localhost:1/v1", instructions="Be brief."))
    assert [one.name for one in agent.setup.toolbox] == ["drill", "page"]
    assert (agent.setup.instructions, agent.setup.model.name) == ("Be brief.", "openai:m")


def test_the_limits_and_fields_of_the_flags_reach_the_run(bench: Bench) -> None:
    Path("polyglot.py").write_text(
        "from tropa import Agent\nfrom tropa.model import Scripted\n"
        "agent = Agent('polyglot', model=Scripted(lambda r: r.system), instructions='{language} {n}',"
        " fields={'language': 'English', 'n': 1})\n"
    )
    flags = ["--field", "language=Spanish", "--field", "n=[2]", "--max-steps", "3", "--max-tokens", "900"]
    run = bench.json("run", "x", "--thread", "f", *flags, "--agent", "polyglot:agent")
    assert run["answer"] == "Spanish [2]"
    started = json.loads(bench.run("trail", "follow", "f", "--json").stdout)[1]
    assert started["body"]["budget"] == {"steps": 3, "tokens": 900}


def test_a_dry_run_executes_nothing(bench: Bench) -> None:
    done = bench.run("run", "drill", "--dry-run", agent="driller")
    assert done.exit_code == 0
    assert "dry run" in done.stdout
    assert bench.effects == []


def test_approve_never_refuses_side_effects_and_asks_nobody(bench: Bench) -> None:
    done = bench.run("run", "drill", "--approve", "never", agent="driller")
    assert done.exit_code == 0
    assert "rejected" in done.stdout
    assert (bench.pending(), bench.effects) == ([], [])


def test_chat_without_a_terminal_takes_each_line_as_a_turn(bench: Bench) -> None:
    done = bench.run("chat", "--thread", "c", agent="parrot", input="one\n\ntwo\n")
    assert (done.exit_code, done.stdout) == (0, "turn 1: one\nturn 2: two\n")
    done = bench.run("chat", "--thread", "c", "--json", agent="parrot", input="three\n")
    assert [one["answer"] for one in json.loads(done.stdout)["turns"]] == ["turn 3: three"]


def test_chat_without_a_terminal_stops_where_a_person_must_decide(bench: Bench) -> None:
    done = bench.run("chat", "--thread", "c", agent="driller", input="drill\nand again\n")
    assert done.exit_code == 3
    assert "was not sent" in done.stderr
    assert len(bench.pending()) == 1


def test_models_and_doctor_say_what_there_is(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRET-9")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:hunter2@host:8080/v1?token=T-9")
    monkeypatch.setattr(
        "tropa.cli.doctoring._needle",
        lambda worker: __import__("tropa.cli.doctoring").cli.doctoring.Check("needle model", "ok", "x"),
    )
    names = [one["model"] for one in bench.json("models")]
    assert names == ["needle", "openai:NAME", "llama:PATH.gguf"]
    for done in (bench.run("doctor"), bench.run("doctor", "--json"), bench.run("models")):
        assert done.exit_code == 0, done.output
        assert not re.search("SECRET|hunter2|T-9", done.output)
    assert "http://host:8080/v1" in bench.run("doctor").stdout


def test_doctor_fails_on_a_store_that_cannot_be_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tropa.cli.doctoring.find_spec", lambda name: None)
    Path("notes.txt").write_text("this is no database, and long enough to be seen as none")
    done = bench.run("doctor", "--store", "notes.txt")
    assert done.exit_code == 1
    assert "notes.txt" in done.stdout


def test_no_module_of_the_door_imports_a_heavy_package_at_its_top_before_it_is_needed() -> None:
    light = ["__init__", "app", "demos", "faults", "groups", "inbox", "models", "options", "plain", "trails"]
    for name in light:
        tree = ast.parse((ROOT / "src/tropa/cli" / f"{name}.py").read_text("utf-8"))
        tops = {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert not {top for top in tops if top.partition(".")[0] in LATE}, name
