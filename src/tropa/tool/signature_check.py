"""Arguments checked against a Python signature by pydantic, and the JSON Schema that a model sees for it."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from tropa.errors import NotStorable, ToolDefinitionError
from tropa.messages import Json, JsonObject, dumps
from tropa.tool.arguments import Arguments
from tropa.tool.closed import closed_below, stray
from tropa.tool.faults import Fault, missing, not_json, refusal, unknown
from tropa.tool.shape import Path, coerce, declared_secret
from tropa.tool.signature import Parameter, Signature

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaWarningKind
    from pydantic_core import ErrorDetails


class _Schema(GenerateJsonSchema):
    """No invented titles, and no union branch left out in silence."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        if kind == "skipped-choice":
            raise PydanticInvalidForJsonSchema(detail)


class SignatureCheck:
    """Validates by pydantic's strict JSON rules, then once more after coercion unless `strict`.

    `schema` is what a model sees. Raises `ToolDefinitionError` naming a parameter that cannot be described.
    """

    def __init__(
        self,
        tool: str,
        signature: Signature,
        words: Mapping[str, str],
        *,
        arguments: type[BaseModel] | None = None,
        secret: Collection[str] = (),
        strict: bool = False,
    ) -> None:
        self.strict = strict
        self._whole: str | None = None
        if arguments is None:
            self._model, self._fields = _model(tool, signature, words)
        else:
            self._model, self._fields = _closed(arguments), {name: name for name in arguments.model_fields}
            self._whole = _explicit(tool, signature, arguments)
        self.schema = _schema(tool, self._model, signature.parameters)
        self.secret = frozenset(secret) | declared_secret(self.schema)
        self._closed = closed_below(self.schema)
        self._parse = self._model.__pydantic_validator__.validate_json

    def check(self, arguments: JsonObject) -> Arguments:
        """The checked arguments. Raises `InvalidArguments`."""
        try:
            return self._check(arguments)
        except ValidationError as error:
            first = error
        if self.strict:
            raise refusal(self._faults(first, arguments), arguments, self.secret) from None
        coerced = cast("JsonObject", coerce(self.schema, self.schema, arguments))
        try:
            return self._check(coerced)
        except ValidationError as error:
            raise refusal(self._faults(error, coerced), coerced, self.secret) from None

    def _check(self, arguments: JsonObject) -> Arguments:
        try:
            text = dumps(arguments)
        except NotStorable as error:
            raise not_json(error) from None
        instance = cast("BaseModel", self._parse(text, strict=True))
        undeclared = self._closed is not None and not self._closed(arguments)
        if undeclared and (found := stray(self.schema, self.schema, arguments)):
            raise refusal([unknown(*found)], arguments, self.secret)
        if self._whole is not None:
            return Arguments(arguments, {self._whole: instance})
        values = instance.__dict__
        return Arguments(arguments, {name: values[field] for field, name in self._fields.items()})

    def _faults(self, error: ValidationError, arguments: JsonObject) -> list[Fault]:
        details = error.errors(include_url=False, include_context=True)
        return [fault for detail in details for fault in _fault(detail, arguments, self.schema)]


def _model(tool: str, signature: Signature, words: Mapping[str, str]) -> tuple[type[BaseModel], dict[str, str]]:
    # Fields are numbered and carry the parameter's name as alias, so that no name can clash with a model's own methods.
    fields: dict[str, tuple[object, object]] = {}
    for number, parameter in enumerate(signature.parameters):
        fields[f"p{number}"] = _field(parameter, words.get(parameter.name))
    config = ConfigDict(extra="forbid", title=tool)
    try:
        model = cast("type[BaseModel]", create_model("Arguments", __config__=config, **fields))  # type: ignore[call-overload]
    except Exception as error:
        raise _blame(tool, signature.parameters, error) from error
    return model, {f"p{number}": parameter.name for number, parameter in enumerate(signature.parameters)}


def _field(parameter: Parameter, words: str | None) -> tuple[object, object]:
    annotation = parameter.annotation
    declared = FieldInfo.from_annotation(cast("type", annotation))
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        annotation = Annotated[annotation, default]  # type: ignore[valid-type]
        declared = FieldInfo.from_annotation(cast("type", annotation))
        default = ...
    extra: dict[str, object] = {}
    if declared.alias is None and declared.validation_alias is None:
        extra["alias"] = parameter.name
    if words and declared.description is None:
        extra["description"] = words
    if default is not ...:
        extra["default"] = default
    return annotation, Field(**extra)  # type: ignore[call-overload,arg-type]


def _closed(arguments: type[BaseModel]) -> type[BaseModel]:
    if "extra" in arguments.model_config:
        return arguments
    body = {
        "model_config": ConfigDict(extra="forbid"),
        "__module__": arguments.__module__,
        "__doc__": arguments.__doc__,
    }
    return cast("type[BaseModel]", type(arguments.__name__, (arguments,), body))


