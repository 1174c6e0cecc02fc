"""A folder with a workshop in it, and the command line on it: in this process, or in a terminal of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pexpect
import pytest
from typer.testing import CliRunner, Result

from tropa.cli.app import app

ROOT = Path(__file__).parents[2]
WORKSHOP = "tests.cli.workshop"


@dataclass
class Bench:
    """One folder. `run` calls a command in this process, `spawn` in a terminal."""

    folder: Path
    spawned: list[pexpect.spawn] = field(default_factory=list)

    def run(self, *arguments: str, agent: str | None = None, input: str | None = None) -> Result:
        given = [*arguments, "--agent", f"{WORKSHOP}:{agent}"] if agent else [*arguments]
        return CliRunner().invoke(app, given, prog_name="tropa", input=input)

    def json(self, *arguments: str, agent: str | None = None, code: int = 0):
        done = self.run(*arguments, "--json", agent=agent)
        assert done.exit_code == code, done.output
        return json.loads(done.stdout)

    def spawn(self, *arguments: str, agent: str | None = None) -> pexpect.spawn:
        given = [*arguments, "--agent", f"{WORKSHOP}:{agent}"] if agent else [*arguments]
        child = pexpect.spawn(
            sys.executable,
            ["-m", "tropa", *given],
            cwd=str(self.folder),
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", "TERM": "xterm"},
            encoding="utf-8",
            timeout=30,
            dimensions=(40, 160),
        )
        self.spawned.append(child)
        return child

    @property
    def effects(self) -> list[str]:
        """The effects of the workshop's tools, in order."""
        path = Path(os.environ["WORKSHOP"])
        return path.read_text("utf-8").splitlines() if path.exists() else []

    def pending(self) -> list[dict]:
        return self.json("inbox", "list")["pending"]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("WORKSHOP", str(tmp_path / "effects"))
    for name in ("TROPA_STORE", "TROPA_MODEL", "TROPA_DEBUG", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    made = Bench(tmp_path)
    yield made
    for child in made.spawned:
        child.close(force=True)


Finish = Callable[[pexpect.spawn], int]


def finish(child: pexpect.spawn) -> int:
    """Wait for the end of a spawned command; its exit code."""
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus is not None, f"killed by signal {child.signalstatus}"
    return child.exitstatus


@pytest.fixture
def drilled(bench: Bench) -> Bench:
    """A thread with a rejected and an approved call, decided by ann."""
    first, second = bench.json("run", "drill both\x1b[2J", "--thread", "t", agent="pair", code=3)["pending"]
    bench.run("inbox", "reject", first["id"], "--reason", "not the lid", "--by", "ann", agent="pair")
    bench.run("inbox", "approve", second["id"], "--by", "ann", agent="pair")
    return bench
