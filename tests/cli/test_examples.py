"""Every example runs on its own and prints what it promises."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import ROOT

EXPECTED = {
    "warehouse.py": ["quantity: the user said it", "answered after 3 steps", "('A-113', 'Hamburg'): 80"],
    "approve_in_code.py": [
        "{'recipient': 'Ann', 'amount': 5}: ok, sent 5 to Ann",
        "{'recipient': 'Bob', 'amount': 500}: ok, sent 50 to Bob",
        "{'recipient': 'Cleo', 'amount': 70}: rejected, The user rejected this call. Reason: she was paid yesterday",
        "{'recipient': 'Mallory', 'amount': 5}: rejected, Refused: the recipient was invented",
    ],
    "structured_output.py": ["Ticket(topic='delivery', urgent=True, order=4711)", "answered after 2 steps"],
}


def test_every_example_is_expected() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_runs(name: str) -> None:
    done = subprocess.run([sys.executable, str(ROOT / "examples" / name)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [line for line in EXPECTED[name] if line not in done.stdout] == [], done.stdout


@pytest.mark.slow
def test_the_warehouse_example_runs_on_the_embedded_model() -> None:
    command = [sys.executable, str(ROOT / "examples/warehouse.py"), "needle"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert "('A-113', 'Hamburg'): 80" in done.stdout
