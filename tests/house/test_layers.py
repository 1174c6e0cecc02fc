"""Imports point down only. The tables below are the plan of the house; change them with `docs/architecture.md`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tropa"

# From the ground up. A room sees every floor below its own, and nothing of its own floor.
FLOORS = (
    ("errors",),
    ("messages",),
    ("events",),
    ("tool", "model", "journal"),
    ("gate", "context"),
    ("session",),
    ("store",),
    ("agent", "code", "team", "pipeline"),
    ("demo",),
    ("cli", "serve", "fleet"),
)

# What the floors do not say: the rooms that read the journal stand beside the tower, with a list of their own.
BESIDE = {
    "trail": {"errors", "messages", "events", "model", "journal"},
    "evals": {"errors", "messages", "events", "model", "journal", "trail"},
}

# Who may see those: the upper floors.
SEES_BESIDE = {"store", "agent", "code", "team", "pipeline", "demo", "cli", "serve", "fleet"}

# On one floor: a team is made of agents, an agent may decide in code.
NEIGHBOURS = {"agent": {"code"}, "team": {"agent", "code", "pipeline"}, "cli": {"serve", "fleet", "demo"}}

# The package as users see it: it only passes names on. The doors may use it; a room below them may not.
FRONT = "__init__"
SEES_FRONT = {"cli", "serve", "fleet", "__main__"}


def allowed() -> dict[str, set[str]]:
    """For every room the rooms that it may import."""
    rooms: dict[str, set[str]] = {name: set(below) for name, below in BESIDE.items()}
    below: set[str] = set()
    for floor in FLOORS:
        for room in floor:
            rooms[room] = below | NEIGHBOURS.get(room, set()) | (set(BESIDE) if room in SEES_BESIDE else set())
        below |= set(floor)
    everything = below | set(BESIDE)
    return rooms | {FRONT: everything, "__main__": everything}


def imports(path: Path, package: str, root: Path) -> Iterator[tuple[int, str]]:
    """Every import of the package in a file, as (line, dotted name): also relative, typing-only and by string."""
    place = [package, *path.relative_to(root).parent.parts]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                up = place[: len(place) - node.level + 1] if node.level else []
                base = ".".join([*up, *([node.module] if node.module else [])])
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
            case ast.Call(func=ast.Name(id="import_module") | ast.Attribute(attr="import_module")):
                yield from ((node.lineno, a.value) for a in node.args if isinstance(getattr(a, "value", None), str))


def violations(root: Path, package: str = "tropa") -> list[str]:
    """One line for each import that points upward or sideways, and for each room missing in the plan."""
    plan, found = allowed(), []
    present = {path.stem if path.is_file() else path.name for path in root.iterdir() if is_room(path)}
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        room = inside.parts[0].removesuffix(".py")
        if room not in plan:
            found.append(f"{inside}: the room `{room}` is not in the plan")
            continue
        for line, name in imports(path, package, root):
            parts = name.split(".")
            if parts[0] != package:
                continue
            target = parts[1] if len(parts) > 1 and parts[1] in present | set(plan) else FRONT
            if target != room and target not in plan[room] and not (target == FRONT and room in SEES_FRONT):
                found.append(f"{inside}:{line}: `{room}` imports `{name}`, which is not below it")
    return found


def is_room(path: Path) -> bool:
    """Whether a path in the package is one of its rooms."""
    return path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))


def test_imports_point_down() -> None:
    assert violations(SOURCE) == []


def test_the_plan_is_free_of_cycles() -> None:
    plan = {room: set(below) for room, below in allowed().items()}
    while plan:
        ground = [room for room, below in plan.items() if not below & set(plan)]
        assert ground, f"these rooms may import each other in a circle: {sorted(plan)}"
        for room in ground:
            del plan[room]


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("tool/run.py", "from tropa.session import Session"),
        ("tool/run.py", "from tropa import session"),
        ("tool/run.py", "import tropa.agent.loop as loop"),
        ("tool/run.py", "from tropa.model import Request"),
        ("tool/run.py", "from ..journal import Journal"),
        ("tool/run.py", "from tropa import Agent"),
        ("tool/run.py", "def late():\n    from tropa.cli import main"),
        ("tool/run.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tropa.agent import Agent"),
        ("tool/run.py", "import importlib\nimportlib.import_module('tropa.team')"),
        ("context/window.py", "from tropa.gate import Policy"),
        ("session/step.py", "from tropa.store import Store"),
        ("trail/view.py", "from tropa.tool import Tool"),
        ("errors.py", "from tropa.messages import Text"),
        ("attic/box.py", "x = 1"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path: Path, place: str, line: str) -> None:
    plant(tmp_path, {place: line})
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("tool/run.py", "from tropa.tool.schema import schema\nfrom .schema import schema\nimport json"),
        ("tool/run.py", "from tropa import errors"),
        ("session/step.py", "from tropa.gate import Policy\nfrom tropa.journal import Journal"),
        ("store/open.py", "from tropa.trail import Trail"),
        ("team/team.py", "from tropa.agent import Agent"),
        ("cli/demo.py", "from tropa import Agent\nfrom tropa.store import Store"),
        ("__init__.py", "from tropa.cli import main"),
    ],
)
def test_an_import_that_points_down_passes(tmp_path: Path, place: str, line: str) -> None:
    plant(tmp_path, {place: line})
    assert violations(tmp_path) == []


def plant(root: Path, files: dict[str, str]) -> None:
    """Write a made-up package."""
    for place, text in files.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
