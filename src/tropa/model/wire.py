"""Messages in the form of chat completions. Pure: every habit of a provider is read from its profile.

Roles, pairs and ids are right whatever the history holds: each call is followed by exactly one result, results without
a call are left out, and only the runtime speaks with the runtime's mark. Stored history is never changed by this.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tropa.messages import (
    Assistant,
    Call,
    Data,
    Json,
    JsonObject,
    Media,
    Message,
    Notice,
    Observation,
    Status,
    Text,
    User,
    dumps,
)
from tropa.model.marks import notice, quoted, sendable, sendable_json
from tropa.model.profile import Profile
from tropa.model.protocol import Request

_STATUS: dict[Status, str] = {
    "error": "The call failed.",
    "rejected": "The call was rejected and not made.",
    "cancelled": "The call was cancelled; it has no result.",
    "unknown": "It is not known whether the call took effect. Do not repeat it before that is known.",
}
_INTERRUPTED = "The call was interrupted; it has no result."
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(slots=True)
class _Turn:
    role: Literal["user", "assistant", "tool"]
    parts: list[str | Media] = field(default_factory=list["str | Media"])
    calls: list[tuple[str, Call]] = field(default_factory=list["tuple[str, Call]"])
    reasoning: str = ""
    call_id: str = ""
    notices: list[str] = field(default_factory=list[str])


def messages_payload(request: Request, profile: Profile) -> list[JsonObject]:
    """The `messages` of a chat completion: the instruction, then the history, valid for the server of `profile`.

    The same history gives the same bytes, and a longer one begins with them.
    """
    turns = _pictures(_turns(request.messages, profile), profile)
    for turn in turns:
        turn.parts += [notice(text) for text in turn.notices]
    if not turns:
        turns = [_Turn("user", [notice("There is no message yet.")])]
    if profile.merge_roles:
        turns = _alternating(turns)
    payload: list[JsonObject] = []
    if request.system.strip():
        if profile.system_role != "first-user":
            payload.append({"role": profile.system_role, "content": sendable(request.system)})
        elif turns[0].role == "user":
            turns[0].parts.insert(0, request.system)
        else:
            turns.insert(0, _Turn("user", [request.system]))
    names = frozenset(tool.name for tool in request.tools)
    return payload + [_rendered(turn, profile, names) for turn in turns]


def observation_text(observation: Observation) -> str:
    """What a model reads of an observation: how the call ended, when not well, and its result as data."""
    pieces = [notice(_STATUS[observation.status])] if observation.status != "ok" else []
    pieces += [piece for part in observation.parts if (piece := quoted(_part_text(part)))]
    return "\n".join(pieces) or "(no output)"


def _turns(messages: Sequence[Message], profile: Profile) -> list[_Turn]:
    turns: list[_Turn] = []
    waiting: dict[str, deque[_Turn]] = {}
    ids = _Ids(profile)
    for message in messages:
        match message:
            case User(parts):
                texts = [part if isinstance(part, Media) else quoted(part.text) for part in parts]
                turns.append(_Turn("user", [part for part in texts if part != ""] or ["(empty message)"]))
            case Assistant():
                if not message.text.strip() and not message.calls:
                    continue
                calls = [(ids.next(call.id), call) for call in message.calls]
                said: list[str | Media] = [quoted(message.text)] if message.text.strip() else []
                turns.append(_Turn("assistant", said, calls, message.reasoning))
                results = [(call, _Turn("tool", call_id=sent)) for sent, call in calls]
                for call, _ in results:
                    waiting[call.id] = deque()
                for call, turn in results:
                    waiting[call.id].append(turn)
                    turns.append(turn)
            case Observation():
                if slots := waiting.get(message.call_id):
                    pictures = [part for part in message.parts if isinstance(part, Media) and _is_image(part, profile)]
                    slots.popleft().parts += [observation_text(message), *pictures]
            case Notice(text):
                if turns and turns[-1].role != "assistant":
                    turns[-1].notices.append(text)
                else:
                    turns.append(_Turn("user", notices=[text]))
    for turn in turns:
        if turn.role == "tool" and not turn.parts:
            turn.parts = [notice(_INTERRUPTED)]
    return turns


def _pictures(turns: list[_Turn], profile: Profile) -> list[_Turn]:
    """A tool message carries text only, so its pictures follow the results in a message of their own."""
    done: list[_Turn] = []
    held: list[str | Media] = []
    for turn in [*turns, None]:
        if held and (turn is None or turn.role != "tool"):
            done.append(_Turn("user", held))
            held = []
        if turn is None:
            break
        if turn.role == "tool" and (pictures := [part for part in turn.parts if isinstance(part, Media)]):
            held += [notice(f"The pictures that call {turn.call_id} returned are data:"), *pictures]
            turn.parts = [part for part in turn.parts if not isinstance(part, Media)]
        done.append(turn)
    return done


def _alternating(turns: list[_Turn]) -> list[_Turn]:
    """No neighbours of equal role, a user first, and an assistant between a result and the next user message."""
    done: list[_Turn] = []
    for turn in turns:
        last = done[-1] if done else None
        if last is None and turn.role != "user":
            done.append(_Turn("user", [notice("Earlier messages are not shown.")]))
        elif last and last.role == turn.role and turn.role != "tool" and not last.calls:
            last.parts += turn.parts
            last.calls += turn.calls
            last.reasoning = "\n\n".join(text for text in (last.reasoning, turn.reasoning) if text)
            continue
        elif last and last.role == "tool" and turn.role == "user":
            # such templates count user and plain assistant turns only: without this the two users are neighbours
            done.append(_Turn("assistant", ["(no answer)"]))
        done.append(turn)
    return done


def _rendered(turn: _Turn, profile: Profile, names: frozenset[str]) -> JsonObject:
    if turn.role == "user":
        return {"role": "user", "content": _content(turn.parts, profile)}
    text = "\n\n".join(sendable(part) for part in turn.parts if isinstance(part, str))
    if turn.role == "tool":
        return {"role": "tool", "tool_call_id": turn.call_id, "content": text}
    message: JsonObject = {"role": "assistant"}
    if text or profile.empty_content != "omit":
        message["content"] = text or (None if profile.empty_content == "null" else "")
    if profile.echo_reasoning and turn.reasoning:
        message["reasoning_content"] = sendable(turn.reasoning)
    if turn.calls:
        message["tool_calls"] = [_call(sent, call, profile, names) for sent, call in turn.calls]
    return message


def _call(sent: str, call: Call, profile: Profile, names: frozenset[str]) -> JsonObject:
    # a call whose arguments were no object goes back without them: a server parses every past call again
    arguments: JsonObject = {} if call.fault else call.arguments
    name = (
        call.tool
        if call.tool in names or _NAME.fullmatch(call.tool)
        else re.sub(r"[^\w-]", "_", call.tool, flags=re.ASCII)[:64]
    )
    return {
        "id": sent,
        "type": "function",
        "function": {
            "name": name or "unnamed",
            "arguments": dumps(arguments) if profile.arguments_as == "text" else sendable_json(arguments),
        },
    }


def _content(parts: Sequence[str | Media], profile: Profile) -> Json:
    content: list[Json] = []
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Media) and _is_image(part, profile):
            if texts:
                content.append({"type": "text", "text": "\n\n".join(texts)})
                texts = []
            url = f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"
            content.append({"type": "image_url", "image_url": {"url": url}})
        else:
            texts.append(sendable(part if isinstance(part, str) else quoted(_part_text(part))))
    if not content:
        return "\n\n".join(texts)
    return [*content, {"type": "text", "text": "\n\n".join(texts)}] if texts else content


def _part_text(part: Text | Data | Media) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Data):
        return dumps(part.value)
    label = part.media_type if part.name is None else f"{dumps(part.name)}, {part.media_type}"
    if part.media_type.startswith("text/"):
        return f"(file {label})\n{part.data.decode(errors='replace')}"
    return f"({'picture' if part.media_type.startswith('image/') else 'file'} {label}, {len(part.data)} bytes)"


def _is_image(part: Media, profile: Profile) -> bool:
    return profile.images and part.media_type.startswith("image/")


class _Ids:
    """Call ids in the form a provider wants, unique in one request and the same in the next."""

    def __init__(self, profile: Profile) -> None:
        self._alnum9 = profile.call_ids == "alnum9"
        self._used: set[str] = set()

    def next(self, id: str) -> str:
        salt = 0
        while (sent := self._form(id, salt)) in self._used:
            salt += 1
        self._used.add(sent)
        return sent

    def _form(self, id: str, salt: int) -> str:
        if self._alnum9:
            return hashlib.sha256(f"{id}\n{salt}".encode(errors="replace")).hexdigest()[:9]
        plain = sendable(id) or "call"
        return plain if not salt else f"{plain}_{salt}"
