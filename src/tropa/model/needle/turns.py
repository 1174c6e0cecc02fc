"""From a request to what the Needle engine reads, and from results to an honest answer. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tropa.messages import (
    Assistant,
    Call,
    Data,
    Json,
    JsonObject,
    Message,
    Notice,
    Observation,
    Text,
    User,
    dumps,
)
from tropa.model.protocol import RawCall, ToolSpec

RESULT_CHARACTERS = 1500
"""What the engine reads of the results of one step; it only needs to see that they are there."""

_MARKER = re.compile(r"<(?=[|/]?[a-z_]+\|?>)")


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of calls and what came of them, in the order of the calls."""

    calls: tuple[Call, ...]
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """A user's message and the steps taken for it so far."""

    text: str
    steps: tuple[Step, ...]

    @property
    def observations(self) -> tuple[Observation, ...]:
        """All results of the turn, in order."""
        return tuple(observation for step in self.steps for observation in step.observations)

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls of the turn, in order."""
        return tuple(call for step in self.steps for call in step.calls)


def read_turns(messages: Sequence[Message]) -> tuple[Turn | None, Turn]:
    """The turn before the newest one, where it made calls, and the newest; an empty turn where nobody spoke."""
    turns = [Turn("", ())]
    for message in messages:
        text, steps = turns[-1].text, turns[-1].steps
        match message:
            case User(parts):
                turns.append(Turn("".join(part.text for part in parts if isinstance(part, Text)), ()))
            case Notice(remark) if not steps:
                # a remark is an addition to what stands before it; after results the engine has no place for it
                turns[-1] = Turn(f"{text}\n{remark}" if text else remark, steps)
            case Assistant() if message.calls:
                turns[-1] = Turn(text, (*steps, Step(message.calls, ())))
            case Observation() if steps:
                last = Step(steps[-1].calls, (*steps[-1].observations, message))
                turns[-1] = Turn(text, (*steps[:-1], last))
            case _:
                pass
    earlier = turns[-2] if len(turns) > 2 and turns[-2].steps else None
    return earlier, turns[-1]


def engine_turns(*turns: Turn | None) -> list[str]:
    """What the engine reads of some turns: each request, then the results of each of its steps as a JSON list."""
    read: list[str] = []
    for turn in turns:
        if turn is None:
            continue
        # text that begins like JSON would be taken for results, and only the runtime gives results
        text = plain(turn.text).strip()
        read.append(f"Request: {text}" if text[:1] in ("[", "{") else text)
        read += [plain(shortened(dumps([_result(one) for one in step.observations]))) for step in turn.steps]
    return read


def engine_tools(tools: Iterable[ToolSpec]) -> str:
    """The tools as the engine wants them, in the order given."""
    listed: list[Json] = [
        {"name": tool.name, "description": plain(tool.description), "parameters": tool.schema} for tool in tools
    ]
    return dumps(listed)


def plain(text: str) -> str:
    """`text` without the control markers of the engine's own format (`<|im_start|>`, `<tool_result>`, …)."""
    return _MARKER.sub("< ", text)


def shortened(text: str, limit: int = RESULT_CHARACTERS) -> str:
    """`text` with its middle left out when it is longer than `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]} … {text[-limit // 3 :]}"


def is_settled(turn: Turn) -> bool:
    """Whether a result ends the turn: a human said no, or nobody knows what happened. No further call may follow."""
    return any(observation.status in ("rejected", "cancelled", "unknown") for observation in turn.observations)


def new_calls(turn: Turn, proposed: Iterable[RawCall]) -> list[RawCall]:
    """The proposed calls that were not made in this turn already, whatever came of them."""
    made = {_identity(call.tool, call.arguments) for call in turn.calls}
    return [call for call in proposed if _identity(call.name, call.arguments) not in made]


def answer_from_results(turn: Turn) -> str:
    """The results of a turn in words, one line each, marked as what they are."""
    made = {call.id: call for call in turn.calls}
    lines = [_line(observation, made.get(observation.call_id)) for observation in turn.observations]
    return "From the tool results:\n" + "\n".join(lines)


def _line(observation: Observation, call: Call | None) -> str:
    given = ", ".join(f"{key}={_words(value)}" for key, value in call.arguments.items()) if call else ""
    name = f"{observation.tool}({given})"
    result = _readable(observation)
    match observation.status:
        case "ok":
            return f"- {name}: {result or 'done'}"
        case "error":
            return f"- {name} failed: {result}"
        case "unknown":
            return f"- {name}: it is not known whether this happened. {result}".rstrip()
        case "rejected" | "cancelled":
            return f"- {name} was {observation.status} and not done. {result}".rstrip()


def _readable(observation: Observation) -> str:
    said: list[str] = []
    for part in observation.parts:
        match part:
            case Text(text):
                said.append(text)
            case Data(value):
                said.append(_words(value))
            case _:
                said.append(f"[{part.media_type}, {len(part.data)} bytes]")
    return " ".join(said)


def _words(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and not any(isinstance(item, (dict, list)) for item in value.values()):
        return ", ".join(f"{key} {_words(item)}" for key, item in value.items())
    return dumps(value)


def _result(observation: Observation) -> Json:
    if observation.ok:
        value = observation.value
        return value if isinstance(value, dict) else {"result": value}
    return {"error": _readable(observation) or observation.status}


def _identity(tool: str, arguments: str | JsonObject | None) -> tuple[str, str]:
    # 40 and 40.0 are one quantity, and " a " and "A" one name, to a model that repeats itself.
    return tool, dumps(_folded(arguments))


def _folded(value: Json) -> Json:
    if isinstance(value, str):
        return value.strip().casefold()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_folded(item) for item in value]
    if isinstance(value, dict):
        return {key: _folded(value[key]) for key in sorted(value)}
    return value
