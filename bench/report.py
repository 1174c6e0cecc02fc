"""What all benchmarks share: reading the two flags, and printing figures for people and for programs.

A benchmark is a module with this shape:

    from bench.report import Figures, Row, options, show

    def main() -> None:
        chosen = options(__doc__)                        # --quick, --json
        rows: list[Row] = [{"store": "sqlite", "ms": 1.2}, {"store": "memory", "ms": 0.3}]
        figures: Figures = {"step_ms": 1.2, "open_ms": None}    # None: could not be measured here
        show(figures, rows, chosen)

    if __name__ == "__main__":
        main()

`show` prints a table of the rows and the figures below it. With `--json` the last line is one JSON object
`{"figures": {...}, "rows": [...]}`. Write progress to standard error (`progress`), so that a long run is not silent.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = str | int | float | bool | None
Row: TypeAlias = Mapping[str, Cell]
Figures: TypeAlias = Mapping[str, int | float | None]


@dataclass(frozen=True, slots=True)
class Options:
    """How a benchmark was started. With `quick` it ends within 60 seconds on two cores."""

    quick: bool
    json: bool


def options(description: str | None, arguments: Sequence[str] | None = None) -> Options:
    """Read `--quick` and `--json` from the command line, or from `arguments`."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=formatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: at most a minute on two cores")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    chosen = parser.parse_args(arguments)
    return Options(quick=chosen.quick, json=chosen.json)


def progress(text: str) -> None:
    """Tell what is being measured, on standard error."""
    print(text, file=sys.stderr, flush=True)


def show(figures: Figures, rows: Sequence[Row], chosen: Options) -> None:
    """Print the rows as a table, the figures below it, and with `--json` both as the last line.

    Raises:
        ValueError: when a number is NaN or infinite; a figure that cannot be measured is None.
    """
    for where, cells in (("figures", figures), *((f"rows[{i}]", row) for i, row in enumerate(rows))):
        for name, value in cells.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{where}[{name!r}] is {value}: give None for what cannot be measured")
    if rows:
        print(table(rows), end="\n\n")
    print(table([{"figure": name, "value": value} for name, value in figures.items()]))
    if chosen.json:
        print(json.dumps({"figures": figures, "rows": rows}, ensure_ascii=False, allow_nan=False))


def table(rows: Sequence[Row]) -> str:
    """The rows under their column names, numbers to the right. Columns keep the order in which they first appear."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([text(row.get(name)) for name in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numeric = [all(not isinstance(row.get(name), str) for row in rows) for name in columns]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def text(value: Cell) -> str:
    """A cell as people read it: four significant digits, thousands apart, a dash for what was not measured."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value
