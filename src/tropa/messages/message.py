"""What is said: messages of three roles, made of parts. Plain data, the same for every provider.

The system instruction is not a message: it is rendered anew at each ask and never stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tropa.messages.json import Json, JsonObject

Status: TypeAlias = Literal["ok", "error", "rejected", "cancelled", "unknown"]


@dataclass(frozen=True, slots=True)
class Text:
    """Text, as the user, the model or a tool wrote it."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought before it spoke or acted; recorded beside the calls of its step."""

    text: str


@dataclass(frozen=True, slots=True)
class Data:
    """A structured tool result: strict JSON."""

    value: Json


@dataclass(frozen=True, slots=True)
class Media:
    """An image or a file: bytes with a media type such as `image/png`."""

    media_type: str
    data: bytes
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a model proposed, or that a program made.

    `id` is Tropa's own and unique in its thread, whatever the provider numbered.
    `arguments` is what the model gave, parsed. Where it was no JSON object, `arguments` is empty and `fault` says why.
    `raw` is the model's own text when it is not simply the JSON of `arguments`.
    """

    id: str
    tool: str
    arguments: JsonObject
    raw: str | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class User:
    """A message of the user."""

    parts: tuple[Text | Media, ...]


@dataclass(frozen=True, slots=True)
class System:
    """The instruction as rendered for one request. It is counted and trimmed like a message, and never stored."""

    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A short remark of the runtime to the model (a repeated call, a plan to revise).

    It is sent as an addition to the message before it, so that it never breaks the order of roles.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Assistant:
    """A message of the model: text, reasoning and calls, in its order. Never a prompt, never a result."""

    parts: tuple[Text | Reasoning | Call, ...]

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        """The reasoning parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls, in the model's order."""
        return tuple(part for part in self.parts if isinstance(part, Call))


@dataclass(frozen=True, slots=True)
class Observation:
    """What the runtime got from a call, or why it was not made. Only a session creates one."""

    call_id: str
    tool: str
    status: Status
    parts: tuple[Text | Data | Media, ...]

    @property
    def ok(self) -> bool:
        """Whether the call was executed and succeeded."""
        return self.status == "ok"

    @property
    def value(self) -> Json:
        """The result as data: the structured value, else the text."""
        for part in self.parts:
            if isinstance(part, Data):
                return part.value
        return "".join(part.text for part in self.parts if isinstance(part, Text))


Message: TypeAlias = User | Notice | Assistant | Observation
Part: TypeAlias = Text | Reasoning | Data | Media | Call


def user(text: str) -> User:
    """A user message of plain text."""
    return User((Text(text),))
