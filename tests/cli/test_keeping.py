"""Moving and removing threads from the command line."""

import json
from pathlib import Path

from tests.cli.conftest import Bench


def test_a_thread_moves_to_another_store_and_is_intact_there(drilled: Bench) -> None:
    assert drilled.json("trail", "export", "t", "t.jsonl")["thread"] == "t"
    assert drilled.json("trail", "import", "t.jsonl", "--store", "other.db") == {"thread": "t"}
    here, there = (drilled.json("trail", "show", "t", "--store", url) for url in (".tropa/trail.db", "other.db"))
    assert here == there
    assert drilled.json("trail", "verify", "--store", "other.db")["intact"] is True
    assert drilled.run("trail", "import", "t.jsonl", "--store", "other.db").exit_code == 1
    assert drilled.json("trail", "import", "t.jsonl", "--thread", "copy", "--store", "other.db") == {"thread": "copy"}


def test_without_a_file_the_lines_go_to_standard_output(drilled: Bench) -> None:
    done = drilled.run("trail", "export", "t")
    assert done.exit_code == 0
    assert all(json.loads(line) for line in done.stdout.splitlines())


def test_a_changed_line_is_refused_and_nothing_is_stored(drilled: Bench) -> None:
    drilled.run("trail", "export", "t", "t.jsonl")
    file = Path("t.jsonl")
    file.write_text(file.read_text().replace("not the lid", "not the lit"))
    done = drilled.run("trail", "import", "t.jsonl", "--store", "other.db")
    assert done.exit_code == 1
    assert drilled.json("trail", "list", "--store", "other.db") == []


def test_deleting_needs_a_yes_and_leaves_nothing(drilled: Bench) -> None:
    assert drilled.run("trail", "delete", "t").exit_code == 2
    assert drilled.json("trail", "delete", "t", "--yes") == {"thread": "t", "deleted": True}
    assert drilled.json("trail", "list") == []
    assert drilled.json("trail", "vacuum") == {"texts": 0}


def test_pruning_keeps_the_newest_run(drilled: Bench) -> None:
    before = drilled.json("trail", "show", "t")
    assert drilled.json("trail", "prune", "t", "--keep", "1")["removed"] >= 0
    assert drilled.json("trail", "show", "t")["runs"][-1] == before["runs"][-1]
    assert drilled.json("trail", "verify")["intact"] is True
