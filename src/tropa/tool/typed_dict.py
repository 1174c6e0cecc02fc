"""`typing.TypedDict` before Python 3.12, which pydantic does not read: the same type by `typing_extensions`."""

from __future__ import annotations

import sys
import types
import typing
from typing import Annotated, Literal, Union, cast, get_args, get_origin

import typing_extensions

_OLD = sys.version_info < (3, 12)


def readable(annotation: object, names: dict[str, object]) -> object:
    """`annotation` with every old TypedDict in it made anew. `names` resolves postponed annotations of local types."""
    return _readable(annotation, names, ()) if _OLD else annotation


def _readable(annotation: object, names: dict[str, object], above: tuple[object, ...]) -> object:
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing" and annotation not in above:
        return _rebuilt(cast("type", annotation), names, (*above, annotation))
    origin, old = get_origin(annotation), get_args(annotation)
    if origin is None or origin is Literal:
        return annotation
    if origin is Annotated:
        inner = _readable(old[0], names, above)
        return annotation if inner is old[0] else Annotated[(inner, *old[1:])]  # type: ignore[valid-type]
    new = tuple(_readable(part, names, above) for part in old)
    if all(one is other for one, other in zip(old, new, strict=True)):
        return annotation
    if origin is Union or origin is types.UnionType:
        return Union[new]  # noqa: UP007  # the parts are known at run time only
    return cast("object", origin[new])


def _rebuilt(old: type, names: dict[str, object], above: tuple[object, ...]) -> object:
    """Whether a key is required stands in the class, or around the type where annotations are postponed."""
    required = cast("frozenset[str]", getattr(old, "__required_keys__", frozenset[str]()))
    fields: dict[str, object] = {}
    hints = cast("dict[str, object]", typing.get_type_hints(old, localns=names, include_extras=True))
    for name, hint in hints.items():
        marker = get_origin(hint)
        marked = marker is typing.Required or marker is typing.NotRequired
        bare = cast("tuple[object, ...]", get_args(hint))[0] if marked else hint
        inner = _readable(bare, names, above)
        needed = marker is typing.Required if marked else name in required
        fields[name] = typing.Required[inner] if needed else typing.NotRequired[inner]  # type: ignore[valid-type]
    build = cast("typing.Callable[[str, dict[str, object]], type]", typing_extensions.TypedDict)
    made = build(old.__name__, fields)
    made.__doc__, made.__module__ = old.__doc__, old.__module__
    return made
