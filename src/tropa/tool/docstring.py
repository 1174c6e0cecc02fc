"""A docstring's description and its words on each parameter: Google, NumPy and Sphinx styles."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|Notes?|See Also|References|Warnings?)(:?)\s*$"
)
_GOOGLE = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^\*{0,2}(\w+)\s*(?::.*)?$")
_SPHINX = re.compile(r"^:(param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_FIELD = re.compile(r"^:\w+[^:]*:")
_PARAMETERS = ("Args", "Arguments", "Parameters", "Params")


def describe(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The text before the first section, and each parameter's description on one line."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    text: list[str] = []
    parameters: dict[str, list[str]] = {}
    section, indent, current = "", -1, None
    for number, line in enumerate(lines):
        stripped, depth = line.strip(), len(line) - len(line.lstrip())
        if sphinx := _SPHINX.match(stripped):
            section, current = "sphinx", parameters.setdefault(sphinx[2], [sphinx[3]])
        elif _FIELD.match(stripped):
            section, current = "other", None
        elif (title := _SECTION.match(line)) and _opens(title[2], lines[number + 1 : number + 2]):
            named = title[1] in _PARAMETERS
            section = ("google" if title[2] else "numpy") if named else "other"
            indent, current = -1, None
        elif not section:
            text.append(line)
        elif section in {"google", "numpy"} and stripped and set(stripped) != {"-"}:
            indent = depth if indent < 0 else indent
            entry = (_GOOGLE if section == "google" else _NUMPY).match(stripped) if depth <= indent else None
            if entry:
                current = parameters.setdefault(entry[1], [entry[2]] if section == "google" else [])
            elif current is not None:
                current.append(stripped)
        elif section == "sphinx" and current is not None and stripped:
            current.append(stripped)
    found = {name: " ".join(part for part in parts if part) for name, parts in parameters.items()}
    return "\n".join(text).strip(), {name: words for name, words in found.items() if words}


def _opens(colon: str, following: list[str]) -> bool:
    """Google headings end in a colon, NumPy's are underlined; a lone word is ordinary text."""
    return bool(colon) or bool(following and re.fullmatch(r"\s*-{3,}\s*", following[0]))
