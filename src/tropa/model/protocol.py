"""What a model is to the rest of the house: a request in, deltas out, a reply at the end. Nothing is kept between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from tropa.messages import JsonObject, Message
from tropa.model.profile import Profile
from tropa.model.usage import Price, Usage

Finish: TypeAlias = Literal["stop", "calls", "length", "filter", "cancelled"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it: exposed name, description, JSON Schema of the arguments."""

    name: str
    description: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class Request:
    """All that a model reads in one call.

    `output_schema` asks for an answer that is JSON of that schema. `max_output` is in tokens.
    `options` are the user's own settings (temperature, seed, …); what is not set is not sent.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    output_schema: JsonObject | None = None
    max_output: int | None = None
    options: JsonObject = field(default_factory=dict[str, "object"])  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class RawCall:
    """A call as the model wrote it, before anything is checked.

    `arguments` is the text, or an object where the server had parsed it. `id` is the provider's, kept for the trace only.
    """

    name: str
    arguments: str | JsonObject | None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply on its way, for people who watch."""

    kind: Literal["text", "reasoning", "call"]
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said: only its own words, never the prompt.

    `model` is the name the server gave. `warnings` are remarks worth a record (a parameter the server refused).
    """

    text: str
    calls: tuple[RawCall, ...] = ()
    reasoning: str = ""
    finish: Finish = "stop"
    usage: Usage = Usage()
    model: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Count:
    """Prompt tokens of a request. `exact` says the served model's own tokenizer and template counted them."""

    tokens: int
    exact: bool


class Model(Protocol):
    """A model behind any provider.

    `name` is `provider:model`, `price` is `None` where it is not known. `context` is the window in tokens.
    """

    name: str
    profile: Profile
    price: Price | None

    def ask(self, request: Request) -> AsyncIterator[Delta | Reply]:
        """Stream deltas, then exactly one `Reply`, the last item. Raises `ModelError`."""
        ...

    async def count(self, request: Request) -> Count:
        """Count the prompt that `request` becomes, tools and template included."""
        ...

    async def close(self) -> None:
        """Let go of connections and processes; harmless when called twice."""
        ...
