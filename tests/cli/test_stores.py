"""Which store a command works on, and how it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tropa.cli.stores import demo_folder, shown_url, store_file, store_flags, without_password


@pytest.mark.parametrize(
    ("url", "file"),
    [
        (".tropa/trail.db", ".tropa/trail.db"),
        ("sqlite:///trail.db", "trail.db"),
        ("sqlite:////var/lib/trail.db", "/var/lib/trail.db"),
        (":memory:", None),
        ("postgresql://ann:pw@db.example/tropa", None),
    ],
)
def test_the_file_of_a_store(url: str, file: str | None) -> None:
    assert store_file(url) == (None if file is None else Path(file))


def test_the_demos_files_are_beside_the_store() -> None:
    assert demo_folder("a/b.db") == Path("a/demo")
    assert demo_folder(":memory:") == Path(".tropa/demo")


def test_a_password_in_a_url_is_never_shown() -> None:
    """J-05."""
    url = "postgresql://ann:hunter2@db.example:5432/tropa?sslmode=x&password=hunter2"
    assert shown_url(url) == "postgresql://db.example:5432/tropa"
    assert store_flags(url) == ["--store", "postgresql://db.example:5432/tropa"]
    assert without_password("http://me:p@ss@host/v1") == "http://host/v1"
    assert shown_url("ann@home.db") == "ann@home.db"


def test_the_store_that_a_command_finds_by_itself_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TROPA_STORE", raising=False)
    assert store_flags(".tropa/trail.db") == []
    monkeypatch.setenv("TROPA_STORE", "other.db")
    assert store_flags("other.db") == []
    assert store_flags(".tropa/trail.db") == ["--store", ".tropa/trail.db"]
