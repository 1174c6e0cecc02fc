"""A proposal: what a person is shown, decides on, and what then runs, to the byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tropa.gate.origins import Origin
from tropa.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something that waits for a person.

    `id` names it everywhere. `kind` is `approval` (the call was not run) or `unknown` (it was started and its outcome
    is not known; `reason` says why). `arguments` are what will run; `digest` binds an approval to them. `origins` says
    for each value where it came from. `asked` is seconds since 1970, and so is `expires`, after which it can no longer be approved.
    """

    id: str
    thread: str
    call_id: str
    tool: str
    arguments: JsonObject
    digest: str
    kind: Literal["approval", "unknown"] = "approval"
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    reason: str | None = None
    asked: float = 0.0
    expires: float | None = None
