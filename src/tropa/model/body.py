"""The body of a chat completion request: messages, tools, limits and the form of the answer. Pure."""

from __future__ import annotations

from typing import cast

from tropa.errors import UsageError
from tropa.messages import Json, JsonObject, dumps
from tropa.model.marks import notice, sendable_json
from tropa.model.profile import Profile
from tropa.model.protocol import Request, ToolSpec
from tropa.model.wire import messages_payload

OWN = frozenset({"model", "messages", "tools", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"})
"""Parameters that are the runtime's own; a request's `options` cannot set them."""

_STRICT_KEYS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs"}
    | {"description", "title", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minItems", "maxItems"}
)


def chat_body(request: Request, profile: Profile, name: str, refused: frozenset[str] = frozenset()) -> JsonObject:
    """The JSON body that asks the model `name`; only what was set is in it.

    `refused` are parameters that this server was found to refuse, beyond those of its profile. Of these,
    `max_tokens` is sent as `max_completion_tokens`, `strict` is left out of tools, and the schema of an answer moves
    from `response_format` to the end of the messages.

    Raises `UsageError` when `request.options` sets a parameter that is the runtime's own.
    """
    refused = refused | profile.refused
    if taken := OWN & request.options.keys():
        first = min(taken)
        raise UsageError(
            f"option `{first}` cannot be set: the runtime sets it"
            + (" from `max_output` and the budget" if first.startswith("max_") else "")
        )
    messages = messages_payload(request, profile)
    body: JsonObject = {"model": name, "messages": cast("list[Json]", messages), "stream": True}
    if "stream_options" not in refused:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        strict = profile.strict_schema and "strict" not in refused
        body["tools"] = [_tool(tool, strict=strict) for tool in request.tools]
        if not profile.parallel_calls and "parallel_tool_calls" not in refused:
            body["parallel_tool_calls"] = False
    if request.max_output is not None:
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        if limit not in refused:
            body[limit] = request.max_output
    if request.output_schema is not None:
        if "response_format" in refused:
            _append(messages, f"Answer with JSON of this schema and nothing else: {dumps(request.output_schema)}")
        else:
            body["response_format"] = _response_format(request.output_schema, profile, refused)
    body.update(request.options)
    # messages are sendable already; descriptions, schemas and options may hold what UTF-8 cannot carry
    return {key: value if key == "messages" else sendable_json(value) for key, value in body.items()}


def strict_allows(schema: JsonObject) -> bool:
    """Whether a schema can be sent as strict: every object closed, every property required, known keywords only."""
    if not schema.keys() <= _STRICT_KEYS:
        return False
    properties = schema.get("properties", {})
    if schema.get("type") == "object" or properties:
        if schema.get("additionalProperties") is not False or not isinstance(properties, dict):
            return False
        if set(cast("list[str]", schema.get("required", []))) != properties.keys():
            return False
    elif not schema.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        return False  # a schema that allows anything is not one a grammar can be made of
    nested: list[Json] = []
    for key in ("properties", "$defs"):
        group = schema.get(key, {})
        nested += group.values() if isinstance(group, dict) else [None]
    union = schema.get("anyOf", [])
    nested += union if isinstance(union, list) else [None]
    nested += [schema["items"]] if "items" in schema else []
    return all(isinstance(each, dict) and strict_allows(each) for each in nested)


def _tool(tool: ToolSpec, *, strict: bool) -> JsonObject:
    function: JsonObject = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    if strict and strict_allows(tool.schema):
        function["strict"] = True
    return {"type": "function", "function": function}


def _response_format(schema: JsonObject, profile: Profile, refused: frozenset[str]) -> JsonObject:
    form: JsonObject = {"name": "answer", "schema": schema}
    if profile.strict_schema and "strict" not in refused and strict_allows(schema):
        form["strict"] = True
    return {"type": "json_schema", "json_schema": form}


def _append(messages: list[JsonObject], text: str) -> None:
    last = messages[-1]
    content = last.get("content")
    if last["role"] == "assistant":
        messages.append({"role": "user", "content": notice(text)})
    elif isinstance(content, list):
        content.append({"type": "text", "text": notice(text)})
    else:
        last["content"] = f"{content}\n\n{notice(text)}"
