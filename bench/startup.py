"""What it costs to import Tropa and to ask its command line for help, beside the peers that are installed.

Every statement is timed in a fresh interpreter, in turn with a bare one, so that a busy machine slows both alike; a
figure is the median of the differences. Compiled files are in place, as they are after an installation.

import_ms      `import tropa` beyond bare Python, milliseconds (goal: 150)
help_ms        `tropa --help`, the whole process, milliseconds (goal: 300)
core_packages  packages that a plain installation brings, Tropa itself among them (goal: 30)
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tropa
from bench.report import Row, options, progress, show

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
OURS = {
    "tropa": "import tropa",
    "tropa, an agent and a tool": "from tropa import Agent, tool",
}
PEERS = {
    "langgraph": "import langgraph.graph",
    "smolagents": "import smolagents",
}


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__)
    rounds = 15 if chosen.quick else 31
    statements = {name: code for name, code in OURS.items() if exported(code)}
    statements |= {name: code for name, code in PEERS.items() if find_spec(name)}
    progress(f"{rounds} rounds of {', '.join(statements)}")
    bare, costs = import_costs(statements, rounds)
    rows: list[Row] = [{"process": "python -c pass", "ms": bare, "beyond_bare_ms": None, "packages": None}]
    for name, code in statements.items():
        count = len(installed_with(name)) if name in {"tropa", *PEERS} else None
        rows.append({"process": code, "ms": bare + costs[name], "beyond_bare_ms": costs[name], "packages": count})
    help_ms = help_cost(rounds)
    rows.append({"process": "tropa --help", "ms": help_ms, "beyond_bare_ms": None, "packages": None})
    figures = {"import_ms": costs["tropa"], "help_ms": help_ms, "core_packages": len(installed_with("tropa"))}
    show(figures, rows, chosen)


def exported(code: str) -> bool:
    """Whether Tropa has the names that a statement imports."""
    names = code.partition(" import ")[2]
    return all(name.strip() in tropa.__all__ for name in names.split(",") if name)


def import_costs(statements: dict[str, str], rounds: int) -> tuple[float, dict[str, float]]:
    """The median of a bare interpreter, and of each statement beyond the bare one of its round; milliseconds."""
    for code in statements.values():  # the first import writes the compiled files
        milliseconds(sys.executable, "-c", code)
    bare: list[float] = []
    beyond: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(rounds):
        for name, code in statements.items():
            bare.append(milliseconds(sys.executable, "-c", "pass"))
            beyond[name].append(milliseconds(sys.executable, "-c", code) - bare[-1])
    return median(bare), {name: median(values) for name, values in beyond.items()}


def help_cost(rounds: int) -> float | None:
    """The median of `tropa --help` in milliseconds; None where there is no command line that answers."""
    command = (str(Path(sys.executable).with_name("tropa")), "--help")
    try:
        milliseconds(*command)
    except (OSError, subprocess.CalledProcessError):
        return None
    return median(milliseconds(*command) for _ in range(rounds))


def milliseconds(*command: str) -> float:
    """How long a process takes from start to end."""
    start = time.perf_counter()
    subprocess.run(command, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def installed_with(root: str) -> set[str]:
    """The packages that a plain installation of `root` brings on this machine, itself among them."""
    found: set[str] = set()
    waiting = [Requirement(root)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        need = waiting.pop()
        name, extras = canonicalize_name(need.name), frozenset(need.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            continue
        found.add(name)
        for line in needs:
            further = Requirement(line)
            if further.marker is None or any(further.marker.evaluate({"extra": e}) for e in (extras or {""})):
                waiting.append(further)
    return found


if __name__ == "__main__":
    main()
