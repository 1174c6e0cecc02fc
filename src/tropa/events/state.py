"""State as a fold over events: fields, messages and where the window begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from tropa.events.event import Event, NewEvent
from tropa.messages import Json, JsonObject, Message, Observation, decode

MESSAGE_KINDS = ("message.added", "model.replied", "call.finished")


@dataclass(slots=True)
class State:
    """What a thread holds at one point: its fields by name, and its messages in order.

    Fields read as attributes too: `state.language`.
    """

    fields: JsonObject = field(default_factory=dict[str, Json])
    messages: list[Message] = field(default_factory=list[Message])

    def __getattr__(self, name: str) -> Json:
        """The value of a field. Raises `AttributeError` naming the fields there are."""
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.fields[name]
        except KeyError:
            known = ", ".join(self.fields) or "none"
            raise AttributeError(f"the thread has no field `{name}`; its fields are: {known}") from None


def message_of(event: Event | NewEvent) -> Message | None:
    """The message that an event carries, if it carries one."""
    if event.kind in MESSAGE_KINDS:
        return decode(cast("JsonObject", event.body["message"]))
    return None


def apply_field(fields: JsonObject, body: JsonObject) -> None:
    """Fold one `field.set` into `fields`."""
    name, value = cast("str", body["name"]), body["value"]
    if body["op"] == "append":
        before = fields.get(name)
        fields[name] = [*(cast("list[Json]", before) if isinstance(before, list) else []), *cast("list[Json]", value)]
    elif body["op"] == "unset":
        fields.pop(name, None)
    else:
        fields[name] = value


def fold(events: Iterable[Event], state: State | None = None) -> State:
    """The state after `events`, which continue `state`. Observations stand in the order of their calls."""
    state = State() if state is None else state
    for entry in events:
        if entry.kind == "field.set":
            apply_field(state.fields, entry.body)
        elif (message := message_of(entry)) is not None:
            state.messages.append(message)
    state.messages = in_call_order(state.messages)
    return state


def in_call_order(messages: list[Message]) -> list[Message]:
    """Sort each run of neighbouring observations by the order of the calls they answer.

    Read-only calls of one reply run together and end in any order; the model reads them in its own.
    """
    if not any(type(message) is Observation for message in messages):
        return messages
    ordered: list[Message] = []
    place: dict[str, int] = {}
    block: list[Observation] = []
    for message in messages:
        if isinstance(message, Observation):
            block.append(message)
            continue
        ordered += sorted(block, key=lambda item: place.get(item.call_id, 0))
        block = []
        ordered.append(message)
        calls = getattr(message, "calls", ())
        if calls:
            place = {call.id: index for index, call in enumerate(calls)}
    return ordered + sorted(block, key=lambda item: place.get(item.call_id, 0))
