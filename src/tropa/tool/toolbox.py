"""The tools of one agent, under the names that a provider accepts."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import TypeAlias, cast

from tropa.errors import ToolDefinitionError
from tropa.messages import JsonObject, dumps
from tropa.tool.decorator import TEMPLATE, tool
from tropa.tool.definition import Tool, masked
from tropa.tool.faults import nearest, shorten

ToolSource: TypeAlias = "Tool | Callable[..., object] | object"

_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A tool as a model sees it: exposed name, description with examples, JSON Schema of the arguments."""

    name: str
    description: str
    schema: JsonObject


class Toolbox:
    """Tools by name. Takes tools, functions, callable objects, and objects whose methods are tools.

    Exposed names match `[a-zA-Z0-9_-]{1,64}`, are distinct, and depend on the real names alone, not on their order.
    Raises `ToolDefinitionError` where two tools have one name, or something is no tool.
    """

    def __init__(self, sources: Sequence[ToolSource] = ()) -> None:
        self._real: dict[str, Tool] = {}
        for found in (one for source in sources for one in tools_of(source)):
            if found.name in self._real:
                raise ToolDefinitionError(
                    f"two tools are named `{found.name}`; give one of them another with `@tool(name=…)`"
                )
            self._real[found.name] = found
        names = expose(list(self._real))
        self._exposed = {names[real]: self._real[real] for real in self._real}
        self._names = names

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._real.values())

    def __len__(self) -> int:
        return len(self._real)

    def specs(self) -> tuple[ToolListing, ...]:
        """The listing that goes to the model: sorted by exposed name, so that the prompt's prefix stays the same."""
        listed = sorted(self._exposed.items())
        return tuple(ToolListing(name, _description(found), found.schema) for name, found in listed)

    def get(self, name: str) -> Tool | None:
        """The tool with this exposed or real name."""
        return self._exposed.get(name) or self._real.get(name)

    def exposed(self, tool: Tool) -> str:
        """The name under which the model knows `tool`. Raises `KeyError` for a tool that is not in the box."""
        return self._names[tool.name]

    def unknown(self, name: str) -> str:
        """What to tell a model that called a tool which does not exist."""
        names = sorted(self._exposed)
        start = f"There is no tool `{shorten(name)}`."
        if not names:
            return f"{start} There are no tools; answer without."
        if near := nearest(name, names, limit=3):
            return f"{start} Did you mean {' or '.join(f'`{one}`' for one in near)}?"
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        return f"{start} The tools are: {', '.join(f'`{one}`' for one in names[:10])}{more}."


def tools_of(source: ToolSource) -> tuple[Tool, ...]:
    """Every tool that `source` gives: one of a tool or function, all of an object whose methods are decorated."""
    if isinstance(source, Tool):
        if source.method:
            raise ToolDefinitionError(f"`{source.name}` is a method of a class; give an instance of it")
        return (cast("Tool", source),)
    if isinstance(source, MethodType):
        function = cast("object", source.__func__)
        if isinstance(function, Tool):
            return (function.bind(source.__self__),)
    if isinstance(source, type):
        raise ToolDefinitionError(f"`{source.__name__}` is a class; give an instance: `{source.__name__}(…)`")
    kind = type(source)
    template = inspect.getattr_static(kind, TEMPLATE, None)
    found = (template.bind(source),) if isinstance(template, Tool) else ()
    found += tuple(_methods(source))
    if found:
        return found
    if callable(source):
        return (tool(source),)
    raise ToolDefinitionError(f"{source!r:.80} is no tool: give a function, or an object with methods under `@tool`")


def _methods(source: object) -> Iterator[Tool]:
    names = dict.fromkeys(name for kind in reversed(type(source).__mro__) for name in vars(kind))
    for name in names:
        member = inspect.getattr_static(type(source), name)
        if isinstance(member, staticmethod):
            member = cast("staticmethod[..., object]", member).__func__
        if name != TEMPLATE and isinstance(member, Tool):
            yield member.__get__(source)


def expose(names: Sequence[str]) -> dict[str, str]:
    """A legal, distinct name for each real one. A legal name stays; a changed one ends in a hash of the real name."""
    exposed = {name: name for name in names if _LEGAL.fullmatch(name)}
    taken = set(exposed)
    for name in sorted(set(names) - taken):
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        clean = re.sub(r"[^a-zA-Z0-9_-]+", "_", name).strip("_-") or "tool"
        for length in (8, 16, 32, 60):
            candidate = f"{clean[: 63 - length]}_{digest[:length]}"
            if candidate not in taken:
                break
        exposed[name] = candidate
        taken.add(candidate)
    return exposed


def _description(found: Tool) -> str:
    examples = "\n".join(f"Example: {dumps(masked(found, example))}" for example in found.examples)
    return f"{found.description}\n\n{examples}".strip() if examples else found.description
