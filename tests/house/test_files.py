"""Habits that a reader can rely on: small files, names that say something, documented names, no trace of a machine."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
from importlib import import_module
from pathlib import Path

import tropa

ROOT = Path(__file__).parents[2]
LONGEST = 400  # lines
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}

# Written with one-letter classes so that these lines do not match themselves.
TRACES = re.compile(
    r"/wo[r]k/|/opt/(?:whee[l]s|pyp[i])|pyp[i]\.org|pythonhoste[d]\.|registry\.npmj[s]|npmj[s]\.(?:com|org)"
    r"|fin[d]-links\s*=|extra-inde[x]-url\s*="
)


def tracked(*patterns: str) -> list[Path]:
    """The files under version control, with those that are about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for line in listed.splitlines() if (path := ROOT / line).is_file()]


def traces(text: str) -> list[str]:
    """The registry hosts and machine paths in a text."""
    return [match.group() for match in TRACES.finditer(text)]


def undocumented(module: object, names: tuple[str, ...]) -> list[str]:
    """The exported classes and functions without a docstring of their own."""
    found: list[str] = []
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            doc = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
            if not doc or doc.startswith(f"{name}("):  # a dataclass without one is given its signature
                found.append(name)
    return found


def test_no_source_file_is_long() -> None:
    lengths = {str(p.relative_to(ROOT)): len(p.read_text("utf-8").splitlines()) for p in tracked("src/**.py")}
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_file_names_say_what_is_inside() -> None:
    assert [p for p in tracked("*.py") if p.stem.strip("_") in NAMELESS or p.parent.name in NAMELESS] == []


def test_every_exported_name_is_documented() -> None:
    rooms = [import_module(f"tropa.{room.name}") for room in pkgutil.iter_modules(tropa.__path__)]
    missing = {m.__name__: undocumented(m, tuple(getattr(m, "__all__", ()))) for m in (tropa, *rooms)}
    assert {name: names for name, names in missing.items() if names} == {}


def test_no_file_names_a_registry_or_a_machine() -> None:
    found: dict[str, list[str]] = {}
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:  # an image or a recording
            continue
        if hits := traces(text):
            found[str(path.relative_to(ROOT))] = hits
    assert found == {}


def test_a_trace_of_a_machine_is_found() -> None:
    assert traces("see /wor" + "k/main") == ["/wor" + "k/"]
    assert traces("files.python" + "hosted.org and pyp" + "i.org") == ["python" + "hosted.", "pyp" + "i.org"]
    assert traces("work/main, PyPI, npm, /optional") == []


def test_a_missing_docstring_is_found() -> None:
    def bare() -> None: ...

    class Told:
        """Told."""

    class Silent(Told): ...

    module = type("module", (), {"bare": staticmethod(bare), "Told": Told, "Silent": Silent})
    assert undocumented(module, ("bare", "Told", "Silent")) == ["bare", "Silent"]
