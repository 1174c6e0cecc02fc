"""A function's signature as tool parameters: names, resolved types, and where the context goes."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Union, cast, get_args, get_origin

from tropa.errors import ToolDefinitionError
from tropa.tool.context import ToolContext
from tropa.tool.typed_dict import readable


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that the model fills. `default` is `inspect.Parameter.empty` where it is required."""

    name: str
    annotation: object
    default: object
    positional: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """What the model fills (`parameters`) and what the runtime does (`injected`, names with whether positional-only)."""

    parameters: tuple[Parameter, ...]
    injected: tuple[str, ...]
    positional: tuple[str, ...]

    def bind(self, native: Mapping[str, object], context: ToolContext) -> tuple[list[object], dict[str, object]]:
        """Positional and keyword arguments for the function."""
        named = {**native, **dict.fromkeys(self.injected, context)}
        return [named.pop(name) for name in self.positional], named


def read(tool: str, function: Callable[..., object], scope: Mapping[str, object], *, skip_first: bool) -> Signature:
    """The signature of `function`, with annotations resolved where they were written.

    `scope` holds the local names around the definition, for types defined inside a function.
    Raises `ToolDefinitionError` naming the parameter that cannot be described.
    """
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(f"`{tool}` has no readable signature ({error}); wrap it in a `def`") from None
    source = inspect.unwrap(cast("functools.partial[object]", function).func if is_partial(function) else function)
    names = _names(source, scope)
    parameters: list[Parameter] = []
    injected: list[str] = []
    positional: list[str] = []
    for parameter in found[1:] if skip_first else found:
        annotation = _annotation(tool, parameter, names)
        on_position = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        if on_position:
            positional.append(parameter.name)
        if is_context(annotation):
            injected.append(parameter.name)
        else:
            parameters.append(Parameter(parameter.name, annotation, parameter.default, on_position))
    return Signature(tuple(parameters), tuple(injected), tuple(positional))


def is_context(annotation: object) -> bool:
    """Whether a parameter so annotated gets the `ToolContext`: also as `Optional`, in a union, or `Annotated`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_context(get_args(annotation)[0])
    if origin is Union or isinstance(annotation, types.UnionType):
        return any(is_context(part) for part in get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, ToolContext)


def is_partial(function: object) -> bool:
    """Whether `function` is another one with some of its arguments filled in."""
    return isinstance(function, functools.partial)


def _names(source: object, scope: Mapping[str, object]) -> dict[str, object]:
    # ToolContext is known even where it was imported for type checkers only.
    names: dict[str, object] = {"ToolContext": ToolContext, **scope}
    source = getattr(source, "__func__", source)
    if isinstance(source, types.FunctionType):
        names = {"ToolContext": ToolContext, **source.__globals__, **scope}
        names.update(inspect.getclosurevars(source).nonlocals)
    return names


def _annotation(tool: str, parameter: inspect.Parameter, names: dict[str, object]) -> object:
    where = f"parameter `{parameter.name}` of tool `{tool}`"
    if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        raise ToolDefinitionError(
            f"{where} is `{stars}{parameter.name}`, which a model cannot be told about; name each argument"
        )
    if parameter.annotation is inspect.Parameter.empty:
        raise ToolDefinitionError(f"{where} has no type; annotate it, with `Any` if any JSON will do")
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        hints = typing.get_type_hints(cast("Callable[..., object]", holder), names, names, include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(
            f"{where}: its type `{parameter.annotation}` cannot be resolved ({error}); "
            "import it at run time, outside `if TYPE_CHECKING`"
        ) from None
    except Exception as error:
        raise ToolDefinitionError(f"{where}: its type `{parameter.annotation}` cannot be read ({error})") from error
    return readable(hints[parameter.name], names)
