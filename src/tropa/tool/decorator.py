"""`@tool`: a function, a method or a class with state becomes a tool."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar, cast, overload

from tropa.errors import ToolDefinitionError
from tropa.messages import JsonObject
from tropa.tool.definition import Tool, is_generator, snake
from tropa.tool.docstring import describe
from tropa.tool.hints import Hints
from tropa.tool.signature import is_partial, read
from tropa.tool.signature_check import SignatureCheck

if TYPE_CHECKING:
    from pydantic import BaseModel

C = TypeVar("C", bound=type)
P = ParamSpec("P")
R = TypeVar("R")
TEMPLATE = "__tropa_tool__"


class Decorator(Protocol):
    """What `@tool(…)` gives: a class stays a class, anything else becomes a tool."""

    @overload
    def __call__(self, function: C, /) -> C: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(function: C, /) -> C: ...


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    destructive: bool = True,
    idempotent: bool = False,
    open_world: bool = True,
    timeout: float | None = None,
    examples: Iterable[JsonObject] = (),
    secret: Collection[str] = (),
    undo: Callable[..., object] | Tool | None = None,
    preview: Callable[..., object] | Tool | None = None,
    transactional: bool = False,
    version: str = "1",
    arguments: type[BaseModel] | None = None,
    strict: bool = False,
) -> Decorator: ...


def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    destructive: bool = True,
    idempotent: bool = False,
    open_world: bool = True,
    timeout: float | None = None,
    examples: Iterable[JsonObject] = (),
    secret: Collection[str] = (),
    undo: Callable[..., object] | Tool | None = None,
    preview: Callable[..., object] | Tool | None = None,
    transactional: bool = False,
    version: str = "1",
    arguments: type[BaseModel] | None = None,
    strict: bool = False,
) -> object:
    """Make a tool of a function, a method, or a class whose instances are called.

    Without `read_only` the tool has side effects, and waits for approval. The name, the description and the schema come
    from the function, its docstring and its annotations unless given. A parameter annotated `ToolContext` is filled by
    the runtime. A decorated class stays a class: its instances are the tools.

    Args:
        function: What is decorated, where `@tool` is used bare.
        name: Its name for the model.
        description: What it does, for the model.
        read_only: It changes nothing anywhere.
        destructive: It may overwrite or delete.
        idempotent: Running it again with the same arguments changes nothing more.
        open_world: It reaches things outside this system.
        timeout: Seconds after which a run is given up.
        examples: Example arguments, checked here and shown to the model.
        secret: Parameters whose values are masked wherever they would be shown or recorded.
        undo: What takes the effect back.
        preview: What tells the effect without causing it, for dry runs.
        transactional: Its effect is made through the journal's own connection and commits with the record of it.
        version: Change it when the meaning changes and the signature does not.
        arguments: A model of the arguments, instead of the signature.
        strict: Switches coercion off.

    Raises:
        ToolDefinitionError: A parameter cannot be described to a model; the message names it.
    """
    frame = inspect.currentframe()
    around = frame.f_back if frame else None
    module, local = around.f_globals if around else None, _scope(around)
    hints = Hints(read_only, destructive, idempotent, open_world)

    def define(what: Callable[..., object]) -> object:
        called, method = _function(what)
        own = name or _name(what)
        if is_generator(called):
            raise ToolDefinitionError(f"`{own}` is a generator; a tool gives one result: return a list")
        text, words = describe(called.__doc__)
        if not text and called is not what:
            text = describe(what.__doc__)[0]
        # Local names count only where the function was written in that very module.
        here = module is not None and getattr(inspect.unwrap(called), "__globals__", None) is module
        signature = read(own, called, local if here else {}, skip_first=method)
        check = SignatureCheck(own, signature, words, arguments=arguments, secret=secret, strict=strict)
        made = Tool(
            own,
            text if description is None else inspect.cleandoc(description),
            called,
            check,
            hints=hints,
            signature=signature,
            timeout=timeout,
            undo=undo,
            preview=preview,
            transactional=transactional,
            version=version,
            examples=examples,
            method=method,
        )
        if isinstance(what, type):
            setattr(what, TEMPLATE, made)
            return what
        return made.bind(what) if method and callable(what) and called is not what else made

    return define if function is None else define(function)


def _function(what: Callable[..., object]) -> tuple[Callable[..., object], bool]:
    """What is really called, and whether its first parameter is the instance."""
    if isinstance(what, staticmethod):
        return cast("staticmethod[..., object]", what).__func__, False
    if inspect.ismethod(what) or is_partial(what):
        return what, False
    if isinstance(what, type) or not inspect.isroutine(what):
        called = inspect.getattr_static(what if isinstance(what, type) else type(what), "__call__", None)
        if isinstance(called, Tool):
            raise ToolDefinitionError(f"`{_name(what)}` has a decorated `__call__`; decorate one of the two")
        if not inspect.isfunction(called):
            raise ToolDefinitionError(f"`{what!r:.80}` cannot be called; a tool is a function, or has `__call__`")
        return called, True
    try:
        first = next(iter(inspect.signature(what).parameters), None)
    except (TypeError, ValueError):
        first = None
    return what, first in {"self", "cls"}


def _name(what: Callable[..., object]) -> str:
    if is_partial(what):
        return _name(cast("functools.partial[object]", what).func)
    own = getattr(what, "__name__", None)
    if isinstance(what, type):
        return snake(what.__name__)
    if not isinstance(own, str):
        return snake(type(what).__name__)
    if own == "<lambda>":
        raise ToolDefinitionError("a lambda has no name and no types; write a `def`, or give `name=`")
    return own


def _scope(frame: FrameType | None) -> Mapping[str, object]:
    """Local names around a definition: those of the class body it stands in, and of the function around that."""
    scope: dict[str, object] = {}
    while frame is not None and frame.f_locals is not frame.f_globals:
        scope = {**frame.f_locals, **scope}
        if "__qualname__" not in frame.f_locals or "__module__" not in frame.f_locals:
            break
        frame = frame.f_back
    return scope
