"""A tool: a function with a name, a schema and a word about its effects."""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Concatenate, Generic, Protocol, cast, overload

from typing_extensions import ParamSpec, TypeVar

from tropa.errors import InvalidArguments, ToolDefinitionError
from tropa.messages import Json, JsonObject, Text, dumps
from tropa.tool.arguments import Arguments
from tropa.tool.context import ToolContext
from tropa.tool.execution import execute
from tropa.tool.faults import secrets_of
from tropa.tool.hints import Hints
from tropa.tool.result import Result

if TYPE_CHECKING:
    from tropa.tool.signature import Signature


P = ParamSpec("P", default=...)
R = TypeVar("R", default=object, covariant=True)  # noqa: PLC0105  # the field's usual letter
Instance = TypeVar("Instance")
Rest = ParamSpec("Rest")
Given = TypeVar("Given")


class Check(Protocol):
    """Arguments in, checked arguments out; `schema` is what a model sees."""

    schema: JsonObject
    secret: frozenset[str]

    def check(self, arguments: JsonObject, /) -> Arguments:
        """The checked arguments. Raises `InvalidArguments`."""
        ...


class Tool(Generic[P, R]):
    """What a model can call. Made by `@tool` or `Tool.from_schema`, never changed afterwards.

    `timeout` is in seconds. `digest` is SHA-256 over name, version, description, schema and hints: it changes when what
    a human was told about the tool changes. Calling a tool calls its function, as if it were not decorated.
    """

    validate: Callable[[JsonObject], Arguments]
    """Check the arguments of a call, with coercion by the declared types where plain validation failed.

    Raises `InvalidArguments` with a text that a model can act on; secret values are never in it. It is the check's own
    function, without a method around it, since this is the hottest path of a tool.
    """

    def __init__(
        self,
        name: str,
        description: str,
        function: Callable[P, R],
        check: Check,
        *,
        hints: Hints,
        signature: Signature | None = None,
        timeout: float | None = None,
        undo: Callable[..., object] | Tool | None = None,
        preview: Callable[..., object] | Tool | None = None,
        transactional: bool = False,
        version: str = "1",
        examples: Iterable[JsonObject] = (),
        method: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self.schema = check.schema
        self.hints = hints
        self.timeout = timeout
        self.secret = check.secret
        self.undo = undo
        self.preview = preview
        self.transactional = transactional
        self.version = version
        self.examples: tuple[JsonObject, ...] = tuple(examples)
        self.function = function
        self.method = method
        self.validate = check.check
        self._signature = signature
        self._refuse_nonsense()
        self.digest = self._digest()
        functools.update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return f"<Tool {self.name!r} {'read-only' if self.hints.read_only else 'with side effects'}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself: no validation, no gate, no record."""
        return self.function(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type, /) -> Tool[P, R]: ...

    @overload
    def __get__(
        self: Tool[Concatenate[Instance, Rest], Given], instance: Instance, owner: type | None = None, /
    ) -> Tool[Rest, Given]: ...

    def __get__(self, instance: object, owner: type | None = None, /) -> object:
        """The tool bound to its instance, where it is a method."""
        return self if instance is None or not self.method else self.bind(instance)

    def __set_name__(self, owner: type, name: str) -> None:
        """A decorated `__call__` takes the name of its class."""
        if self.method and self.name == "__call__":
            self.name = snake(owner.__name__)
            self.digest = self._digest()

    def bind(self, instance: object) -> Tool:
        """This tool with its first parameter filled by `instance`; the schema is the same."""
        bound: Tool = copy.copy(self)
        bound.function = self.function.__get__(instance)
        bound.method = False
        return bound

    async def run(self, arguments: Arguments, context: ToolContext) -> Result:
        """Run the function with checked arguments. Whatever it raises is in the result; cancellation goes through.

        Past the timeout the result is an error where the tool is read-only, idempotent or transactional, and `unknown`
        otherwise. A transactional tool's own effect must be rolled back by the caller unless the status is `ok`.
        """
        function = cast("Callable[..., object]", self.function)
        if self._signature is None:
            # The function may change what it gets; the record may not change with it.
            try:
                call = functools.partial(function, copy.deepcopy(arguments.canonical))
            except RecursionError:
                words = "the arguments are nested too deeply to be passed on; the tool was not run"
                return Result("error", (Text(words),), "RecursionError")
        else:
            args, kwargs = self._signature.bind(arguments.native, context)
            call = functools.partial(function, *args, **kwargs)
        return await execute(
            call,
            name=self.name,
            hints=self.hints,
            timeout=self.timeout,
            transactional=self.transactional,
            secrets=secrets_of(arguments.canonical, self.secret),
        )

    @staticmethod
    def from_schema(
        name: str,
        description: str,
        schema: JsonObject,
        function: Callable[[JsonObject], Given],
        *,
        read_only: bool = False,
        destructive: bool = True,
        idempotent: bool = False,
        open_world: bool = True,
        timeout: float | None = None,
        secret: Collection[str] = (),
        undo: Callable[..., object] | Tool | None = None,
        preview: Callable[..., object] | Tool | None = None,
        version: str = "1",
        examples: Iterable[JsonObject] = (),
        strict: bool = False,
    ) -> Tool[[JsonObject], Given]:
        """A tool from a raw JSON Schema, such as an MCP server gives. `function` gets the arguments as one dict.

        Raises `ToolDefinitionError` for a schema that is not valid, or has a reference that leads nowhere.
        """
        # Needs a compiled validator, which Python functions do without.
        from tropa.tool.schema_check import SchemaCheck  # noqa: PLC0415

        return Tool(
            name,
            description,
            function,
            SchemaCheck(name, schema, secret=secret, strict=strict),
            hints=Hints(read_only, destructive, idempotent, open_world),
            timeout=timeout,
            undo=undo,
            preview=preview,
            version=version,
            examples=examples,
        )

    def _digest(self) -> str:
        told: JsonObject = {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "schema": self.schema,
            "hints": cast("JsonObject", asdict(self.hints)),
        }
        return hashlib.sha256(dumps(_sorted(told)).encode()).hexdigest()

    def _refuse_nonsense(self) -> None:
        if not self.name.strip():
            raise ToolDefinitionError(f"a tool needs a name, got {self.name!r}")
        if self.timeout is not None and not (math.isfinite(self.timeout) and self.timeout > 0):
            raise ToolDefinitionError(f"the timeout of tool `{self.name}` must be seconds over 0, got {self.timeout!r}")
        properties = cast("JsonObject", self.schema["properties"])
        for parameter in sorted(self.secret):
            if parameter not in properties:
                raise ToolDefinitionError(f"`secret` of tool `{self.name}` names `{parameter}`, which is no parameter")
        for example in self.examples:
            try:
                self.validate(example)
            except InvalidArguments as error:
                raise ToolDefinitionError(f"an example of tool `{self.name}` is not a valid call: {error}") from None


def masked(tool: Tool, arguments: JsonObject) -> JsonObject:
    """The arguments as they may be shown: secret parameters as `•••`.

    Of a tool with secrets, a name that the schema does not know is masked too: it may be a secret misspelt.
    """
    if not tool.secret:
        return arguments
    known = cast("Mapping[str, Json]", tool.schema["properties"])
    return {name: "•••" if name in tool.secret or (name not in known) else value for name, value in arguments.items()}


def snake(name: str) -> str:
    """A class name as a tool name: `WebSearch` is `web_search`."""
    letters = [
        f"_{c.lower()}" if c.isupper() and i and not name[i - 1].isupper() else c.lower() for i, c in enumerate(name)
    ]
    return "".join(letters).strip("_") or name


def is_generator(function: Callable[..., object]) -> bool:
    """Whether the function gives its results one by one, which a call cannot."""
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in cast("Sequence[Json]", value)] if isinstance(value, list) else value
