"""Arguments checked against a raw JSON Schema, as MCP servers and other systems give one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from tropa.errors import NotStorable, ToolDefinitionError
from tropa.messages import Json, JsonObject, dumps
from tropa.tool.arguments import Arguments
from tropa.tool.faults import Fault, missing, not_json, refusal, unknown
from tropa.tool.shape import coerce, declared_secret, follow, resolve

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

_VALUES = ("enum", "const", "default", "examples")
_OPEN = ("additionalProperties", "unevaluatedProperties", "patternProperties")
_ONE_OF = "one of "
_COMBINED = ("allOf", "anyOf", "oneOf", "if", "$ref", "dependentSchemas")


class SchemaCheck:
    """Validates against a JSON Schema, with the coercion of `design.md` §6 unless `strict`.

    `schema` is what a model sees: the given one with `properties`, closed for unknown names unless it says otherwise.
    Raises `ToolDefinitionError` for a schema that is not valid, or has a reference that leads nowhere.
    """

    def __init__(self, tool: str, schema: JsonObject, *, secret: Collection[str] = (), strict: bool = False) -> None:
        self.strict = strict
        closed = _as_object(tool, schema)
        for reference in _references(closed):
            _check_reference(tool, closed, reference)
        self.secret = frozenset(secret) | declared_secret(closed)
        self._validator = _build(tool, closed)
        self._is_valid: Callable[[object], bool] = self._validator.is_valid
        # Where any value is allowed, the validator lets through what is not JSON, and the record would not take it.
        self.check: Callable[[JsonObject], Arguments] = self._slow if _untyped(closed) else _fast(self)
        self.schema: JsonObject = {key: value for key, value in closed.items() if key != "$schema"}

    def _slow(self, arguments: JsonObject) -> Arguments:
        try:
            dumps(arguments)
        except NotStorable as error:
            raise not_json(error) from None
        if self._is_valid(arguments):
            return Arguments(arguments, cast("dict[str, object]", arguments))
        if not self.strict:
            arguments = cast("JsonObject", coerce(self.schema, self.schema, arguments))
            if self._is_valid(arguments):
                return Arguments(arguments, cast("dict[str, object]", arguments))
        faults = [fault for error in self._validator.iter_errors(arguments) for fault in self._faults(error)]
        # An enumeration says more than the type of its members.
        listed = {fault.path for fault in faults if fault.allowed.startswith(_ONE_OF)}
        told = [fault for fault in faults if fault.path not in listed or fault.allowed.startswith(_ONE_OF)]
        raise refusal(told, arguments, self.secret)

    def _faults(self, error: ValidationError) -> Iterator[Fault]:
        path = tuple(error.instance_path)
        kind = error.kind
        detail = cast("Mapping[str, object]", {n: getattr(kind, n) for n in dir(kind) if not n.startswith("_")})
        match detail["name"]:
            case "required":
                yield missing((*path, str(detail["property"])))
            case "additionalProperties" | "unevaluatedProperties":
                names = self._names(error.schema_path)
                for name in cast("Sequence[str]", detail["unexpected"]):
                    yield unknown((*path, name), names)
            case "type":
                yield Fault(path, " or ".join(_article(name) for name in cast("Sequence[str]", detail["types"])))
            case "enum":
                yield Fault(path, _ONE_OF + _options(cast("Sequence[object]", detail["options"])))
            case "const":
                yield Fault(path, repr(detail["value"]))
            case "anyOf" | "oneOf":
                yield from self._branches(path, cast("Sequence[Sequence[ValidationError]]", detail.get("context", ())))
            case _:
                yield Fault(path, f"which {_rule(error.message)}")

    def _branches(self, path: tuple[str | int, ...], branches: Sequence[Sequence[ValidationError]]) -> Iterator[Fault]:
        """What would have been right in each branch; branches of another type are only named."""
        inner = [[fault for error in branch for fault in self._faults(error)] for branch in branches]
        deep = [faults for faults in inner if faults and all(len(fault.path) > len(path) for fault in faults)]
        if deep:
            yield from min(deep, key=len)
            return
        flat = [fault for faults in inner for fault in faults[:1]]
        yield from flat or [Fault(path, "a value of exactly one of the allowed forms")]

    def _names(self, schema_path: Sequence[str | int]) -> list[str]:
        node: Json = self.schema
        try:
            for step in list(schema_path)[:-1]:
                if isinstance(node, dict) and isinstance(node.get("$ref"), str) and str(step) not in node:
                    node = cast("Json", resolve(self.schema, node))
                if step == "$ref":
                    node = cast("Json", resolve(self.schema, node))
                    continue
                node = cast("JsonObject", node)[cast("str", step)]
        except (LookupError, TypeError):
            return []
        return list(cast("JsonObject", node.get("properties", {}))) if isinstance(node, dict) else []


def _fast(check: SchemaCheck) -> Callable[[JsonObject], Arguments]:
    """The way of a call that is valid as it is: a closure, since each look-up on `self` costs as much as a rule."""
    is_valid, slow = check._is_valid, check._slow  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    make = cast("Callable[[JsonObject, JsonObject], Arguments]", Arguments)

    def validate(arguments: JsonObject) -> Arguments:
        try:
            if is_valid(arguments):
                return make(arguments, arguments)
        except ValueError:
            pass
        return slow(arguments)

    return validate


def _as_object(tool: str, schema: JsonObject) -> JsonObject:
    kind = schema.get("type", "object")
    if kind != "object" and kind != ["object"]:
        raise ToolDefinitionError(f"the arguments of tool `{tool}` must be an object; its schema has the type {kind!r}")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise ToolDefinitionError(f"`properties` of tool `{tool}` must be an object, got {properties!r:.80}")
    closed: JsonObject = {**schema, "type": "object", "properties": properties}
    if not any(keyword in schema for keyword in _OPEN):
        combined = any(keyword in schema for keyword in _COMBINED)
        closed["unevaluatedProperties" if combined else "additionalProperties"] = False
    return closed


def _references(node: Json) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            elif key not in _VALUES or not isinstance(value, (dict, list)):
                yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _untyped(node: Json) -> bool:
    """Whether some value is not bound to a type; wrong only in the safe direction."""
    if not isinstance(node, dict):
        return node is not False
    if not any(key in node for key in ("type", "enum", "const", "$ref", "anyOf", "oneOf")):
        return True
    parts = [*cast("JsonObject", node.get("properties", {})).values()]
    for keyword in ("$defs", "definitions"):
        parts += cast("JsonObject", node.get(keyword, {})).values()
    for keyword in ("anyOf", "oneOf"):
        parts += cast("list[Json]", node.get(keyword, []))
    kinds = node.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "array" in cast("Sequence[str]", kinds):
        parts.append(node.get("items", True))
    if "object" in cast("Sequence[str]", kinds):
        parts.append(node.get("additionalProperties", node.get("unevaluatedProperties", True)))
        parts += cast("JsonObject", node.get("patternProperties", {})).values()
    return any(_untyped(part) for part in parts)


def _check_reference(tool: str, root: JsonObject, reference: str) -> None:
    if reference != "#" and not reference.startswith("#/"):
        return
    try:
        follow(root, reference)
    except LookupError:
        raise ToolDefinitionError(
            f"the schema of tool `{tool}` has the reference `{reference}`, which leads nowhere"
        ) from None


def _build(tool: str, schema: JsonObject) -> Validator:
    # A compiled extension, and not needed where every tool is a Python function.
    import jsonschema_rs  # noqa: PLC0415

    try:
        return jsonschema_rs.validator_for(schema, mask="it", offline=True)
    except (ValueError, RecursionError) as error:
        text = str(error).partition("\n")[0]
        raise ToolDefinitionError(f"the schema of tool `{tool}` is not valid JSON Schema: {text}") from None


def _article(name: str) -> str:
    return "null" if name == "null" else f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _options(options: Sequence[object]) -> str:
    listed = ", ".join(repr(option) for option in options[:20])
    return listed + (f", … ({len(options)} in all)" if len(options) > 20 else "")


def _rule(message: str) -> str:
    """The validator's words, with the value masked as `it`, as the rule that was broken."""
    return message.removeprefix("it ").partition("\n")[0]
