"""What is wrong with a call's arguments, in one short text that a model can act on."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote

from tropa.errors import InvalidArguments, NotStorable
from tropa.messages import Json, JsonObject, dumps
from tropa.tool.shape import Path

MASK = "•••"
_SHOWN = 5
_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where, and what is allowed there. `given` says whether to quote the value."""

    path: Path
    allowed: str
    given: bool = True


def refusal(faults: Iterable[Fault], arguments: JsonObject, secret: Collection[str]) -> InvalidArguments:
    """The error for these faults: faults at one path are joined, at most five are told, secrets are masked."""
    merged: dict[tuple[Path, bool], list[str]] = {}
    for fault in faults:
        allowed = merged.setdefault((fault.path, fault.given), [])
        if fault.allowed not in allowed:
            allowed.append(fault.allowed)
    sentences = [_sentence(path, given, allowed, arguments, secret) for (path, given), allowed in merged.items()]
    more = f"; and {len(sentences) - _SHOWN} more" if len(sentences) > _SHOWN else ""
    text = "; ".join(sentences[:_SHOWN]) + more
    return InvalidArguments(scrub(text, secrets_of(arguments, secret)))


def _sentence(path: Path, given: bool, allowed: list[str], arguments: JsonObject, secret: Collection[str]) -> str:
    words = " or ".join(allowed) if given else ", ".join(allowed)
    if not path:
        return words
    if not given:
        return f"`{dotted(path)}` {words}"
    shown = MASK if path[0] in secret else shorten(_quoted(at(arguments, path)))
    return (
        f"`{dotted(path)}` is {shown}, {words}"
        if words.startswith("which ")
        else f"`{dotted(path)}` is {shown}, expected {words}"
    )


def _quoted(value: Json) -> str:
    """Python's way, but for the three words that JSON spells otherwise: a model reads JSON."""
    return dumps(value) if value is None or isinstance(value, bool) else repr(value)


def dotted(path: Sequence[str | int]) -> str:
    """A path as a reader writes it: `lines[0].sku`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return shorten(text.removeprefix("."))


def at(value: Json, path: Path) -> Json:
    """The value at `path`; `None` where the path does not lead."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def shorten(text: str, width: int = _WIDTH) -> str:
    """`text` cut to `width` characters, with a visible mark where it was cut."""
    return text if len(text) <= width else text[: width - 1] + "…"


def nearest(name: str, names: Iterable[str], limit: int = 1) -> list[str]:
    """The names most like `name`, best first: by spelling, and by the part after the last dot or slash."""
    options = list(names)
    short = re.split(r"[./:]", name)[-1]
    by_case = [option for option in options if option.lower() in {name.lower(), short.lower()}]
    found = by_case + difflib.get_close_matches(name[:200], options, n=limit, cutoff=0.6)
    return list(dict.fromkeys(found))[:limit]


def unknown(path: Path, names: Sequence[str]) -> Fault:
    """The fault of a member that nobody declared, with the name that was probably meant."""
    near = nearest(str(path[-1]), names)
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    hint = f"did you mean `{near[0]}`?" if near else f"allowed: {listed}" if names else "leave it out"
    return Fault(path, f"is not an argument; {hint}", given=False)


def not_json(error: NotStorable) -> InvalidArguments:
    """The error for arguments that a program gave and JSON cannot carry."""
    return InvalidArguments(f"the arguments are not plain JSON: {str(error).replace('`value.', '`', 1)}")


def missing(path: Path) -> Fault:
    """The fault of a member that must be there and is not."""
    return Fault(path, "is required and missing", given=False)


def secrets_of(arguments: JsonObject, secret: Collection[str]) -> list[str]:
    """Every text and number inside the secret arguments, longest first."""
    found: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for item in cast("dict[object, object]", value).values():
                walk(item)
        elif isinstance(value, (list, tuple)):
            for item in cast("Sequence[object]", value):
                walk(item)
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value):
            found.add(str(value))

    for name in secret:
        walk(arguments.get(name))
    return sorted(found, key=len, reverse=True)


def scrub(text: str, secrets: Iterable[str]) -> str:
    """`text` with every secret masked, also where it was quoted, escaped or percent-encoded. Very short ones as words."""
    for secret in secrets:
        forms = {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]}
        try:
            forms.add(quote(secret, safe=""))
        except UnicodeEncodeError:
            pass
        for form in sorted(forms, key=len, reverse=True):
            if len(form) < 3:
                text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", MASK, text)
            else:
                text = text.replace(form, MASK)
    return text
