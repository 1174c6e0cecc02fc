"""What an approval is bound to: SHA-256 over the canonical JSON (RFC 8785) of the call in its thread."""

from __future__ import annotations

import hashlib
from typing import cast

from tropa.messages import Json, JsonObject

_SAFE = 2**53
_MARK = "\0"


def canonical(value: Json) -> bytes:
    """RFC 8785 bytes of `value`.

    The RFC knows no integers beyond 2**53 and no lone surrogates. Both are wrapped in an object whose key starts with
    NUL, and keys that start with NUL get one more, so that two different values never give the same bytes.
    """
    import rfc8785  # noqa: PLC0415

    return cast("bytes", rfc8785.dumps(_wrapped(value)))  # type: ignore[arg-type]


def sha256(value: Json) -> str:
    """SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def call_digest(thread: str, call: str, tool: str, version: str, arguments: JsonObject) -> str:
    """The digest that an approval of this call in this thread is bound to."""
    return sha256({"thread": thread, "call": call, "tool": tool, "version": version, "arguments": arguments})


def proposal_id(digest: str) -> str:
    """The short name people use for a proposal: the first 12 hexadecimal digits of its digest."""
    return digest[:12]


def _wrapped(value: Json) -> Json:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -_SAFE < value < _SAFE else {f"{_MARK}int": str(value)}
    if isinstance(value, str):
        return {f"{_MARK}text": value.encode("utf-8", "surrogatepass").hex()} if _lone(value) else value
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    if isinstance(value, dict):
        return {_key(key): _wrapped(item) for key, item in value.items()}
    return value


def _key(key: str) -> str:
    if _lone(key):
        return f"{_MARK}{key.encode('utf-8', 'surrogatepass').hex()}"
    return _MARK + key if key.startswith(_MARK) else key


def _lone(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)