def _explicit(tool: str, signature: Signature, arguments: type[BaseModel]) -> str | None:
    """The parameter that takes the whole model, or `None` where each field has its own."""
    for parameter in signature.parameters:
        if parameter.annotation is arguments:
            return parameter.name
    names = {parameter.name for parameter in signature.parameters}
    for name in arguments.model_fields:
        if name not in names:
            raise ToolDefinitionError(
                f"`{arguments.__name__}.{name}` has no parameter in tool `{tool}`; "
                f"add it, or one parameter annotated `{arguments.__name__}`"
            )
    for parameter in signature.parameters:
        if parameter.name not in arguments.model_fields and parameter.default is inspect.Parameter.empty:
            raise ToolDefinitionError(f"parameter `{parameter.name}` of tool `{tool}` is not in `{arguments.__name__}`")
    return None


def _schema(tool: str, model: type[BaseModel], parameters: Sequence[Parameter]) -> JsonObject:
    try:
        raw = cast("JsonObject", model.model_json_schema(schema_generator=_Schema))
    except Exception as error:
        raise _blame(tool, parameters, error) from error
    definitions = cast("dict[str, JsonObject]", raw.get("$defs", {}))
    if isinstance(reference := raw.get("$ref"), str):
        raw = {**definitions[reference.rpartition("/")[2]], "$defs": cast("Json", definitions)}
    schema: JsonObject = {"type": "object", "properties": raw.get("properties", {})}
    for key in ("required", "additionalProperties"):
        if key in raw:
            schema[key] = raw[key]
    schema.setdefault("additionalProperties", False)
    schema.update({key: raw[key] for key in raw if key not in schema and key not in {"title", "description"}})
    if definitions:
        schema["$defs"] = {
            name: _sealed({k: v for k, v in part.items() if k != "title"}) for name, part in definitions.items()
        }
    return schema


def _sealed(part: JsonObject) -> JsonObject:
    """A nested object is closed unless it says otherwise: a name that would be dropped in silence is refused instead."""
    if part.get("type") == "object" and "properties" in part:
        part.setdefault("additionalProperties", False)
    return part


def _blame(tool: str, parameters: Sequence[Parameter], error: Exception) -> ToolDefinitionError:
    """The error that names the first parameter which cannot be described on its own."""
    for parameter in parameters:
        try:
            TypeAdapter(cast("type", parameter.annotation)).json_schema(schema_generator=_Schema)
        except PydanticUserError as fault:
            text = fault.message.partition("\n")[0]
            return ToolDefinitionError(
                f"parameter `{parameter.name}` of tool `{tool}` cannot be described to a model: {text}; "
                "use JSON types, dataclasses, TypedDicts or pydantic models"
            )
        except Exception as fault:
            return ToolDefinitionError(
                f"parameter `{parameter.name}` of tool `{tool}` cannot be described to a model: {fault}"
            )
    return ToolDefinitionError(f"the parameters of tool `{tool}` cannot be described to a model: {error}")


def _fault(detail: ErrorDetails, arguments: JsonObject, schema: JsonObject) -> list[Fault]:
    path = _real(detail["loc"], arguments, detail["type"])
    kind, message = detail["type"], detail["msg"]
    if kind in {"missing", "missing_argument"}:
        return [missing(path)]
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        if len(path) == 1:
            return [unknown(path, list(cast("JsonObject", schema["properties"])))]
        found = stray(schema, schema, arguments)
        return [unknown(path, found[1] if found and found[0][:-1] == path[:-1] else [])]
    if kind == "union_tag_invalid":
        context = detail.get("ctx", {})
        tag = str(context.get("discriminator", "")).strip("'")
        return [Fault((*path, tag), f"one of {context.get('expected_tags', '')}")]
    if kind == "json_invalid":
        if "recursion" in message:
            return [Fault((), "the arguments are nested too deeply")]
        found = _half(arguments)
        return [Fault(found, "Unicode text; it holds half a surrogate pair")] if found else [Fault((), message)]
    if kind in {"value_error", "assertion_error"}:
        return [Fault(path, message.partition(", ")[2] or message, given=False)] if path else [Fault((), message)]
    for start in ("Input should be ", "Input should have ", "Input should "):
        if message.startswith(start):
            return [Fault(path, message.removeprefix("Input should be ").removeprefix("Input should "))]
    return [Fault(path, message[:1].lower() + message[1:])]


def _real(location: Sequence[str | int], arguments: JsonObject, kind: str) -> Path:
    """The path in the arguments: pydantic's location without the names of union members and validators."""
    path: list[str | int] = []
    value: Json = arguments
    for number, step in enumerate(location):
        last = number == len(location) - 1
        if (
            isinstance(value, dict)
            and isinstance(step, str)
            and (step in value or (last and kind.startswith("missing")))
        ):
            value = value.get(step)
            path.append(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = cast("list[Json]", value)[step]
            path.append(step)
    return tuple(path)


def _half(value: Json, path: Path = ()) -> Path | None:
    """Where text that is not valid Unicode stands."""
    if isinstance(value, str):
        return path if any("\ud800" <= character <= "\udfff" for character in value) else None
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        if isinstance(step, str) and _half(step):
            return (*path, step)
        if (found := _half(item, (*path, step))) is not None:
            return found
    return None
