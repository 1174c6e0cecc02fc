"""The system instruction: a template with the state's fields filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tropa.errors import UsageError
from tropa.messages import Json, dumps

_FIELD = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")


def names(template: str) -> list[str]:
    """The fields that a template reads."""
    return [match[1] for match in _FIELD.finditer(template) if match[1]]


def render(template: str, fields: Mapping[str, Json]) -> str:
    """Fill `{field}` places; `{{` and `}}` stand for braces. Filled-in text is never read as a template again.

    Raises `UsageError` naming a field that has no value.
    """

    def fill(match: re.Match[str]) -> str:
        if match[0] in {"{{", "}}"}:
            return match[0][0]
        if match[1] not in fields:
            known = ", ".join(f"`{name}`" for name in fields) or "none"
            raise UsageError(f"the instructions read the field `{match[1]}`, which has no value; fields: {known}")
        value = fields[match[1]]
        return value if isinstance(value, str) else dumps(value)

    return _FIELD.sub(fill, template)
