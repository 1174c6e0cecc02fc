"""What a session runs: an agent's parts as plain data, and the definition that the journal keeps of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from secrets import token_bytes
from typing import cast

from tropa.gate import Budget, Policy, ask_before_effects
from tropa.messages import Json, JsonObject, dumps
from tropa.model import Model, ToolSpec
from tropa.model.replay import tools_digest
from tropa.tool import Tool, Toolbox

Reducer = Callable[[Json, Json], Json]
"""`(value before, what was passed) -> value after`."""


Migration = Callable[[JsonObject], JsonObject]
"""All fields of one version -> those of the next. Pure, and without defaults: a field that nothing set is not there."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the state: its value until it is set, and how a passed value changes it.

    `reducer` is `overwrite` (default), `append` (the passed list's items are added), or a pure function of the value
    before and the value passed.
    """

    default: Json = None
    reducer: str | Reducer = "overwrite"


@dataclass(frozen=True)
class Setup:
    """Everything a session needs besides the thread. `output` is the JSON Schema of a structured answer."""

    name: str
    model: Model
    toolbox: Toolbox
    instructions: str = ""
    fields: Mapping[str, Field] = field(default_factory=dict[str, Field])
    fields_version: int = 1
    migrations: Mapping[int, Migration] = field(default_factory=dict[int, "Migration"])
    budget: Budget = field(default_factory=Budget)
    policy: Policy = ask_before_effects
    output: JsonObject | None = None
    options: JsonObject = field(default_factory=dict[str, Json])
    max_output: int | None = None
    approval_seconds: float | None = None
    secrets: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Arguments of calls with secret parameters, by thread and call: held here, never in the journal."""
    seal: bytes = field(default_factory=lambda: token_bytes(32))
    """Keys the digests of secret values, so that nobody can guess a short one from the journal."""

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them, in a fixed order."""
        return tuple(ToolSpec(spec.name, spec.description, spec.schema) for spec in self.toolbox.specs())

    @cached_property
    def has_secrets(self) -> bool:
        """Whether a call of any tool may carry a secret: its pieces are then shown to nobody."""
        return any(tool.secret for tool in self.toolbox)

    @cached_property
    def tools_digest(self) -> bytes:
        """The digest of `tools`, made once."""
        return tools_digest(self.tools)

    @cached_property
    def definition(self) -> tuple[str, str]:
        """The agent as data, `(sha256, text)`: from it and the journal any prompt can be rebuilt."""
        text = dumps(
            {
                "name": self.name,
                "model": self.model.name,
                "instructions": self.instructions,
                "tools": [{**_spec(spec), **_hints(self.toolbox.get(spec.name))} for spec in self.tools],
                "output": self.output,
                "options": self.options,
                "limit": self.limit,
                "fields": self.defaults(),
            }
        )
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), text

    @property
    def limit(self) -> int:
        """Most tokens of a prompt: the model's window, less the room for its reply."""
        context = self.model.profile.context
        return context - min(self.max_output or self.model.profile.max_output, context // 4)

    def secret(self, thread: str, call: str) -> JsonObject | None:
        """The arguments of a call with its secrets, where this process still has them."""
        return self.secrets.get(f"{thread}\0{call}")

    def keep_secret(self, thread: str, call: str, arguments: JsonObject) -> None:
        """Hold the arguments of a call in memory until its run ends."""
        self.secrets[f"{thread}\0{call}"] = arguments

    def forget_secrets(self, thread: str) -> None:
        """Let go of what was held for a thread."""
        for key in [key for key in self.secrets if key.startswith(f"{thread}\0")]:
            del self.secrets[key]

    def defaults(self) -> JsonObject:
        """The fields before anything set them."""
        return {name: spec.default for name, spec in self.fields.items()}


def _spec(spec: ToolSpec) -> JsonObject:
    return {"name": spec.name, "description": spec.description, "schema": spec.schema}


def _hints(tool: Tool | None) -> JsonObject:
    if tool is None:  # pragma: no cover - the specs come from the same toolbox
        return {}
    hints = tool.hints
    shown = {name: cast("Json", getattr(hints, name)) for name in ("read_only", "destructive", "idempotent")}
    return {"tool": tool.name, "hints": {**shown, "open_world": hints.open_world}, "digest": tool.digest}
