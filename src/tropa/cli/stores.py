"""Opening the store that a command works on."""

from __future__ import annotations

import getpass
import os
import shlex
from pathlib import Path

from tropa.cli.options import DEFAULT_STORE
from tropa.errors import StoreError
from tropa.store import Store, connect


def open_store(url: str, *, create: bool = False) -> Store:
    """The store at `url`. A file that is not there is made with `create` only.

    Raises `StoreError`, and `UsageError` for a URL of a kind that is not known.
    """
    file = store_file(url)
    if not create and file is not None and not file.exists():
        raise StoreError(
            f"there is no store at `{file}`; run in the folder where the thread was started, or name it with --store"
        )
    return connect(url)


def store_file(url: str) -> Path | None:
    """The file that a store lives in, where it is one."""
    scheme, colon, rest = url.partition("://")
    if url == ":memory:" or (colon and scheme != "sqlite"):
        return None
    place = rest.removeprefix("/") if colon else url
    return Path(place).expanduser() if place else None


def demo_folder(url: str) -> Path:
    """Where the demos keep their files: beside the store."""
    file = store_file(url)
    return (file.parent if file is not None else Path(DEFAULT_STORE).parent) / "demo"


def store_flags(url: str) -> list[str]:
    """The arguments that name this store to another command; none for the one it finds by itself."""
    return [] if url == os.environ.get("TROPA_STORE", DEFAULT_STORE) else ["--store", shown_url(url)]


def shown_url(url: str) -> str:
    """The store's URL as it may be shown: a server's without its password."""
    return url if store_file(url) is not None or url == ":memory:" else without_password(url)


def without_password(url: str) -> str:
    """A URL without what stands before the @: it may hold a password."""
    scheme, colon, rest = url.partition("://")
    if not colon:
        return rest or scheme.rpartition("@")[2]
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"


def command(*parts: str) -> str:
    """A command that can be pasted into a shell."""
    return shlex.join(["tropa", *parts])


def whoever(by: str | None) -> str:
    """Who decides: the given name, else the user of this system."""
    if by:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown user"
