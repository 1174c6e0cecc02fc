"""The pieces of a streamed chat completion, put together into a reply. Pure: chunks in, deltas out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from tropa.messages import Json, JsonObject, dumps
from tropa.model.arguments import is_cut
from tropa.model.protocol import Delta, Finish, RawCall

_FINISH: dict[str, Finish] = {
    "tool_calls": "calls",
    "function_call": "calls",
    "tool_use": "calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filter",
}


@dataclass(slots=True)
class _Growing:
    id: str
    name: str = ""
    text: str = ""
    parsed: JsonObject | None = None

    def complete(self) -> bool:
        return self.parsed is not None or (self.text.strip() != "" and not is_cut(self.text))


class Assembly:
    """One reply as it grows. `feed` takes each chunk; the rest is read when the stream has ended.

    Calls are told apart by index, or by id and name where a server sends no index or the same one for all.
    """

    def __init__(self) -> None:
        self.text = ""
        self.reasoning = ""
        self.model = ""
        self.ended: str | None = None
        self.usage: JsonObject | None = None
        self._refused = False
        self._calls: list[_Growing] = []
        self._by_index: dict[int, _Growing] = {}

    @property
    def started(self) -> bool:
        """Whether anything of the reply has come."""
        return bool(self.text or self.reasoning or self._calls)

    @property
    def calls(self) -> tuple[RawCall, ...]:
        """The calls so far, in the order in which they began."""
        return tuple(
            RawCall(call.name, call.text if call.parsed is None else call.parsed, call.id or None)
            for call in self._calls
        )

    @property
    def finish(self) -> Finish:
        """Why the reply ended, in one vocabulary. Calls that are visibly cut were cut, whatever the server says."""
        if self._refused:
            return "filter"
        finish = _FINISH.get(self.ended or "", "stop")
        if finish in ("calls", "stop") and self._calls:
            return "length" if any(call.parsed is None and is_cut(call.text) for call in self._calls) else "calls"
        return "stop" if finish == "calls" else finish

    def feed(self, chunk: JsonObject) -> list[Delta]:
        """Take one chunk of a stream, or a whole completion, and give what is new in it."""
        if isinstance(model := chunk.get("model"), str) and model:
            self.model = model
        if isinstance(usage := chunk.get("usage"), dict):
            self.usage = usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return []
        choice = choices[0]
        if isinstance(ended := choice.get("finish_reason"), str) and ended:
            self.ended = ended
        delta = choice.get("delta")
        if delta is None and chunk.get("object") != "chat.completion.chunk":
            delta = choice.get("message")
        return self._delta(delta) if isinstance(delta, dict) else []

    def _delta(self, delta: JsonObject) -> list[Delta]:
        text, thought = _texts(delta.get("content"))
        for key in ("reasoning_content", "reasoning"):
            if isinstance(value := delta.get(key), str) and value:
                thought += value
                break  # some servers send the same text under both names
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            text += refusal
            self._refused = True
        self.text += text
        self.reasoning += thought
        deltas = [Delta("reasoning", thought)] if thought else []
        deltas += [Delta("text", text)] if text else []
        calls = delta.get("tool_calls")
        items = calls if isinstance(calls, list) else [calls]
        if isinstance(legacy := delta.get("function_call"), dict):
            items = [*items, cast("JsonObject", {"index": 0, "function": legacy})]
        return deltas + [Delta("call", self._call(item)) for item in items if isinstance(item, dict)]

    def _call(self, item: JsonObject) -> str:
        function = item.get("function")
        function = function if isinstance(function, dict) else item  # a flat call, as one or two servers send
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        given = function.get("arguments", function.get("parameters"))
        id = item.get("id")
        id = "" if id is None else str(id)
        call = self._find(item.get("index"), id, name, given)
        begun = not call.name and bool(name)
        call.name = call.name or name
        call.id = call.id or id
        if isinstance(given, dict):
            call.parsed = given
        elif given is not None:
            call.text += given if isinstance(given, str) else dumps(given)
        piece = "" if given is None else given if isinstance(given, str) else dumps(given)
        return f"{name} {piece}" if begun else piece

    def _find(self, index: Json, id: str, name: str, given: Json) -> _Growing:
        known = self._by_index.get(index) if isinstance(index, int) else (self._calls[-1] if self._calls else None)
        if known is not None:
            other = bool(id and known.id and id != known.id) and (bool(name) or not isinstance(index, int))
            again = bool(name and known.name) and (
                (known.complete() and given not in (None, ""))
                or (not isinstance(index, int) and not (id and id == known.id))
            )
            if not other and not again:
                return known
        if known is None and not isinstance(index, int) and not name and id:
            for call in self._calls:
                if call.id == id:
                    return call
        call = _Growing(id)
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call


def _texts(content: Json) -> tuple[str, str]:
    """Text and reasoning of a content field, which is text or a list of typed parts."""
    if isinstance(content, str):
        return content, ""
    text = thought = ""
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict):
            if isinstance(value := part.get("text"), str):
                text += value
            elif part.get("type") == "thinking":
                inner = part.get("thinking")
                thought += inner if isinstance(inner, str) else _texts(cast("Json", inner))[0]
    return text, thought
