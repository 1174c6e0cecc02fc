"""Where each value of a proposed call comes from: the user, the instructions, an observation, or nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tropa.messages import Assistant, Data, Json, JsonObject, Message, Observation, Text, User, dumps

Kind: TypeAlias = Literal["user", "instructions", "observation", "invented"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of one value. `source` is the call whose observation held it, where it is one."""

    kind: Kind
    source: str | None = None

    def __str__(self) -> str:
        """In words, for the person who approves."""
        words = {
            "user": "the user said it",
            "instructions": "from the instructions",
            "observation": f"from the result of {self.source}",
            "invented": "invented by the model",
        }
        return words[self.kind]


def trace(arguments: JsonObject, messages: Sequence[Message], instructions: str) -> dict[str, Origin]:
    """The origin of each leaf of `arguments`, by path such as `target.street` or `items[0]`.

    A value counts as found where it stands as a whole word or number. The user's own words win over the instructions,
    and these over observations.
    """
    sources: list[tuple[Kind, str | None, str]] = [
        ("user", None, "\n".join(_texts([item for item in messages if isinstance(item, User)]))),
        ("instructions", None, instructions),
        *(("observation", item.tool, "\n".join(_texts([item]))) for item in messages if isinstance(item, Observation)),
    ]
    origins: dict[str, Origin] = {}
    for path, leaf in _leaves(arguments, ""):
        origins[path] = next(
            (Origin(kind, name) for kind, name, text in sources if _in(leaf, text)), Origin("invented")
        )
    return origins


def _leaves(value: Json, path: str) -> Iterator[tuple[str, Json]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    elif value is not None and not isinstance(value, bool):
        yield path, value


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, (User, Observation, Assistant)):
            for part in message.parts:
                if isinstance(part, Text):
                    yield part.text
                elif isinstance(part, Data):
                    yield dumps(part.value)


def _in(leaf: Json, text: str) -> bool:
    if isinstance(leaf, str):
        needle = " ".join(leaf.split()).casefold()
        if not needle:
            return False
        pattern = rf"(?<!\w){re.escape(needle)}(?!\w)"
        return re.search(pattern, " ".join(text.split()).casefold()) is not None
    number = repr(leaf)
    forms = {number, number.removesuffix(".0"), f"{leaf:,}"}
    return any(re.search(rf"(?<![\w.]){re.escape(form)}(?![\w]|\.\d)", text) for form in forms)
