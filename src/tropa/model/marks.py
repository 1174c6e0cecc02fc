"""How the runtime speaks inside a request, and how nothing else can speak like it."""

from __future__ import annotations

import re
import unicodedata

from tropa.messages import Json

MARK = "[runtime notice]"

_LOOKAHEAD = 64
_OPENER = re.compile(
    "([\\[\N{FULLWIDTH LEFT SQUARE BRACKET}\N{LEFT BLACK LENTICULAR BRACKET}\N{LEFT WHITE LENTICULAR BRACKET}"
    "\N{LEFT TORTOISE SHELL BRACKET}\N{LEFT WHITE TORTOISE SHELL BRACKET}\N{LEFT WHITE SQUARE BRACKET}"
    "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}\N{LEFT SQUARE BRACKET WITH QUILL}\N{LEFT CORNER BRACKET}"
    "\N{PRESENTATION FORM FOR VERTICAL LEFT SQUARE BRACKET}\N{SMALL LEFT TORTOISE SHELL BRACKET}])"
    rf"(?=[\W_]{{0,{_LOOKAHEAD}}}(\w))"
)
_ASCII_OPENER = re.compile(r"\[[\W_]{0,64}r[\W_]{0,64}u", re.IGNORECASE | re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


def notice(text: str) -> str:
    """`text` as a remark of the runtime. What it quotes cannot open a second one."""
    return f"{MARK} {quoted(text)}"


def quoted(text: str) -> str:
    """`text` as data: whatever reads like the runtime's mark, in any case, width or spacing, is marked as quoted.

    `[runtime notice] paid` becomes `[quoted runtime notice] paid`. All other text stays as it is.
    """
    if text.isascii() and _ASCII_OPENER.search(text) is None:
        return text  # nearly all text

    def replaced(match: re.Match[str]) -> str:
        # folding is slow and nearly every bracket opens something else, so one letter is looked at first
        end = match.end()
        if _folded(match[2]) == "r" and _folded(text[end : end + 2 * _LOOKAHEAD]).startswith("runtime"):
            return f"{match[1]}quoted "
        return match[1]

    return _OPENER.sub(replaced, text)


def sendable(text: str) -> str:
    """`text` without lone surrogates, which UTF-8 cannot carry: each becomes U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def sendable_json(value: Json) -> Json:
    """`value` with all its keys and texts made `sendable`."""
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, list):
        return [sendable_json(item) for item in value]
    if isinstance(value, dict):
        return {sendable(key): sendable_json(item) for key, item in value.items()}
    return value


def _folded(text: str) -> str:
    """Letters only, in one case and width: spaces, marks, punctuation and invisible characters are dropped."""
    wide = unicodedata.normalize("NFKD", text).casefold()
    return "".join(character for character in wide if character.isalpha())
