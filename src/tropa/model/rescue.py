"""Calls that a model wrote as plain text, read as the calls they are. Pure.

Small local models do this behind servers that do not parse their format. Only text that is calls and nothing else is
read so, and only when every one names a tool that is offered: an answer that talks about calls stays an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import cast

from tropa.messages import JsonObject
from tropa.model.protocol import RawCall

_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_TAG = re.compile(r"(?:^|(?<=</tool_call>))[ \t]*<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL | re.MULTILINE)
_PREFIX = re.compile(r"\A(?:\[TOOL_CALLS\]|<\|python_tag\|>)\s*")
_KEYS = frozenset({"name", "arguments", "parameters", "id", "type"})


def rescue(text: str, tool_names: Collection[str]) -> tuple[list[RawCall], str]:
    """The calls written in `text`, and the text that remains.

    Read as calls: JSON objects one after another or in a list, bare or fenced, when nothing else is in the text;
    and `<tool_call>` elements at the start of a line. When nothing is rescued the text comes back as it was.
    """
    if not tool_names or not text.strip():
        return [], text
    if "<tool_call>" in text and "```" not in text:
        found: list[RawCall] = []
        for match in _TAG.finditer(text):
            calls = _calls(match[1], tool_names)
            if not calls:
                return [], text
            found += calls
        if found:
            return found, _TAG.sub("", text).strip()
    bare = _PREFIX.sub("", text.strip())
    if "```" in bare:
        if _FENCE.sub("", bare).strip():
            return [], text
        bare = "\n".join(_FENCE.findall(bare))
    calls = _calls(bare, tool_names)
    return (calls, "") if calls else ([], text)


def _calls(text: str, tool_names: Collection[str]) -> list[RawCall]:
    decoder = json.JSONDecoder()
    values: list[object] = []
    position = 0
    text = text.strip()
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        values += cast("list[object]", value) if isinstance(value, list) else [value]
        while position < len(text) and text[position] in " \t\r\n,;":
            position += 1
    calls = [_call(value, tool_names) for value in values]
    return [call for call in calls if call] if all(calls) else []


def _call(value: object, tool_names: Collection[str]) -> RawCall | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    if isinstance(inner := fields.get("function"), dict) and fields.keys() <= {"function", "id", "type"}:
        fields = cast("dict[str, object]", inner)
    name = fields.get("name")
    if not isinstance(name, str) or name not in tool_names or not fields.keys() <= _KEYS:
        return None
    arguments = fields.get("arguments", fields.get("parameters"))
    if isinstance(arguments, str) or arguments is None:
        return RawCall(name, arguments)
    if isinstance(arguments, dict):
        return RawCall(name, cast("JsonObject", arguments))
    return RawCall(name, json.dumps(arguments))
