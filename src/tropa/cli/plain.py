"""Foreign text made harmless for a terminal: what a model or a tool said is shown, never interpreted."""

from __future__ import annotations

import json
import unicodedata

from tropa.messages import Json, JsonObject

_INVISIBLE = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *range(0xFE00, 0xFE0E)}
"""Characters without a shape that Unicode does not count among the format characters."""
_SELECTORS = range(0xE0100, 0xE01F0)


def plain(text: str, *, lines: bool = True) -> str:
    r"""`text` with every character that acts or hides written as its escape (`\x1b`, `\u202e`, `\U000e0041`).

    These are control and format characters: ANSI sequences, direction marks, zero widths, tags, variation selectors,
    lone surrogates, private use. With `lines`, line ends and tabs stay; without, they are escaped too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(one if _shows(one, lines=lines) else _escape(one) for one in text)


def _shows(one: str, *, lines: bool) -> bool:
    if one in "\n\t":
        return lines
    if " " <= one <= "~":
        return True
    code = ord(one)
    if code in _INVISIBLE or code in _SELECTORS:
        return False
    category = unicodedata.category(one)
    return category[0] != "C" and category not in {"Zl", "Zp"}


def _escape(one: str) -> str:
    if one in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[one]
    code = ord(one)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(value: Json, limit: int | None = None) -> str:
    """A value as JSON on one line, harmless, and shortened to `limit` characters where one is given."""
    return shorten(plain(json.dumps(value, ensure_ascii=False), lines=False), limit)


def call_line(tool: str, arguments: JsonObject, limit: int | None = None) -> str:
    """A call as people read it: `move_stock(sku="A-113", quantity=40)`."""
    shown = ", ".join(f"{plain(name, lines=False)}={one_line(value)}" for name, value in arguments.items())
    return shorten(f"{plain(tool, lines=False)}({shown})", limit)


def shorten(text: str, limit: int | None) -> str:
    """`text` cut to `limit` characters, with a mark that says so."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[: max(1, limit - 1)]}…"
