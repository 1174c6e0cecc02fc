"""Benchmarks print a table for people and one JSON line for programs."""

from __future__ import annotations

import json

import pytest

from bench.report import Options, options, show, table


def test_the_last_line_is_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    show({"step_ms": 1.25, "open_ms": None}, [{"store": "größe", "ms": 1.25}], Options(quick=True, json=True))
    last = capsys.readouterr().out.splitlines()[-1]
    expected = {"figures": {"step_ms": 1.25, "open_ms": None}, "rows": [{"store": "größe", "ms": 1.25}]}
    assert json.loads(last) == expected


def test_without_the_flag_there_is_only_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    show({"calls": 12345}, [], Options(quick=False, json=False))
    assert capsys.readouterr().out == "figure   value\n------  ------\ncalls   12,345\n"


def test_columns_are_those_of_all_rows_and_gaps_are_dashes() -> None:
    rows = [{"store": "sqlite", "ms": 1.25}, {"store": "memory", "mb": 4096.4, "safe": True}]
    assert table(rows).splitlines() == [
        "store     ms     mb  safe",
        "------  ----  -----  ----",
        "sqlite  1.25      -     -",
        "memory     -  4,096   yes",
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="step_ms.*None"):
        show({"step_ms": value}, [], Options(quick=False, json=True))


def test_the_flags_are_read() -> None:
    assert options("A bench.", ["--quick"]) == Options(quick=True, json=False)
    assert options("A bench.", ["--json"]) == Options(quick=False, json=True)
